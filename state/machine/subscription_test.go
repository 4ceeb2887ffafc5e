package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestSubscriptionHasNoDollarCap: model calls on a subscription only count towards caps on tokens, and there is no cap
// in dollars to raise.
func TestSubscriptionHasNoDollarCap(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.task.Settings.Limits.RunMicroUSD = 1
	run := l.task.Run.ID
	l.do(event.Event{Run: run, Payload: event.ModelCalled{Money: state.Money{InputTokens: 900, Subscription: true}}})
	if m := l.task.Money; !m.Free() || !l.task.Run.Money.Free() || m.Tokens() != 900 {
		t.Fatalf("got money %+v", m)
	}
	before := l.task.Money.CapMicroUSD
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 99}, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}}}})
	if l.task.Money.CapMicroUSD != before || !l.hasReply(state.ReplyNoBudget) {
		t.Errorf("got a cap of %d, jobs %+v", l.task.Money.CapMicroUSD, l.jobs)
	}
	l.task.Money.CapTokens = 1000
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 100}, Orders: []state.Order{{Verb: state.VerbBudget, Tokens: 500}}}})
	if l.task.Money.CapTokens != 1500 || !l.hasReply(state.ReplyBudgetRaised) {
		t.Errorf("got a cap of %d tokens", l.task.Money.CapTokens)
	}
	l.task.Money.MicroUSD, l.task.Run.Money.MicroUSD = before, 1 // by a key, before
	if w := l.task.Capped(state.Money{}, state.Money{}, state.Money{}, true); w != nil {
		t.Errorf("got denial %+v because of dollars, want none", w)
	}
	if w := l.task.Capped(state.Money{}, state.Money{}, state.Money{}, false); w == nil {
		t.Error("got no denial of a key because of dollars, want one")
	}
	if w := l.task.Capped(state.Money{InputTokens: 600}, state.Money{}, state.Money{}, true); w == nil || !strings.Contains(w.Detail, "1,500 tokens") {
		t.Errorf("got denial %+v, want one because of tokens", w)
	}
}

// TestSubscriptionRunDoesNotEndAtDollarCap: that its task has spent its dollars by a key is no reason of its end.
func TestSubscriptionRunDoesNotEndAtDollarCap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		m     state.Money
		class state.FailureClass
	}{"a subscription": {state.Money{InputTokens: 9, Subscription: true}, "agent"}, "a key": {state.Money{InputTokens: 9, MicroUSD: 1}, state.ClassBudget}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.task.Money.MicroUSD = l.task.Money.CapMicroUSD
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.ModelCalled{Money: test.m}})
			l.end(state.RunResult{Status: state.StatusRefused, Class: state.RunFatal, Message: "it will not"})
			if l.task.Phase != state.PhaseFailed || l.task.End.Class != test.class {
				t.Errorf("got phase %s, end %+v", l.task.Phase, l.task.End)
			}
		})
	}
}

// TestSubscriptionIsKnownFromTheStart: a task says so from its start, before anything is asked.
func TestSubscriptionIsKnownFromTheStart(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	s := settings.Default()
	s.Subscription = true
	l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true, Branch: state.Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}}})
	if !l.task.Money.Free() {
		t.Errorf("got money %+v", l.task.Money)
	}
}

// hasReply reports whether the last event made this answer.
func (l *life) hasReply(reason string) bool {
	return slices.ContainsFunc(l.jobs, func(j state.Job) bool {
		return j.Post != nil && j.Post.Kind == state.PostReply && j.Post.Reason == reason
	})
}

// TestNoTokenCapToRaise: a task without a cap on tokens gets none by a command that raises it, and whoever gave it is told.
func TestNoTokenCapToRaise(t *testing.T) {
	t.Parallel()
	raise := state.Order{Verb: state.VerbBudget, Tokens: 500}
	l := newLife(t)
	l.implementing()
	before := l.task.Money
	e := event.OperatorCommand(l.task.Key, "r1", raise, false)
	e.Now = l.now
	got := Next(l.task, e, DefaultPolicy())
	if got.Answer != state.ReplyNoTokenCap || got.Task.Money != before {
		t.Errorf("the operator: got answer %q, money %+v", got.Answer, got.Task.Money)
	}
	checkOperatorJobs(t, got, l.task)
	l.do(order(writer, state.PermissionWrite, raise))
	if l.task.Money != before || !l.hasReply(state.ReplyNoTokenCap) || l.hasReply(state.ReplyBudgetRaised) {
		t.Errorf("a comment: got money %+v, jobs %v", l.task.Money, kindsOf(l.jobs))
	}
}
