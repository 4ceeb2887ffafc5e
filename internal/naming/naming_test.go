package naming

import (
	"os/exec"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	all := Values{Key: "ABC-1", Number: 7, Slug: "div-panics", Task: "Return an error"}
	none := Values{Number: 7, Slug: "div-panics", Task: "Return an error"}
	tests := map[string]struct {
		template string
		vars     Values
		want     string
	}{
		"branch":            {"errand/{number}-{slug}", all, "errand/7-div-panics"},
		"commit":            {"{key}: {task}", all, "ABC-1: Return an error"},
		"without key":       {"{key}: {task}", none, "Return an error"},
		"brackets":          {"[{key}] {task}", none, "Return an error"},
		"key in branch":     {"errand/{key}-{number}", none, "errand/7"},
		"key at the end":    {"{task} ({key})", none, "Return an error"},
		"key in between":    {"errand/{key}/{slug}", none, "errand/div-panics"},
		"key after a word":  {"feat({key}): {task}", none, "feat: Return an error"},
		"key after a value": {"{number}{key}-{slug}", none, "7-div-panics"},
		"key twice":         {"{key}-{key}: {task}", none, "Return an error"},
		"value is no tpl":   {"{task}", Values{Task: "use {slug}", Slug: "x"}, "use {slug}"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Expand(tt.template, tt.vars)
			if err != nil || got != tt.want {
				t.Errorf("Expand(%q) = %q, %v; want %q", tt.template, got, err, tt.want)
			}
		})
	}
	if _, err := Expand("errand/{issue}", all); err == nil || !strings.Contains(err.Error(), "{number}") {
		t.Errorf("unknown placeholder: %v", err)
	}
}

func TestSlug(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Div panics on zero":   "div-panics-on-zero",
		"Größe & Maß: çà & là": "grosse-mass-ca-la",
		"Don't   crash!":       "dont-crash",
		"日本語":                  "task",
		"":                     "task",
		"../../etc/passwd":     "etc-passwd",
		"a very long title that goes on and on for ever": "a-very-long-title-that-goes-on-and-on",
		strings.Repeat("x", 60):                          strings.Repeat("x", 40),
	} {
		if got := Slug(in); got != want {
			t.Errorf("Slug(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestValidBranchAgreesWithGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"main", "release/1.2", "a//b", "/a", "a/", "a..b", "a.lock", "a.lock/b", ".a", "a/.b", "a.", "-a", "a b", "a~1", "a^", "a:b", "a?", "a*", "a[b", `a\b`,
		"a@{b", "a@b", "é", "a\x7f", "x-", "a.b", "errand/7-div",
	} {
		valid := exec.Command(git, "check-ref-format", "--branch", name).Run() == nil
		if got := ValidBranch(name); got != valid {
			t.Errorf("ValidBranch(%q) = %v, git returns %v", name, got, valid)
		}
	}
}

func FuzzSlug(f *testing.F) {
	f.Add("Div panics")
	f.Add("İstanbul\x00..lock")
	f.Fuzz(func(t *testing.T, title string) {
		s := Slug(title)
		if len(s) == 0 || len(s) > maxSlug || !ValidBranch("errand/7-"+s) || !ValidBranch(s) {
			t.Errorf("Slug(%q) = %q", title, s)
		}
	})
}
