package state

import (
	"testing"
	"time"
)

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

// TestAnswersAreCounted: what is booked is an answer, and a refusal is none.
func TestAnswersAreCounted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	run := l.task.Run.ID
	held := &Waiting{Kind: WaitMoney, Detail: "today's cap is reached", Until: l.now.Add(time.Second)}
	for _, e := range []Event{{Money: &Money{OutputTokens: 1}}, {Money: &Money{}, Waiting: held}, {Money: &Money{OutputTokens: 1}, Waiting: held}} {
		e.Kind, e.Run = EventSpent, run
		l.do(e)
	}
	if got := l.task.Run.Answers; got != 2 {
		t.Errorf("%d answers, want 2", got)
	}
	l.end(RunResult{Status: "ok", Class: "success", Outcome: "done", Text: "a plan", Used: &Usage{Input: 3}})
	if last := l.task.Runs[len(l.task.Runs)-1]; last.Answers != 2 || last.Used == nil || last.Used.Input != 3 {
		t.Errorf("filed with %d answers, used %+v", last.Answers, last.Used)
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
	if l.task.Phase != PhaseFailed || l.task.End.Class != ClassBudget || l.task.End.Hint != HintBudget || l.task.Money.Unpriced != "mystery" {
		t.Fatalf("phase %s, end %+v, money %+v", l.task.Phase, l.task.End, l.task.Money)
	}
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 99}, Orders: []Order{{Verb: VerbBudget, MicroUSD: 5_000_000}}})
	if l.task.Phase == PhaseFailed {
		t.Error("a raised cap does not go on")
	}
}

// TestARunThatIsHeld goes on by itself when there is money again, and has not used up an attempt.
func TestARunThatIsHeld(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	run := l.task.Run
	tomorrow := l.now.Add(9 * time.Hour)
	l.do(Event{Kind: EventSpent, Run: run.ID, Money: &Money{}, Waiting: &Waiting{Kind: WaitMoney, Detail: "today's cap is reached", Until: tomorrow}})
	l.end(RunResult{Status: "auth", Class: "fatal", Message: "403"})
	w := l.task.Waiting
	if l.task.Phase != PhaseInterrupted || w == nil || w.Kind != WaitMoney || !w.Until.Equal(tomorrow) {
		t.Fatalf("phase %s, waiting %+v", l.task.Phase, w)
	}
	l.now = tomorrow
	l.do(Event{Kind: EventDue, Detail: "resume"})
	if l.task.Run == nil || l.task.Run.Attempt != run.Attempt {
		t.Errorf("goes on with %+v, the run before was attempt %d", l.task.Run, run.Attempt)
	}
}

// TestPurse: what tasks come to cost is summed up by day and month, and a cap holds until the next.
func TestPurse(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = spend
	s.advance(time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC).Sub(testStart))
	apply := func(issue int, micro int64) {
		t.Helper()
		if _, err := s.Apply(t.Context(), Event{Kind: EventSpent, Task: TaskKey{Repo: 7, Issue: issue}, Money: &Money{InputTokens: 1, MicroUSD: micro}}, Ack{}); err != nil {
			t.Fatal(err)
		}
	}
	caps := Caps{DayMicroUSD: 50, MonthMicroUSD: 70}
	held := func(want string) {
		t.Helper()
		w, err := s.Held(t.Context(), caps, Money{}, Money{}, s.time())
		got := ""
		if w != nil {
			got = w.Until.Format(time.DateTime)
		}
		if err != nil || got != want {
			t.Errorf("held until %q, want %q: %v", got, want, err)
		}
	}
	held("")
	apply(1, 30)
	apply(2, 19)
	held("")
	apply(1, 1)
	held("2026-12-01 00:00:00")
	s.advance(2 * time.Minute)
	held("")
	apply(1, 20)
	apply(2, 29)
	held("")
	s.advance(24 * time.Hour)
	apply(2, 30)
	held("2027-01-01 00:00:00")
	day, month, err := s.Spent(t.Context(), s.time())
	if want := (Money{InputTokens: 1, MicroUSD: 30}); err != nil || day != want || month.MicroUSD != 79 || month.InputTokens != 3 {
		t.Errorf("the day has cost %+v, the month %+v: %v", day, month, err)
	}
	if w, err := s.Held(t.Context(), Caps{}, Money{}, Money{}, s.time()); w != nil || err != nil {
		t.Errorf("held without caps: %v, %v", w, err)
	}
}

// spend is a Next that does nothing but spend.
func spend(t *Task, e Event, _ Policy) Change {
	next := &Task{Key: e.Task, Phase: PhaseQueued, Gen: 1}
	if t != nil {
		c := *t
		next = &c
	}
	next.Money.Add(*e.Money)
	return Change{Task: next}
}

// TestCapOfARun: a run that the gateway refused the model for a cap ends as budget, with its work saved, however
// its agent took it; another goes on.
func TestCapOfARun(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]Order{"retry": {Verb: VerbRetry}, "budget": {Verb: VerbBudget, Tokens: 500}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.task.Settings.Limits.RunTokens, l.task.Money.CapTokens = 100, 1000
			run := l.task.Run.ID
			l.do(Event{Kind: EventSpent, Run: run, Money: &Money{InputTokens: 90}})
			if w := l.task.Capped(Money{}, Money{}, Money{}, false); w != nil {
				t.Fatalf("capped: %+v", w)
			}
			held := l.task.Capped(Money{OutputTokens: 10}, Money{OutputTokens: 10}, Money{}, false)
			if held == nil || held.Detail != "The cap of 100 tokens for one run is reached: it has used 100." {
				t.Fatalf("capped: %+v", held)
			}
			l.do(Event{Kind: EventSpent, Run: run, Money: &Money{OutputTokens: 9}, Waiting: held})
			l.end(RunResult{Status: "crashed", Class: "retryable", Message: "stream disconnected"})
			l.want(PhaseFailed, JobStop, JobPost)
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.Status != "budget" || l.task.End.Reason != held.Detail || l.task.End.Hint != HintRunCap || l.task.End.Class != ClassBudget {
				t.Fatalf("run %s, end %+v", last.Status, l.task.End)
			}
			l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 99}, Orders: []Order{order}})
			if l.task.Phase == PhaseFailed || l.task.Capped(Money{}, Money{}, Money{}, false) != nil {
				t.Errorf("%s does not go on: %s", name, l.task.Phase)
			}
			if want := int64(1000 + order.Tokens); l.task.Money.CapTokens != want {
				t.Errorf("cap of %d tokens, want %d", l.task.Money.CapTokens, want)
			}
		})
	}
}

// TestKeyRefused: people are told once what the operator has to do, however often it is looked again.
func TestKeyRefused(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	posts := 0
	for range 3 {
		l.launch()
		until := l.now.Add(time.Minute)
		l.do(Event{Kind: EventSpent, Run: l.task.Run.ID, Money: &Money{}, Waiting: &Waiting{Kind: WaitKey, Detail: "the key is refused", Hint: "Set another.", Until: until}})
		l.end(RunResult{Status: "auth", Class: "fatal", Message: "403"})
		for _, j := range l.jobs {
			if j.Kind == JobPost {
				posts++
			}
		}
		if w := l.task.Waiting; l.task.Phase != PhaseInterrupted || w.Kind != WaitKey || w.Hint == "" {
			t.Fatalf("phase %s, waiting %+v", l.task.Phase, w)
		}
		l.now = until
		l.do(Event{Kind: EventDue, Detail: "resume"})
		l.do(Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitKey, Detail: "the key is refused", Hint: "Set another.", Until: until.Add(time.Minute)}})
	}
	if posts != 1 {
		t.Errorf("told %d times", posts)
	}
}

// TestHeldForAMoment: what held a run up may be over when its agent has ended for it, which is no failure; if the
// model has answered since, the end is another's.
func TestHeldForAMoment(t *testing.T) {
	t.Parallel()
	for answered, want := range map[bool]Phase{false: PhaseInterrupted, true: PhaseFailed} {
		l := newLife(t)
		l.trigger()
		l.start()
		l.launch()
		run := l.task.Run.ID
		l.do(Event{Kind: EventSpent, Run: run, Money: &Money{}, Waiting: &Waiting{Kind: WaitMoney, Detail: "today's cap is reached", Until: l.now.Add(2 * time.Second)}})
		l.now = l.now.Add(time.Minute)
		if answered {
			l.do(Event{Kind: EventSpent, Run: run, Money: &Money{OutputTokens: 1}})
		}
		l.end(RunResult{Status: "auth", Class: "fatal", Message: "403"})
		if l.task.Phase != want || !answered && l.task.Waiting.Until.Before(l.now) {
			t.Errorf("answered since: %t: phase %s, waiting %+v", answered, l.task.Phase, l.task.Waiting)
		}
	}
}
