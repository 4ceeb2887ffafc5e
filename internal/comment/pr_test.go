package comment

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/state"
)

const template = `<!-- Thanks! Fill this in. Closes #99 -->
Please read CONTRIBUTING first.

## Why is this needed?

<!-- say why -->

## Description

Describe it here.

## How has this been tested?

## Related issue

Fixes #

## Screenshots

## Checklist

- [ ] I have read the guide
- [ ] Tests pass

### Out of scope
`

func input(tpl string) PRInput {
	return PRInput{
		Template: tpl, Summary: "`Div` returns `ErrZero`.\n\nFixes #1, thanks @octocat. - [ ] x",
		Checks: []state.CheckResult{{Name: "test", Command: "go test ./...", Duration: 4 * time.Second}, {Command: "a|b`", Code: 2, Duration: time.Minute}, {Name: "slow", TimedOut: true}, {Name: "coverage of changed lines: 91 % (gate 85 %)", Gate: true}, {Name: "detected mutants on changed lines: 50 % (gate 85 %)", Code: 1, Gate: true, Tail: "Tests detect 1 of the 2 | mutants:\n@octo: 3"}, {Name: "lint", Skipped: "no file changed | that is *still* there"}},
		Notes:  []string{"1 commit was rebased onto commits that were pushed in the meantime"},
	}
}

func TestPRBody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		task *state.Task
		in   PRInput
	}{
		"own":           {with(implementing), input("")},
		"template":      {with(implementing), input(template)},
		"bare":          {with(func(t *state.Task) { t.Plans, t.Approval = nil, nil }), PRInput{}},
		"steered":       {with(steered), input("")},
		"steered_form":  {with(steered), input(template)},
		"other_base":    {with(func(t *state.Task) { implementing(t); t.Branch.Base = "release/1" }), PRInput{Summary: "Done."}},
		"only_heading":  {with(implementing), PRInput{Template: "# What & why\n", Summary: "Done."}},
		"open_comment":  {with(implementing), PRInput{Template: "## Summary\n<!-- never closed\n## Hidden\n", Summary: "Done."}},
		"fenced_sharps": {with(implementing), PRInput{Template: "```sh\n# no heading\n```\n\n## Changes\n", Summary: "Done."}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := PRBody(tt.task, tt.in, view("pr"))
			golden(t, "pr/"+name, got)
			for _, banned := range []string{"Closes #99", "Fixes #1,", " @octocat. -"} {
				if strings.Contains(got, banned) {
					t.Errorf("the text contains %q:\n%s", banned, got)
				}
			}
			closing := strings.Contains(got, "Closes #7")
			if want := tt.task.Branch.Base == "main"; closing != want {
				t.Errorf("closes the issue: %v, want %v", closing, want)
			}
			if !strings.Contains(got, "#7") {
				t.Error("does not name the issue")
			}
		})
	}
}

func TestPRBodyIsWithinTheLimit(t *testing.T) {
	t.Parallel()
	in := input("## Summary\n## Why\n## Tests\n")
	in.Summary = strings.Repeat("<b `\n", 50_000)
	for range 500 {
		in.Checks = append(in.Checks, state.CheckResult{Name: strings.Repeat("n", 500)})
		in.Notes = append(in.Notes, strings.Repeat("n ", 500))
	}
	if n := utf8.RuneCountInString(PRBody(with(implementing), in, view("pr"))); n > MaxLength {
		t.Errorf("%d characters", n)
	}
}

// repaired returns a change to a task whose failing checks were repaired that many times in a row.
func repaired(runs int) func(*state.Task) {
	return func(t *state.Task) {
		prOpen(t)
		t.PR.Repair = &state.CIRepair{Runs: runs, HandedOver: true}
	}
}

// repairing is a task whose failing checks errand repairs again, because somebody has acted.
func repairing(t *state.Task) {
	repaired(0)(t)
	t.PR.Repair.HandedOver = false
}

// stoppedUpdates is a task whose changes, which resolve a conflict, nobody approved.
func stoppedUpdates(t *state.Task) {
	toPublish(t)
	t.PR = &state.PR{Number: 8, URL: t.Repo.URL + "/pull/8", State: state.PROpen, Updates: state.MaxUpdates + 1}
}

func failingChecks() []state.CheckNote {
	return []state.CheckNote{
		{Name: "build (windows)", URL: "https://github.example/octo/calc/actions/runs/1/job/2", Fault: state.CheckFails, Result: "failure", Rerun: true},
		{Name: "lint](https://evil.example) <b>", URL: "javascript:alert(1)", Fault: state.CheckBroken, Result: "failure"},
		{Name: "deploy", URL: "https://ci.example/3", Fault: state.CheckUnfinished, Result: "action required"},
		{Name: "DCO", Fault: state.CheckSignOff, Result: "failure"},
	}
}

func pendingChecks() []state.CheckNote {
	return []state.CheckNote{
		{Name: "deploy", URL: "https://github.example/octo/calc/actions/runs/1/job/3", Fault: state.CheckPending, Result: "waiting"},
		{Name: "lint](https://evil.example) <b>", Fault: state.CheckPending},
	}
}
