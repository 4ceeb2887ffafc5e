package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// As soon as one answer was counted, the cost that the agent reports is ignored, in whatever order the two arrive.
func TestGatewayCountReplacesReportedCost(t *testing.T) {
	t.Parallel()
	counted := state.Money{InputTokens: 100, OutputTokens: 10, MicroUSD: 5000}
	said := state.Money{InputTokens: 1, OutputTokens: 1, MicroUSD: 7}
	ended := state.RunResult{Outcome: "done", Text: "a plan", Money: said}
	spend := func(l *life, run string) {
		m := counted
		l.do(event.Event{Run: run, Payload: event.ModelCalled{Money: m}})
	}
	tests := map[string]struct {
		play func(l *life, run string)
		want state.Money
	}{
		"not counted": {func(l *life, _ string) { l.end(ended) }, said},
		"counted":     {func(l *life, run string) { spend(l, run); spend(l, run); l.end(ended) }, state.Money{InputTokens: 200, OutputTokens: 20, MicroUSD: 10000}},
		"a sign of life between": {func(l *life, run string) {
			spend(l, run)
			l.do(event.Event{Run: run, Payload: event.Progress{Money: said}})
			l.end(ended)
		}, counted},
		"counted after the end": {func(l *life, run string) { l.end(ended); spend(l, run) }, counted},
		"stopped, then counted, then reported": {func(l *life, run string) {
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.IssueClosed{}})
			spend(l, run)
			l.do(event.Event{Run: run, Payload: event.RunEnded{Result: ended}})
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
				t.Errorf("got task cost %+v, want %+v", got, test.want)
			}
			last := l.task.Runs[len(l.task.Runs)-1].Money
			if last != test.want {
				t.Errorf("got run cost %+v, want %+v", last, test.want)
			}
		})
	}
}

// A recorded call counts as an answer, a refusal does not.
func TestAnswersAreCounted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	run := l.task.Run.ID
	held := &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap is reached", Until: l.now.Add(time.Second)}
	for _, spent := range []event.ModelCalled{{Money: state.Money{OutputTokens: 1}}, {Waiting: held}, {Money: state.Money{OutputTokens: 1}, Waiting: held}} {
		l.do(event.Event{Run: run, Payload: spent})
	}
	if got := l.task.Run.Answers; got != 2 {
		t.Errorf("got %d answers, want 2", got)
	}
	l.end(state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "done", Text: "a plan", Used: &state.Usage{Input: 3}})
	if last := l.task.Runs[len(l.task.Runs)-1]; last.Answers != 2 || last.Used == nil || last.Used.Input != 3 {
		t.Errorf("got a filed run with %d answers, used %+v", last.Answers, last.Used)
	}
}

// A run that ends at the cap waits for a raise, however its agent handled the refusal.
func TestRunAtTheCapWaitsForARaise(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	m := state.Money{MicroUSD: l.task.Money.CapMicroUSD, Unpriced: "mystery"}
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.ModelCalled{Money: m}})
	l.end(state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403"})
	if l.task.Phase != state.PhaseFailed || l.task.End.Class != state.ClassBudget || l.task.End.Hint != state.HintBudget || l.task.Money.Unpriced != "mystery" {
		t.Fatalf("got phase %s, end %+v, money %+v", l.task.Phase, l.task.End, l.task.Money)
	}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 99}, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}}}})
	if l.task.Phase == state.PhaseFailed {
		t.Error("got no continuation after a raised cap, want one")
	}
}

// The task continues automatically when there is money again, and the wait counts as no attempt.
func TestTemporaryDenialCountsAsNoAttempt(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	run := l.task.Run
	tomorrow := l.now.Add(9 * time.Hour)
	l.do(event.Event{Run: run.ID, Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap is reached", Until: tomorrow}}})
	l.end(state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403"})
	w := l.task.Waiting
	if l.task.Phase != state.PhaseInterrupted || w == nil || w.Kind != state.WaitMoney || !w.Until.Equal(tomorrow) {
		t.Fatalf("got phase %s, waiting %+v", l.task.Phase, w)
	}
	l.now = tomorrow
	l.do(event.Event{Payload: event.NewDue("resume", "")})
	if l.task.Run == nil || l.task.Run.Attempt != run.Attempt {
		t.Errorf("got run %+v after attempt %d", l.task.Run, run.Attempt)
	}
}

// A run that the gateway refused because of a cap ends as budget, with its work saved, however its agent handled the
// refusal; another run can continue.
func TestRunCapEndsTheRun(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]state.Order{"retry": {Verb: state.VerbRetry}, "budget": {Verb: state.VerbBudget, Tokens: 500}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.task.Settings.Limits.RunTokens, l.task.Money.CapTokens = 100, 1000
			run := l.task.Run.ID
			l.do(event.Event{Run: run, Payload: event.ModelCalled{Money: state.Money{InputTokens: 90}}})
			if w := l.task.Capped(state.Money{}, state.Money{}, state.Money{}, false); w != nil {
				t.Fatalf("got denial %+v", w)
			}
			held := l.task.Capped(state.Money{OutputTokens: 10}, state.Money{OutputTokens: 10}, state.Money{}, false)
			if held == nil || held.Detail != "The cap of 100 tokens for one run is reached: it has used 100." {
				t.Fatalf("got denial %+v", held)
			}
			l.do(event.Event{Run: run, Payload: event.ModelCalled{Money: state.Money{OutputTokens: 9}, Waiting: held}})
			l.end(state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable, Message: "stream disconnected"})
			l.want(state.PhaseFailed, state.JobStop, state.JobPost)
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.Status != state.StatusBudget || l.task.End.Reason != held.Detail || l.task.End.Hint != state.HintRunCap || l.task.End.Class != state.ClassBudget {
				t.Fatalf("got run %s, end %+v", last.Status, l.task.End)
			}
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 99}, Orders: []state.Order{order}}})
			if l.task.Phase == state.PhaseFailed || l.task.Capped(state.Money{}, state.Money{}, state.Money{}, false) != nil {
				t.Errorf("%s: got phase %s, want the task continued", name, l.task.Phase)
			}
			if want := int64(1000 + order.Tokens); l.task.Money.CapTokens != want {
				t.Errorf("got a cap of %d tokens, want %d", l.task.Money.CapTokens, want)
			}
		})
	}
}

// The comment about the operator's task is posted once, however often the key is tried again.
func TestRefusedKeyIsPostedOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	posts := 0
	for range 3 {
		l.launch()
		until := l.now.Add(time.Minute)
		l.do(event.Event{Run: l.task.Run.ID, Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitKey, Detail: "the key is refused", Hint: "Set another.", Until: until}}})
		l.end(state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403"})
		for _, j := range l.jobs {
			if j.Kind == state.JobPost {
				posts++
			}
		}
		if w := l.task.Waiting; l.task.Phase != state.PhaseInterrupted || w.Kind != state.WaitKey || w.Hint == "" {
			t.Fatalf("got phase %s, waiting %+v", l.task.Phase, w)
		}
		l.now = until
		l.do(event.Event{Payload: event.NewDue("resume", "")})
		l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitKey, Detail: "the key is refused", Hint: "Set another.", Until: until.Add(time.Minute)}}})
	}
	if posts != 1 {
		t.Errorf("got %d comments, want 1", posts)
	}
}

// The cause of a refusal may have ended when the agent ends, which is no failure; if the model has answered since, the
// end has another cause.
func TestEndedDenialIsNotTheCause(t *testing.T) {
	t.Parallel()
	for answered, want := range map[bool]state.Phase{false: state.PhaseInterrupted, true: state.PhaseFailed} {
		l := newLife(t)
		l.trigger()
		l.start()
		l.launch()
		run := l.task.Run.ID
		l.do(event.Event{Run: run, Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap is reached", Until: l.now.Add(2 * time.Second)}}})
		l.now = l.now.Add(time.Minute)
		if answered {
			l.do(event.Event{Run: run, Payload: event.ModelCalled{Money: state.Money{OutputTokens: 1}}})
		}
		l.end(state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403"})
		if l.task.Phase != want || !answered && l.task.Waiting.Until.Before(l.now) {
			t.Errorf("answered since: %t: got phase %s, waiting %+v", answered, l.task.Phase, l.task.Waiting)
		}
	}
}
