package launch

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/state/settings"
)

// TestDeniedCommandsBecomeRules: commands and protected paths become rules that every adapter accepts, except for exceptions from the
// protection.
func TestDeniedCommandsBecomeRules(t *testing.T) {
	t.Parallel()
	s := settings.Settings{Deny: []string{"terraform apply"}, Gate: settings.Gate{Protected: []string{"secret", "x/{a,b}"}}}
	steps := &Steps{Gate: settings.Gate{Protected: []string{"deploy/**"}}}
	rules := steps.denied(s)
	for _, want := range []string{"Bash(git push:*)", "Bash(terraform apply:*)", "Edit(.github/workflows/**)", "Edit(deploy/**)"} {
		if !slices.Contains(rules, want) {
			t.Errorf("%s is missing in %v", want, rules)
		}
	}
	for _, not := range []string{"Edit(secret)", "Edit(x/{a,b})", "Edit(CODEOWNERS)"} {
		if slices.Contains(rules, not) {
			t.Errorf("unexpected rule %s", not)
		}
	}
	steps.Gate.Unprotected = []string{".github/workflows/own.yml"}
	if got := steps.denied(s); slices.Contains(got, "Edit(.github/workflows/**)") {
		t.Errorf("an exception is denied: %v", got)
	}
	s.Gate.Unprotected = []string{} // unprotected by the repository
	if got := steps.denied(s); !slices.Contains(got, "Edit(.github/workflows/**)") {
		t.Errorf("a protected path is not denied: %v", got)
	}
	set, err := registry.New(registry.Config{Adapters: map[string]registry.Settings{command.Name: {Command: []string{"x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range registry.Names() {
		spec := agent.Spec{WorkDir: "/w", Home: "/h", RunDir: "/r", Step: "plan", Model: "m", Prompt: "Do it.", Deny: rules, Shell: callable(s), BaseURL: "http://127.0.0.1:1/llm/x", RunToken: "t", Session: "01234567-89ab-cdef-0123-456789abcdef"}
		if _, err := set.Of(name).Command(spec); err != nil {
			t.Errorf("%s rejects the rules: %v", name, err)
		}
	}
}

// TestCommonCommandsArePermitted: the list of permitted commands always has the common commands, and is empty if all commands are
// permitted.
func TestCommonCommandsArePermitted(t *testing.T) {
	t.Parallel()
	if got := callable(settings.Settings{Shell: settings.Shell{All: true}}); got != nil {
		t.Errorf("any: %v", got)
	}
	none := callable(settings.Settings{Shell: settings.Shell{Set: true}})
	if slices.Contains(none, "git") || !slices.Contains(none, "grep") {
		t.Errorf("empty list: got %v", none)
	}
	older := callable(settings.Settings{Check: []settings.Command{{Run: "make check"}}}) // a task from before the list existed
	if !slices.Contains(older, "git") || !slices.Contains(older, "make") {
		t.Errorf("without a list: got %v", older)
	}
}
