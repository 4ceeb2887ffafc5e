package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	exempt := map[string]string{"state/kv.Name": "a reason"}
	name := "state/kv/name.go:15:6 " + module + "state/kv Name\n"
	for label, test := range map[string]struct {
		out  string
		want []string
	}{
		"an exempted function": {name, nil},
		"another function": {name + "internal/a/b.go:3:6 " + module + "internal/a T.Left\n", []string{
			"internal/a/b.go:3:6: no program reaches internal/a.T.Left: delete it, or exempt it in internal/tools/deadcode with a reason",
		}},
		"an exemption that nothing needs": {"", []string{"state/kv.Name no longer needs an exemption: remove it from internal/tools/deadcode"}},
	} {
		t.Run(label, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, judge(test.out, exempt)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUncalledMethods: an exported method is reported if only tests mention its name, wherever else it is declared.
func TestUncalledMethods(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ code, want string }{
		"mentioned nowhere":    {"package a\ntype T struct{}\nfunc (t *T) Left() {}\n", "a.go:3:13 github.com/errand-bot/errand T.Left\n"},
		"called":               {"package a\ntype T struct{}\nfunc (t *T) Left() {}\nfunc f(t *T) { t.Left() }\n", ""},
		"part of an interface": {"package a\ntype T struct{}\nfunc (t T) Left() {}\ntype I interface{ Left() }\n", ""},
		"declared twice": {"package a\ntype T struct{}\nfunc (t T) Left() {}\ntype U[V any] struct{}\nfunc (u *U[V]) Left() {}\n",
			"a.go:3:12 github.com/errand-bot/errand T.Left\na.go:5:16 github.com/errand-bot/errand U.Left\n"},
		"called by a template":    {"package a\ntype T struct{}\nfunc (t T) Shown() {}\n", ""},
		"of the standard library": {"package a\ntype T struct{}\nfunc (t T) String() string { return \"\" }\n", ""},
		"not exported":            {"package a\ntype T struct{}\nfunc (t T) left() {}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{"a.go": test.code, "a_test.go": "package a\nfunc g(t T) { t.Left() }\n", "a.html": "{{.T.Shown}}"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := uncalledMethods(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got = strings.ReplaceAll(got, dir+string(filepath.Separator), ""); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
