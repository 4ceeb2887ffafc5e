package comment

import (
	"maps"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

func checksMissing(t *state.Task) {
	prOpen(t)
	t.PR.Checks, t.PR.ChecksReason = "pending", "2 of 3 required checks have not been reported: build, `lint` <b> @octo"
}

func checksOptional(t *state.Task) {
	prOpen(t)
	t.PR.Checks, t.PR.ChecksReason, t.PR.ChecksOptional = "success", "the only required check succeeded", "docs (timed out), lint"
}

func flaky(t *state.Task) {
	prOpen(t)
	t.PR.Checks, t.PR.Repair = "success", &state.CIRepair{Flaky: []string{"build (windows)", "`lint` @octocat"}}
}

func queued(t *state.Task) {
	*t = state.Task{Key: t.Key, TaskIssue: state.TaskIssue{Repo: t.Repo}, TaskPhase: state.TaskPhase{Phase: state.PhaseQueued, Step: state.JobStart, History: t.History[:1]}, Money: state.Money{CapMicroUSD: 10_000_000}}
}

// statuses returns the tasks of the golden status comments.
func statuses() map[string]*state.Task {
	return map[string]*state.Task{
		"queued":            with(queued),
		"awaiting":          planned(),
		"implementing":      with(implementing),
		"steered":           with(steered),
		"steered_once":      with(steeredOnce),
		"steered_starting":  with(steeredStarting),
		"pr_open":           with(prOpen),
		"pr_closed":         with(prClosed),
		"reopening":         with(func(t *state.Task) { prClosed(t); t.Step = state.JobReopen }),
		"ready":             with(func(t *state.Task) { prOpen(t); t.PR.Ready, t.PR.Checks = true, "success" }),
		"base_updated":      with(func(t *state.Task) { prOpen(t); t.Branch.Updated = t.Branch.Head }),
		"base_conflict":     with(func(t *state.Task) { prOpen(t); t.PR.Conflict = true }),
		"checks_missing":    with(checksMissing),
		"checks_optional":   with(checksOptional),
		"handed_over":       with(func(t *state.Task) { repaired(3)(t); t.PR.Checks = "failure" }),
		"flaky":             with(flaky),
		"dco":               with(func(t *state.Task) { prOpen(t); t.PR.Checks, t.PR.DCO = "failure", true }),
		"dco_signed":        with(func(t *state.Task) { prOpen(t); t.PR.DCO, t.Settings.SignOff = true, true }),
		"merged":            with(merged),
		"failed":            with(failed),
		"cancelled":         with(cancelled),
		"edited":            with(edited),
		"no_access":         with(outOfReach),
		"begun_by_operator": with(begunByOperator),
		"locked":            with(func(t *state.Task) { t.Locked = true }),
		"asked": with(func(t *state.Task) {
			t.Question = &state.Question{Kind: state.AskAgent, Comment: 120, Text: "?"}
			testLife{t}.phase(state.PhaseAwaitingAnswer, 33, "a question")
		}),
		"limit": with(func(t *state.Task) {
			t.Waiting = &state.Waiting{Kind: state.WaitLimit, Detail: "the model's provider allows no more calls", Until: at(59)}
			t.Resume = state.PhaseImplementing
			testLife{t}.phase(state.PhaseInterrupted, 34, "a limit")
		}),
		"over_cap": with(overCap),
		"queued_for_vm": with(func(t *state.Task) {
			implementing(t)
			t.Run.State = state.RunLaunching
			t.Waiting = &state.Waiting{Kind: state.WaitVM, Place: 2, Detail: "3 of 3 VMs are in use, by #3 (implementing), #5 (pull request open) and 1 task of other repositories", Since: at(30), Until: at(59)}
		}),
		"key": with(func(t *state.Task) {
			t.Waiting = &state.Waiting{Kind: state.WaitKey, Detail: "the model's provider `anthropic` refuses errand's key", Until: at(59),
				Hint: "The operator has to set a key that is valid at `models.anthropic` and restart errand, or make this one valid again; the task then continues automatically."}
			t.Resume = state.PhaseImplementing
			testLife{t}.phase(state.PhaseInterrupted, 34, "a key")
		}),
		"public":          with(public(prOpen)),
		"public_over_cap": with(public(overCap)),
		"public_limit": with(func(t *state.Task) {
			public(implementing)(t)
			t.Waiting = &state.Waiting{Kind: state.WaitMoney, Until: at(59), Detail: "today's cap of $50.00 for all tasks together is reached; a new day begins at 00:00 UTC"}
		}),
		"unpriced": with(func(t *state.Task) { prOpen(t); t.Money.Unpriced = "claude `@next`" }),
		"asleep":   with(asleep),
		"disk_full": with(func(t *state.Task) {
			parked(t)
			t.VM, t.VMs = nil, manyVMs()[1:2]
			t.VMs[0].EndReason = state.VMEndDiskFull
		}),
		"parked":        with(parked),
		"stale":         with(func(t *state.Task) { t.Plans[2].Stale = state.StaleEdited }),
		"stale_changes": with(func(t *state.Task) { toPublish(t); t.NewestPlan().Stale = state.StaleEdited }),
		"blocked": with(func(t *state.Task) {
			*t = state.Task{Key: t.Key, TaskIssue: state.TaskIssue{Repo: t.Repo}, TaskPhase: state.TaskPhase{Phase: state.PhaseQueued, Step: state.JobStart, History: t.History[:1],
				Waiting: &state.Waiting{Kind: state.WaitBlocked, Detail: "blocked by octo/calc#3", Since: at(1)}}, Money: state.Money{CapMicroUSD: 10_000_000}}
		}),
	}
}

// mergeStatuses are tasks with pull requests that errand is to mark ready or to merge.
func mergeStatuses() map[string]*state.Task {
	return map[string]*state.Task{
		"merges": with(merges),
		"draft": with(func(t *state.Task) {
			prOpen(t)
			t.Settings.Draft, t.PR.Draft = settings.DraftUntilGreen, true
		}),
		"merges_checks": with(func(t *state.Task) { merges(t); t.PR.Ready = true; t.PR.Checks = "pending" }),
		"merges_now":    with(func(t *state.Task) { merges(t); t.PR.Ready = true; t.PR.Checks = "success" }),
		"merges_later": with(func(t *state.Task) {
			merges(t)
			t.PR.Ready, t.PR.Checks, t.PR.MergeWaits = true, "success", "@octocat `x` </details> requests changes"
		}),
	}
}

func merges(t *state.Task) {
	prOpen(t)
	t.Settings.Merge = settings.MergeWhenApproved
}

func begunByOperator(t *state.Task) {
	t.Trigger = state.Trigger{By: state.Person{Operator: true}, Via: state.TriggerOperator, At: at(0), Operator: true}
	t.Frozen.By = state.Person{Operator: true}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	tasks := statuses()
	maps.Copy(tasks, mergeStatuses())
	for name, task := range tasks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Status(task, view("status"))
			golden(t, "status/"+name, got)
			if n := unfoldedLines(got); n > 15 {
				t.Errorf("%d lines", n)
			}
			if key, _ := FindMarker(got); key != "status" {
				t.Errorf("marker %q", key)
			}
		})
	}
}

// unfoldedLines counts the lines of a comment; each folded block counts as one.
func unfoldedLines(s string) int {
	return strings.Count(regexp.MustCompile(`(?s)<details>.*?\n</details>`).ReplaceAllString(s, ""), "\n") + 1
}

// TestStatusOfRandomTasks: for every task, the status stays short, notifies nobody and leaves no markup open.
func TestStatusOfRandomTasks(t *testing.T) {
	t.Parallel()
	phases := state.Phases()
	nasty := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a\nb\nc", "```", "<details>", "@bob `", "| x |", "- [ ] x", "<!-- errand:x -->", strings.Repeat("long ", 200), "`|`"}))
	rapid.Check(t, func(r *rapid.T) {
		task := planned()
		change := func(label string, do func()) {
			if rapid.Bool().Draw(r, label) {
				do()
			}
		}
		change("implementing", func() {
			implementing(task)
			task.Run.Doing = nasty.Draw(r, "doing")
			task.Run.Model = nasty.Draw(r, "model")
		})
		change("pr", func() { prOpen(task); task.PR.Checks = nasty.Draw(r, "checks") })
		change("checks", func() {
			prOpen(task)
			task.PR.ChecksReason, task.PR.ChecksOptional = nasty.Draw(r, "reason"), nasty.Draw(r, "optional")
		})
		change("dco", func() { prOpen(task); task.PR.DCO = true })
		change("end", func() { task.End = &state.End{Reason: nasty.Draw(r, "reason"), Hint: nasty.Draw(r, "hint")} })
		change("waiting", func() {
			task.Waiting = &state.Waiting{Kind: state.WaitBlocked, Detail: nasty.Draw(r, "detail"), Until: at(59)}
		})
		change("public", func() { task.Repo.Private = false })
		change("locked", func() { task.Locked = true })
		change("stripped", func() { task.Context.Stripped = rapid.SliceOf(nasty).Draw(r, "stripped") })
		change("ended VM", func() { task.VM, task.VMs = nil, []state.VM{{EndReason: state.VMEndReason(nasty.Draw(r, "why"))}} })
		for range rapid.IntRange(0, 40).Draw(r, "history") {
			testLife{task}.phase(rapid.SampledFrom(phases).Draw(r, "phase"), 40, nasty.Draw(r, "because"))
		}
		for range rapid.IntRange(0, 12).Draw(r, "withheld") {
			task.Context.Withheld = append(task.Context.Withheld, state.Withheld{ID: 4, By: state.Person{Login: nasty.Draw(r, "login")}, Reason: nasty.Draw(r, "reason")})
		}
		for range rapid.IntRange(0, 3).Draw(r, "saved") {
			task.Saved = append(task.Saved, state.SavedWork{At: at(3), Reason: nasty.Draw(r, "saved why")})
		}
		task.VM, task.Branch.Name = &state.VM{Name: nasty.Draw(r, "VM"), Kind: nasty.Draw(r, "kind")}, nasty.Draw(r, "branch")
		got := Status(task, view("status"))
		if n := unfoldedLines(got); n > 15 {
			r.Fatalf("%d lines:\n%s", n, got)
		}
		if strings.Count(got, "<!-- errand:") != 1 || strings.Count(got, "\n<details>") != strings.Count(got, "\n</details>") {
			r.Fatalf("broken:\n%s", got)
		}
		if why := dangersApartFromOurs(got); why != "" {
			r.Fatalf("%s in:\n%s", why, got)
		}
	})
}

// ourHTML is what we write ourselves into a status comment.
var ourHTML = regexp.MustCompile(`(?m)^<details><summary>Details(?:, and \d+ texts? withheld from the agent)?</summary>$|^</details>$|^<sub>|</sub>$`)

// dangersApartFromOurs allows the links and the HTML that are ours.
func dangersApartFromOurs(s string) string {
	why := markdown.Danger(ourLink.ReplaceAllString(ourHTML.ReplaceAllString(strings.TrimSuffix(s, Marker("status")), ""), "$1"))
	return why
}

// ourLink is a link of ours; text of others has none.
var ourLink = regexp.MustCompile(`\[([^\[\]\n]*)\]\(https://[^\s()]*\)`)
