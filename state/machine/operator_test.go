package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A command of the operator has the effect of the same command in a writer's comment, whatever the task does; one of a user without
// write access has none.
func TestOperatorCommandHasEffectOfComment(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]func(*life){
		"queued": (*life).trigger, "plan waits": (*life).toPreliminary, "implementing": (*life).implementing, "pull request": (*life).toPR,
		"stopped":  func(l *life) { l.implementing(); l.comment(state.VerbStop) },
		"failed":   func(l *life) { l.implementing(); l.end(state.RunResult{Class: state.RunFatal, Status: "refused"}) },
		"canceled": func(l *life) { l.implementing(); l.comment(state.VerbCancel) },
		"done":     func(l *life) { l.toPR(); l.do(event.Event{Payload: event.PRClosed{Merged: true}}) },
	} {
		for _, o := range []state.Order{
			{Verb: state.VerbCancel}, {Verb: state.VerbStop}, {Verb: state.VerbRetry}, {Verb: state.VerbRetry, Fresh: true},
			{Verb: state.VerbRestart}, {Verb: state.VerbBudget, MicroUSD: 5e6}, {Verb: state.VerbBudget, VMHours: 3},
		} {
			t.Run(name+"/"+string(o.Verb), func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				bring(l)
				l.task.Money.CapTokens = 100
				commented := order(writer, state.PermissionWrite, o)
				said := event.Of[event.Commented](commented)
				said.Issue, said.Comment = &bug, &state.Comment{ID: 99, Mention: true, At: l.now}
				commented.Payload, commented.Task, commented.Now = said, l.task.Key, l.now
				want := Next(l.task, commented, DefaultPolicy())
				stranger := commented
				stranger.By, stranger.Permission = visitor, state.PermissionRead
				e := event.OperatorCommand(l.task.Key, "r1", o, false)
				e.Now = l.now
				got := Next(l.task, e, DefaultPolicy())
				if got.Task.Phase != want.Task.Phase || got.Task.Gen != want.Task.Gen || got.Task.Step != want.Task.Step ||
					got.Task.Money != want.Task.Money || got.Task.MoreVMHours != want.Task.MoreVMHours {
					t.Errorf("got phase %s, life %d, step %s, money %+v; want %s, %d, %s, %+v", got.Task.Phase, got.Task.Gen, got.Task.Step,
						got.Task.Money, want.Task.Phase, want.Task.Gen, want.Task.Step, want.Task.Money)
				}
				if isRefusal(want) != isRefused(got) {
					t.Errorf("got answer %q, want a refusal: %v (jobs %v)", got.Answer, isRefusal(want), kindsOf(want.Jobs))
				}
				checkOperatorJobs(t, got, l.task)
				if none := Next(l.task, stranger, DefaultPolicy()); none.Task.Phase != l.task.Phase || none.Task.Gen != l.task.Gen || none.Task.Money != l.task.Money {
					t.Errorf("a user without write access changed the task to %s", none.Task.Phase)
				}
			})
		}
	}
}

func isRefused(c Change) bool { return c.Answer != "" && c.Answer != state.ReplyBudgetRaised }

// isRefusal reports whether a writer's command was answered with a reply that it had no effect.
func isRefusal(c Change) bool {
	return slices.ContainsFunc(c.Jobs, func(j state.Job) bool {
		return j.Post != nil && j.Post.Kind == state.PostReply && j.Post.Reason != state.ReplyBudgetRaised
	})
}

// checkOperatorJobs checks that the operator's command leads to no reaction and mentions nobody, that a refusal posts nothing, and
// that the operator does not become the person who requested the work or vouches for its text.
func checkOperatorJobs(t *testing.T, c Change, before *state.Task) {
	t.Helper()
	for _, j := range c.Jobs {
		if j.Kind == state.JobReact {
			t.Errorf("got the reaction %+v to a command without a comment", j.Args)
		}
		if j.Kind == state.JobPost && isRefused(c) || j.Kind == state.JobStatus && isRefused(c) && before.Status.Shown == before.Visible {
			t.Errorf("got job %s with post %+v for a refused command", j.Kind, j.Post)
		}
		if j.Post != nil && (j.Post.By.Login != "" || j.Post.By.ID != 0) {
			t.Errorf("a comment names %+v for the operator's command", j.Post.By)
		}
	}
	if c.Task.Trigger.By != before.Trigger.By || c.Task.Frozen.By != before.Frozen.By || c.Task.Frozen.Hash != before.Frozen.Hash {
		t.Errorf("got trigger %+v and text of %+v, want those before: %+v, %+v", c.Task.Trigger, c.Task.Frozen.By, before.Trigger, before.Frozen.By)
	}
	if reason := c.Task.History[len(c.Task.History)-1].Reason; len(c.Task.History) != len(before.History) && strings.Contains(reason, "@") &&
		!strings.Contains(reason, "the operator") {
		t.Errorf("the history says %q, want the operator", reason)
	}
}

// A retry or restart by the operator of a task whose issue is closed is refused, and a command for an issue without a task as well.
func TestOperatorCommandNeedsOpenIssueAndTask(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.comment(state.VerbCancel)
	for _, v := range []state.Verb{state.VerbRetry, state.VerbRestart} {
		e := event.OperatorCommand(l.task.Key, "r1", state.Order{Verb: v}, true)
		if c := Next(l.task, e, DefaultPolicy()); c.Answer != state.ReplyRetryClosed || c.Task.Phase != state.PhaseCancelled {
			t.Errorf("%s: got answer %q and phase %s", v, c.Answer, c.Task.Phase)
		}
		if c := Next(nil, e, DefaultPolicy()); c.Task != nil || len(c.Jobs) > 0 {
			t.Errorf("%s without a task: got %+v", v, c)
		}
	}
}

// A command that a person with write access gives on errand's pages has the effect of the same command in their comment, and names them:
// only a comment to answer is missing, and edits of the issue are not accepted.
func TestCommandOnPagesNamesThePerson(t *testing.T) {
	t.Parallel()
	person := state.Person{ID: 77, Login: "wendy"}
	for name, c := range map[string]struct {
		bring   func(*life)
		order   state.Order
		reason  string // of the newest phase
		trigger bool   // the person began the next life
	}{
		"cancel":         {(*life).implementing, state.Order{Verb: state.VerbCancel}, "@wendy canceled it", false},
		"stop":           {(*life).implementing, state.Order{Verb: state.VerbStop}, "@wendy stopped it", false},
		"restart":        {(*life).implementing, state.Order{Verb: state.VerbRestart}, "restarted by @wendy", true},
		"retry":          {func(l *life) { l.implementing(); l.comment(state.VerbStop) }, state.Order{Verb: state.VerbRetry}, "@wendy said retry", false},
		"retry the end":  {func(l *life) { l.implementing(); l.comment(state.VerbCancel) }, state.Order{Verb: state.VerbRetry}, "@wendy said retry", true},
		"adopt the pull": {func(l *life) { l.toPR(); l.comment(state.VerbCancel) }, state.Order{Verb: state.VerbRetry}, "@wendy said retry", true},
		"budget":         {(*life).implementing, state.Order{Verb: state.VerbBudget, MicroUSD: 5e6}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			commented := order(person, state.PermissionWrite, c.order)
			said := event.Of[event.Commented](commented)
			said.Issue, said.Comment = &bug, &state.Comment{ID: 99, Mention: true, At: l.now}
			commented.Payload, commented.Task, commented.Now = said, l.task.Key, l.now
			want := Next(l.task, commented, DefaultPolicy())
			e := event.PersonCommand(l.task.Key, "r1", person, c.order, false)
			e.Now = l.now
			got := Next(l.task, e, DefaultPolicy())
			if got.Task.Phase != want.Task.Phase || got.Task.Gen != want.Task.Gen || got.Task.Money != want.Task.Money || isRefused(got) {
				t.Errorf("got phase %s, life %d, answer %q; want %s, %d", got.Task.Phase, got.Task.Gen, got.Answer, want.Task.Phase, want.Task.Gen)
			}
			trigger := l.task.Trigger.By
			if c.trigger {
				trigger = person // without a mark: the person wrote to GitHub in the eyes of everything that follows
			}
			if got.Task.Trigger.By != trigger || got.Task.Trigger.Operator || got.Task.Trigger.Via != want.Task.Trigger.Via {
				t.Errorf("got trigger %+v, want by %+v via %s", got.Task.Trigger, trigger, want.Task.Trigger.Via)
			}
			if got.Task.Frozen.By != l.task.Frozen.By {
				t.Errorf("the text was accepted by %+v", got.Task.Frozen.By)
			}
			if reason := got.Task.History[len(got.Task.History)-1].Reason; c.reason != "" && !strings.HasPrefix(reason, c.reason) {
				t.Errorf("the history says %q, want %q", reason, c.reason)
			}
			for _, j := range got.Jobs {
				if j.Kind == state.JobReact {
					t.Errorf("got the reaction %+v to a command without a comment", j.Args)
				}
				if j.Post != nil && j.Post.By.Login != "" && j.Post.By.Login != "wendy" {
					t.Errorf("a comment names %+v", j.Post.By)
				}
			}
		})
	}
}
