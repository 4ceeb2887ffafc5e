package config_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/state/settings"
	"github.com/google/go-cmp/cmp"
)

// TestRepoShell: the commands that a repository's own file allows agents to call.
func TestRepoShell(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text  string
		want  settings.Shell
		wrong string // part of the error
	}{
		"nothing":    {"plan: none", settings.Shell{}, ""},
		"a list":     {"tools: {shell: [git, npm run, ./gradlew]}", settings.Shell{Set: true, Commands: []string{"git", "npm run", "./gradlew"}}, ""},
		"one":        {"tools: {shell: git}", settings.Shell{Set: true, Commands: []string{"git"}}, ""},
		"none":       {"tools: {shell: []}", settings.Shell{Set: true}, ""},
		"all":        {"tools: {shell: all}", settings.Shell{Set: true, All: true}, ""},
		"all listed": {"tools: {shell: [all]}", settings.Shell{Set: true, All: true}, ""},
		"all and":    {"tools: {shell: [git, all]}", settings.Shell{}, "tools.shell[1]: all cannot be in a list"},
		"a pattern":  {"tools:\n  shell:\n    - git *", settings.Shell{}, "line 3: tools.shell[0]"},
		"a chain":    {"tools: {shell: [\"git && x\"]}", settings.Shell{}, "write the beginning of the command"},
		"a quote":    {`tools: {shell: ["npm  run"]}`, settings.Shell{}, "write the beginning of the command"},
		"a mapping":  {"tools: {shell: {git: true}}", settings.Shell{}, "tools.shell"},
		"too many":   {"tools: {shell: [" + strings.Repeat("x, ", 101) + "x]}", settings.Shell{}, "at most 100"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := config.ParseRepo([]byte(tc.text), settings.Default(), nil)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Fatalf("error %v, want %q", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.Shell, cmp.Transformer("empty", func(l []string) string { return strings.Join(l, ",") })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOperatorsShell: the operator's list for all repositories and those for some; an empty list, as in the example,
// means auto-detection.
func TestOperatorsShell(t *testing.T) {
	t.Parallel()
	tools := config.OperatorTools{Shell: config.ShellList{"git", "go"}, Repositories: map[string]config.ShellList{"Acme/open": {"all"}, "acme/found": {}}}
	for repo, want := range map[string]settings.Shell{
		"acme/slug": {Set: true, Commands: []string{"git", "go"}}, "acme/Open": {Set: true, All: true}, "acme/found": {},
	} {
		if diff := cmp.Diff(want, tools.For(repo)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", repo, diff)
		}
	}
	if diff := cmp.Diff(settings.Shell{}, config.OperatorTools{Shell: config.ShellList{}}.For("acme/slug")); diff != "" {
		t.Errorf("the example's list (-want +got):\n%s", diff)
	}
}
