package workflow

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/state"
)

// TestDenied: commands and protected paths become rules that every adapter takes, unless there are exceptions
// from what is protected.
func TestDenied(t *testing.T) {
	t.Parallel()
	s := state.Settings{Deny: []string{"terraform apply"}, Protected: []string{"deploy/**", "secret", "x/{a,b}"}}
	rules := denied(s)
	for _, want := range []string{"Bash(git push:*)", "Bash(terraform apply:*)", "Edit(.github/workflows/**)", "Edit(deploy/**)"} {
		if !slices.Contains(rules, want) {
			t.Errorf("%s is missing among %v", want, rules)
		}
	}
	for _, not := range []string{"Edit(secret)", "Edit(x/{a,b})", "Edit(CODEOWNERS)"} {
		if slices.Contains(rules, not) {
			t.Errorf("%s is among them", not)
		}
	}
	if got := denied(state.Settings{Protected: []string{"!.github/workflows/own.yml"}}); slices.Contains(got, "Edit(.github/workflows/**)") {
		t.Errorf("an exception is denied: %v", got)
	}
	set, err := agent.NewSet(agent.Config{Adapters: map[string]agent.Settings{agent.NameCommand: {Command: []string{"x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range agent.Names() {
		spec := agent.Spec{WorkDir: "/w", Home: "/h", RunDir: "/r", Step: "plan", Prompt: "Do it.", Deny: rules, BaseURL: "http://127.0.0.1:1/llm/x", RunToken: "t", Session: "01234567-89ab-cdef-0123-456789abcdef"}
		if _, err := set.Of(name).Command(spec); err != nil {
			t.Errorf("%s refuses the rules: %v", name, err)
		}
	}
}
