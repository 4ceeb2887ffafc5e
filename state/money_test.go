package state

import "testing"

// TestWhatTheGatewayCountsIsWhatARunCosts: as soon as one answer was counted, what the agent says of its
// own cost is not looked at any more, in whatever order the two come.
func TestWhatTheGatewayCountsIsWhatARunCosts(t *testing.T) {
	t.Parallel()
	counted := Money{InputTokens: 100, OutputTokens: 10, MicroUSD: 5000}
	said := Money{InputTokens: 1, OutputTokens: 1, MicroUSD: 7}
	ended := RunResult{Outcome: "done", Text: "a plan", Money: said}
	spend := func(l *life, run string) {
		m := counted
		l.do(Event{Kind: EventSpent, Run: run, Money: &m})
	}
	tests := map[string]struct {
		play func(l *life, run string)
		want Money
	}{
		"not counted": {func(l *life, _ string) { l.end(ended) }, said},
		"counted":     {func(l *life, run string) { spend(l, run); spend(l, run); l.end(ended) }, Money{InputTokens: 200, OutputTokens: 20, MicroUSD: 10000}},
		"a sign of life between": {func(l *life, run string) {
			spend(l, run)
			l.do(Event{Kind: EventProgress, Run: run, Progress: &Progress{Money: said}})
			l.end(ended)
		}, counted},
		"counted after the end": {func(l *life, run string) { l.end(ended); spend(l, run) }, counted},
		"stopped, then counted, then told": {func(l *life, run string) {
			l.do(Event{Kind: EventIssueClosed, By: writer, Permission: PermissionWrite})
			spend(l, run)
			l.do(Event{Kind: EventRunEnded, Run: run, Result: &ended})
		}, counted},
		"another run's": {func(l *life, run string) { spend(l, run+"0"); l.end(ended) }, said},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			run := l.task.Run.ID
			test.play(l, run)
			got := l.task.Money
			got.CapMicroUSD = 0
			if got != test.want {
				t.Errorf("the task has cost %+v, want %+v", got, test.want)
			}
			last := l.task.Runs[len(l.task.Runs)-1].Money
			if last != test.want {
				t.Errorf("the run has cost %+v, want %+v", last, test.want)
			}
		})
	}
}

// TestARunThatEndsAtTheCap waits for a raise, however its agent took the refusal.
func TestARunThatEndsAtTheCap(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	m := Money{MicroUSD: l.task.Money.CapMicroUSD, Unpriced: "mystery"}
	l.do(Event{Kind: EventSpent, Run: l.task.Run.ID, Money: &m})
	l.end(RunResult{Status: "auth", Class: "fatal", Message: "403"})
	if l.task.Phase != PhaseFailed || l.task.End.Class != ClassBudget || l.task.End.Hint != hintBudget || l.task.Money.Unpriced != "mystery" {
		t.Fatalf("phase %s, end %+v, money %+v", l.task.Phase, l.task.End, l.task.Money)
	}
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 99}, Orders: []Order{{Verb: VerbBudget, MicroUSD: 5_000_000}}})
	if l.task.Phase == PhaseFailed {
		t.Error("a raised cap does not go on")
	}
}
