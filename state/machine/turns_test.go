package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// refuseTurns makes the gateway refuse the active run's model calls because its turns are used up.
func (l *life) refuseTurns() {
	l.t.Helper()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.ModelCalled{Money: state.Money{}, Waiting: l.task.Run.OutOfTurnsDenial()}})
}

// TestOutOfTurns: a run whose model calls were refused because of its turns ends for that reason, whatever its program
// reports, and the hint suggests twice its turns.
func TestOutOfTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit int
		res   state.RunResult
		hint  string
	}{
		"took it for an error of the key": {30, state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403"}, "Comment `retry turns=60` to continue with more turns."},
		"ended well all the same":         {3, state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "done"}, "Comment `retry turns=6` to continue with more turns."},
		"would be tried again":            {2, state.RunResult{Status: state.StatusOverloaded, Class: state.RunRetryable}, "Comment `retry turns=4` to continue with more turns."},
		"judged so by its program":        {20, state.RunResult{Status: state.StatusMaxTurns, Class: state.RunFatal}, "Comment `retry turns=40` to continue with more turns."},
		"many":                            {300, state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable}, "Comment `retry turns=500` to continue with more turns."},
		"the most":                        {500, state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable}, "Comment `retry turns=500` to continue with the same number of turns, or split the issue."},
		"the operator gives more":         {900, state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable}, "Comment `retry` to continue with the same number of turns, or split the issue."},
		"launched by an earlier errand":   {0, state.RunResult{Status: state.StatusMaxTurns, Class: state.RunFatal}, "Comment `retry turns=60` to continue with more turns."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.task.Run.TurnLimit, l.task.Run.MaxTurns = tc.limit, tc.limit
			if tc.res.Status != state.StatusMaxTurns {
				l.refuseTurns()
			}
			l.end(tc.res)
			l.want(state.PhaseFailed, state.JobStop, state.JobPost)
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.Status != state.StatusMaxTurns || last.Class != state.RunFatal || l.task.End.Class != state.ClassAgent || l.task.End.Hint != tc.hint {
				t.Errorf("got run %s (%s), end %+v", last.Status, last.Class, l.task.End)
			}
		})
	}
}

// TestOtherCausesThanTurns: causes that are more precise than the gateway's refusal are kept, and so is the conclusion
// reported by the tool finish.
func TestOtherCausesThanTurns(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.refuseTurns()
	l.end(state.RunResult{Status: state.StatusVMLost, Class: state.RunRetryable})
	l.want(state.PhaseInterrupted)

	l = newLife(t)
	l.implementing()
	l.call(state.Call{ID: "f", Tool: state.CallFinish, Result: &state.Conclusion{Outcome: "done", Title: "From the tool"}})
	l.refuseTurns()
	l.end(state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403"})
	l.want(state.PhaseImplementing, state.JobCollect)

	l = newLife(t)
	l.implementing()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitMoney, Detail: "the cap"}}})
	l.end(state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "done"})
	l.want(state.PhaseImplementing, state.JobCollect)
}

// TestRunOutOfTurnsIsStopped: a program that keeps calling the model is stopped after a while, once, and its cost is
// counted.
func TestRunOutOfTurnsIsStopped(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	run := l.task.Run.ID
	due := event.Event{Payload: event.NewDue(state.DueTurns, run)}
	l.do(due)
	l.want(state.PhaseImplementing)
	l.task.Run.TurnLimit, l.task.Run.MaxTurns = 4, 4
	l.refuseTurns()
	l.want(state.PhaseImplementing, state.JobDue)
	if at := l.jobs[0].NotBefore; !at.Equal(l.now.Add(turnsGrace)) || turnsGrace < time.Minute {
		t.Errorf("got a check at %s, now is %s", at, l.now)
	}
	l.refuseTurns()
	l.want(state.PhaseImplementing)
	l.do(due)
	l.want(state.PhaseFailed, state.JobStop, state.JobPost)
	if hint := l.task.End.Hint; hint != "Comment `retry turns=8` to continue with more turns." {
		t.Errorf("got hint %q", hint)
	}
	l.do(event.Event{Run: run, Payload: event.RunEnded{Result: state.RunResult{Status: state.StatusInterrupted, Class: state.RunRetryable, Turns: 4}}})
	last := l.task.Runs[len(l.task.Runs)-1]
	if !last.Reported || last.Turns != 4 || last.Status != state.StatusMaxTurns {
		t.Errorf("got filed run %+v", last)
	}
	l.do(due)
	l.want(state.PhaseFailed)
}

// TestRecordAndTaskHaveTheSameCause: the gateway's reason for refusing model calls is the cause in the run's record and
// in the task, whatever the program reports. More precise causes are kept.
func TestRecordAndTaskHaveTheSameCause(t *testing.T) {
	t.Parallel()
	soon := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	held := map[string]*state.Waiting{
		"the cap of the task": {Kind: state.WaitMoney, Detail: "The cap is reached."},
		"the cap of all":      {Kind: state.WaitMoney, Detail: "The cap of all is reached.", Until: soon},
		"a limit":             {Kind: state.WaitLimit, Detail: "A limit.", Until: soon},
		"the key":             {Kind: state.WaitKey, Detail: "The key is refused.", Until: soon},
		"nothing":             nil,
	}
	for name, tc := range map[string]struct {
		held  string
		said  state.RunStatus
		class state.RunClass
		want  state.RunStatus
		state state.RunState
	}{
		"a cap reported as a bad key":          {"the cap of the task", "auth", "fatal", "budget", state.RunActive},
		"a cap reported as a crash":            {"the cap of the task", "crashed", "retryable", "budget", state.RunActive},
		"a cap reported as a lost session":     {"the cap of the task", state.StatusNoSession, "retryable", "budget", state.RunActive},
		"a cap, time up":                       {"the cap of the task", "duration", "fatal", "budget", state.RunActive},
		"a cap and a lost VM":                  {"the cap of the task", state.StatusVMLost, "retryable", state.StatusVMLost, state.RunActive},
		"a cap and a good end":                 {"the cap of the task", "ok", "success", "ok", state.RunActive},
		"a cap of a run that was stopped":      {"the cap of the task", "interrupted", "retryable", "interrupted", state.RunStopping},
		"a cap of all reported as a bad key":   {"the cap of all", "auth", "fatal", "budget", state.RunActive},
		"a limit reported as a crash":          {"a limit", "crashed", "retryable", "rate_limited", state.RunActive},
		"a limit reported as a stall":          {"a limit", "stalled", "retryable", "rate_limited", state.RunActive},
		"a limit reported as the network":      {"a limit", "network", "retryable", "rate_limited", state.RunActive},
		"a limit, and a long conversation":     {"a limit", state.StatusContextOverflow, "retryable", state.StatusContextOverflow, state.RunActive},
		"a limit, and no such session":         {"a limit", state.StatusNoSession, "retryable", state.StatusNoSession, state.RunActive},
		"a limit, and time was up":             {"a limit", "duration", "fatal", "duration", state.RunActive},
		"a limit, and a lost VM":               {"a limit", state.StatusVMLost, "retryable", state.StatusVMLost, state.RunActive},
		"a key that is refused":                {"the key", "invalid", "fatal", "auth", state.RunActive},
		"a key without credit":                 {"the key", "billing", "fatal", "billing", state.RunActive},
		"no trouble that errand knows of":      {"nothing", "auth", "fatal", "auth", state.RunActive},
		"a good end in spite of a limit":       {"a limit", "ok", "success", "ok", state.RunActive},
		"a run that was stopped under a limit": {"a limit", "crashed", "retryable", "crashed", state.RunStopping},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := state.Run{ID: "r", State: tc.state, RunUsage: state.RunUsage{RunDenial: held[tc.held]}}
			got := r.FinalResult(state.RunResult{Status: tc.said, Class: tc.class, Message: "as its program says", RetryAt: soon})
			message := "as its program says"
			if tc.want != tc.said || r.RunDenial != nil && tc.state == state.RunActive && (tc.said == "billing") {
				message = r.RunDenial.Detail
			}
			if got.Status != tc.want || got.Message != message {
				t.Errorf("%s (%s) %q, want %s %q", got.Status, got.Class, got.Message, tc.want, message)
			}
			if tc.want == "budget" && tc.held == "the cap of the task" && got.Class != state.RunFatal || tc.want == "rate_limited" && got.Class != state.RunRetryable {
				t.Errorf("class %s", got.Class)
			}
		})
	}
}

// TestRunIsFiledWithTheTasksCause: the run is filed with the cause that the task names.
func TestRunIsFiledWithTheTasksCause(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		held  state.Waiting
		phase state.Phase
		want  state.RunStatus
	}{
		"a cap":   {state.Waiting{Kind: state.WaitMoney, Detail: "The cap is reached.", Hint: "Raise it."}, state.PhaseFailed, "budget"},
		"a limit": {state.Waiting{Kind: state.WaitLimit, Detail: "A limit."}, state.PhaseInterrupted, "rate_limited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			if tc.phase == state.PhaseInterrupted {
				tc.held.Until = l.now.Add(time.Hour)
			}
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.ModelCalled{Money: state.Money{}, Waiting: &tc.held}})
			l.end(state.RunResult{Status: state.StatusAuth, Class: state.RunFatal, Message: "403 Forbidden"})
			last := l.task.Runs[len(l.task.Runs)-1]
			reason := detail(l.task.Waiting)
			if l.task.End != nil {
				reason = l.task.End.Reason
			}
			if l.task.Phase != tc.phase || last.Status != tc.want || last.Message != tc.held.Detail || reason != tc.held.Detail {
				t.Errorf("got phase %s for %q, run %s (%s): %q", l.task.Phase, reason, last.Status, last.Class, last.Message)
			}
		})
	}
}

func detail(w *state.Waiting) string {
	if w == nil {
		return ""
	}
	return w.Detail
}
