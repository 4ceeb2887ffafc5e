package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/state"
)

// TestPageAndCommentAgree: for each value of Awaited the page and the status comment ask for the same action.
func TestPageAndCommentAgree(t *testing.T) {
	t.Parallel()
	plan := func(p state.Plan) state.Task {
		return state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPlanApproval}, TaskPlans: state.TaskPlans{Plans: []state.Plan{p}}}
	}
	phase := func(p state.Phase, change func(*state.Task)) state.Task {
		task := state.Task{TaskPhase: state.TaskPhase{Phase: p}}
		change(&task)
		return task
	}
	none := func(*state.Task) {}
	question := func(kind string) func(*state.Task) {
		return func(t *state.Task) { t.Question = &state.Question{Kind: kind} }
	}
	seen := map[state.Awaited]bool{}
	for name, test := range map[string]struct {
		task          state.Task
		awaited       state.Awaited
		page, comment string
	}{
		"a condition": {phase(state.PhaseQueued, func(t *state.Task) { t.Waiting = &state.Waiting{Kind: state.WaitBlocked, Detail: "blocked by #3"} }),
			state.AwaitedCondition, "Waits for other issues", "blocked by #3"},
		"a place in the queue": {phase(state.PhaseImplementing, func(t *state.Task) {
			t.Run = &state.Run{State: state.RunLaunching}
			t.Waiting = &state.Waiting{Kind: state.WaitVM, Place: 2, Detail: "3 of 3 VMs are in use"}
		}), state.AwaitedCondition, "Waits for a VM (2nd in the queue).", "2nd in the queue for a VM"},
		"a run":        {phase(state.PhaseImplementing, none), state.AwaitedRun, "Continues automatically.", "Nothing for you to do right now."},
		"a resumption": {phase(state.PhaseInterrupted, none), state.AwaitedResumption, "Continues automatically later.", "continues automatically"},
		"a posting":    {plan(state.Plan{Revision: 1}), state.AwaitedPosting, "about to be posted", "about to be posted"},
		"an approval":  {plan(state.Plan{Revision: 1, Comment: 7}), state.AwaitedApproval, "waits for a 👍", "a 👍 on revision 1"},
		"a revision": {plan(state.Plan{Revision: 1, Comment: 7, Stale: state.StaleEdited}), state.AwaitedRevision,
			"ask for a new revision", "a request for a new revision"},
		"an answer": {phase(state.PhaseAwaitingAnswer, question(state.AskAgent)), state.AwaitedAnswer, "answer a question", "an answer to"},
		"a restart": {phase(state.PhaseAwaitingAnswer, question(state.AskStopped)), state.AwaitedRestart, "`retry`, or how to continue", "or a comment that says how to continue"},
		"a comment": {phase(state.PhaseAwaitingAnswer, none), state.AwaitedComment, "has to comment", "a comment by a person"},
		"a review":  {phase(state.PhasePROpen, none), state.AwaitedReview, "review the pull request", "a review or a merge"},
		"a reopening": {phase(state.PhasePRClosed, func(t *state.Task) { t.PR = &state.PR{State: state.PRClosed} }), state.AwaitedReopening,
			"reopen the pull request, or to write `retry`", "reopen it, or write `@errand retry`"},
		"a merge": {phase(state.PhasePROpen, func(t *state.Task) { t.PR = &state.PR{Ready: true} }), state.AwaitedMerge, "somebody has to merge", "a merge;"},
		"a retry": {phase(state.PhaseFailed, none), state.AwaitedRetry, "write `retry`", "retry` by a person"},
		"a budget": {phase(state.PhaseFailed, func(t *state.Task) {
			t.End = &state.End{Reason: "the cap is reached", Hint: state.HintBudget, Class: state.ClassBudget}
		}), state.AwaitedBudget, "raise it by `budget`", "budget +5`"},
		"an end": {phase(state.PhaseDone, none), state.AwaitedEnd, "The task has ended.", "The task has ended."},
	} {
		seen[test.awaited] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.task.Awaited(); got != test.awaited {
				t.Fatalf("got awaited %d, want %d", got, test.awaited)
			}
			if got := nextStep(&test.task); !strings.Contains(got, test.page) {
				t.Errorf("got page %q, want %q in it", got, test.page)
			}
			got := comment.Status(&test.task, comment.View{Slug: "errand", Now: time.Unix(1e9, 0)})
			if !strings.Contains(got, test.comment) {
				t.Errorf("got comment %q, want %q in it", got, test.comment)
			}
		})
	}
	for a := range state.AwaitedEnd + 1 {
		if !seen[a] {
			t.Errorf("no case for awaited %d", a)
		}
	}
}

// TestNobodyWorksForWaitingTasks: tasks that are held up form a separate group, in the order in which they began to
// wait, and are not colored like working ones. A task with an active run stays in the group of its phase.
func TestNobodyWorksForWaitingTasks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	task := func(issue int, p state.Phase, waits time.Duration, run state.RunState) *card {
		task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: issue}, TaskPhase: state.TaskPhase{Phase: p}}
		if waits > 0 {
			task.Waiting = &state.Waiting{Kind: state.WaitVM, Place: issue, Since: now.Add(waits)}
		}
		if run != "" {
			task.Run = &state.Run{State: run}
		}
		c := newCard(task)
		return &c
	}
	b := &board{Tasks: []*card{
		task(1, state.PhasePlanning, 0, state.RunActive),
		task(2, state.PhasePlanning, 3*time.Minute, state.RunLaunching),
		task(3, state.PhaseImplementing, time.Minute, ""),
		task(4, state.PhaseImplementing, time.Minute, state.RunActive),
		task(5, state.PhasePROpen, 0, ""),
	}}
	var got []string
	for _, g := range b.Groups() {
		for _, c := range g.Cards {
			got = append(got, fmt.Sprintf("%s %s #%d %s", g.ID, g.Tone, c.Issue, c.Tone()))
		}
	}
	want := []string{
		"phase-planning busy #1 busy", "phase-implementing busy #4 busy", "phase-pr_open people #5 people", "waiting warn #3 warn", "waiting warn #2 warn",
	}
	if !slices.Equal(got, want) || b.Count("busy") != 2 || b.Count("warn") != 2 {
		t.Errorf("got %q, want %q", got, want)
	}
}
