package main

import (
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
