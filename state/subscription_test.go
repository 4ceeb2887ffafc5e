package state

import (
	"slices"
	"strings"
	"testing"
)

// TestOnASubscription: what is asked on a subscription meets caps on tokens only, and there are no dollars to raise.
func TestOnASubscription(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.task.Settings.Limits.RunMicroUSD = 1
	run := l.task.Run.ID
	l.do(Event{Kind: EventSpent, Run: run, Money: &Money{InputTokens: 900, Subscription: true}})
	if m := l.task.Money; !m.Free() || !l.task.Run.Money.Free() || m.Tokens() != 900 {
		t.Fatalf("%+v", m)
	}
	before := l.task.Money.CapMicroUSD
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 99}, Orders: []Order{{Verb: VerbBudget, MicroUSD: 5_000_000}}})
	if l.task.Money.CapMicroUSD != before || !l.replied(ReplyNoBudget) {
		t.Errorf("a cap of %d; %+v", l.task.Money.CapMicroUSD, l.jobs)
	}
	l.task.Money.CapTokens = 1000
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 100}, Orders: []Order{{Verb: VerbBudget, Tokens: 500}}})
	if l.task.Money.CapTokens != 1500 || !l.replied(ReplyBudgetRaised) {
		t.Errorf("a cap of %d tokens", l.task.Money.CapTokens)
	}
	l.task.Money.MicroUSD, l.task.Run.Money.MicroUSD = before, 1 // by a key, before
	if w := l.task.Capped(Money{}, Money{}, Money{}, true); w != nil {
		t.Errorf("held by dollars: %+v", w)
	}
	if w := l.task.Capped(Money{}, Money{}, Money{}, false); w == nil {
		t.Error("a key is not held by dollars")
	}
	if w := l.task.Capped(Money{InputTokens: 600}, Money{}, Money{}, true); w == nil || !strings.Contains(w.Detail, "1,500 tokens") {
		t.Errorf("not held by tokens: %+v", w)
	}
}

// TestEndOfARunOnASubscription: that its task has spent its dollars by a key is no reason of its end.
func TestEndOfARunOnASubscription(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		m     Money
		class string
	}{"a subscription": {Money{InputTokens: 9, Subscription: true}, "agent"}, "a key": {Money{InputTokens: 9, MicroUSD: 1}, ClassBudget}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.task.Money.MicroUSD = l.task.Money.CapMicroUSD
			l.do(Event{Kind: EventSpent, Run: l.task.Run.ID, Money: &test.m})
			l.end(RunResult{Status: "refused", Class: "fatal", Message: "it will not"})
			if l.task.Phase != PhaseFailed || l.task.End.Class != test.class {
				t.Errorf("%s, %+v", l.task.Phase, l.task.End)
			}
		})
	}
}

// TestAllOnASubscription: a task says so from its start, before anything is asked.
func TestAllOnASubscription(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	s := DefaultSettings()
	s.Subscription = true
	l.do(Event{Kind: EventStarted, Start: &Start{Settings: s, Visible: true, Branch: Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}})
	if !l.task.Money.Free() {
		t.Errorf("%+v", l.task.Money)
	}
}

// TestPurseOnASubscription: the day and the month of all tasks know of it, and dollars are those of keys alone.
func TestPurseOnASubscription(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = spend
	spent := func() Money {
		t.Helper()
		day, month, err := s.Spent(t.Context(), s.time())
		if err != nil || day != month {
			t.Fatalf("%+v, %+v, %v", day, month, err)
		}
		return day
	}
	for _, step := range []struct{ add, want Money }{
		{Money{InputTokens: 5, Subscription: true}, Money{InputTokens: 5, Subscription: true}},
		{Money{InputTokens: 1, MicroUSD: 7}, Money{InputTokens: 6, MicroUSD: 7, Subscription: true}},
	} {
		if _, err := s.Apply(t.Context(), Event{Kind: EventSpent, Task: TaskKey{Repo: 7, Issue: 1}, Money: &step.add}, Ack{}); err != nil {
			t.Fatal(err)
		}
		if got := spent(); got != step.want {
			t.Errorf("spent %+v, want %+v", got, step.want)
		}
	}
}

// replied reports whether the last event made this answer.
func (l *life) replied(reason string) bool {
	return slices.ContainsFunc(l.jobs, func(j Job) bool { return j.Post != nil && j.Post.Kind == PostReply && j.Post.Reason == reason })
}
