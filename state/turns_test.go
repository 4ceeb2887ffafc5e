package state

import (
	"testing"
	"time"
)

// refuseTurns has the gateway refuse the active run the model because its turns are used up.
func (l *life) refuseTurns() {
	l.t.Helper()
	l.do(Event{Kind: EventSpent, Run: l.task.Run.ID, Money: &Money{}, Waiting: l.task.Run.TurnsUsedUp()})
}

// TestOutOfTurns: a run that was refused the model for its turns ends for that, whatever its program says, and
// the hint names twice the turns that it had.
func TestOutOfTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		limit int
		res   RunResult
		hint  string
	}{
		"took it for an error of the key": {30, RunResult{Status: "auth", Class: "fatal", Message: "403"}, "Comment `retry turns=60` to go on with more turns."},
		"ended well all the same":         {3, RunResult{Status: "ok", Class: "success", Outcome: "done"}, "Comment `retry turns=6` to go on with more turns."},
		"would be tried again":            {2, RunResult{Status: "overloaded", Class: "retryable"}, "Comment `retry turns=4` to go on with more turns."},
		"judged so by its program":        {20, RunResult{Status: StatusMaxTurns, Class: "fatal"}, "Comment `retry turns=40` to go on with more turns."},
		"many":                            {300, RunResult{Status: "crashed", Class: "retryable"}, "Comment `retry turns=500` to go on with more turns."},
		"the most":                        {500, RunResult{Status: "crashed", Class: "retryable"}, "Comment `retry turns=500` to go on with as many turns again, or split the issue."},
		"the operator gives more":         {900, RunResult{Status: "crashed", Class: "retryable"}, "Comment `retry` to go on with as many turns again, or split the issue."},
		"launched by an earlier errand":   {0, RunResult{Status: StatusMaxTurns, Class: "fatal"}, "Comment `retry turns=60` to go on with more turns."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.task.Run.TurnLimit, l.task.Run.MaxTurns = tc.limit, tc.limit
			if tc.res.Status != StatusMaxTurns {
				l.refuseTurns()
			}
			l.end(tc.res)
			l.want(PhaseFailed, JobStop, JobPost)
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.Status != StatusMaxTurns || last.Class != "fatal" || l.task.End.Class != "agent" || l.task.End.Hint != tc.hint {
				t.Errorf("run %s (%s), end %+v", last.Status, last.Class, l.task.End)
			}
		})
	}
}

// TestOutOfTurnsIsNotAll: what is known better than by the gateway's refusal stays, and so does what finish said.
func TestOutOfTurnsIsNotAll(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.refuseTurns()
	l.end(RunResult{Status: StatusVMLost, Class: "retryable"})
	l.want(PhaseInterrupted)

	l = newLife(t)
	l.implementing()
	l.call(Call{ID: "f", Tool: CallFinish, Result: &Conclusion{Outcome: "done", Title: "From the tool"}})
	l.refuseTurns()
	l.end(RunResult{Status: "auth", Class: "fatal", Message: "403"})
	l.want(PhaseImplementing, JobCollect)

	l = newLife(t)
	l.implementing()
	l.do(Event{Kind: EventSpent, Run: l.task.Run.ID, Money: &Money{}, Waiting: &Waiting{Kind: WaitMoney, Detail: "the cap"}})
	l.end(RunResult{Status: "ok", Class: "success", Outcome: "done"})
	l.want(PhaseImplementing, JobCollect)
}

// TestOutOfTurnsGoesOn: a program that asks on and on is stopped after a while, once, and what it has cost counts.
func TestOutOfTurnsGoesOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	run := l.task.Run.ID
	due := Event{Kind: EventDue, Detail: dueTurns, Hash: run}
	l.do(due)
	l.want(PhaseImplementing)
	l.task.Run.TurnLimit, l.task.Run.MaxTurns = 4, 4
	l.refuseTurns()
	l.want(PhaseImplementing, JobDue)
	if at := l.jobs[0].NotBefore; !at.Equal(l.now.Add(turnsGrace)) || turnsGrace < time.Minute {
		t.Errorf("looked at again at %s, now is %s", at, l.now)
	}
	l.refuseTurns()
	l.want(PhaseImplementing)
	l.do(due)
	l.want(PhaseFailed, JobStop, JobPost)
	if hint := l.task.End.Hint; hint != "Comment `retry turns=8` to go on with more turns." {
		t.Errorf("hint %q", hint)
	}
	l.do(Event{Kind: EventRunEnded, Run: run, Result: &RunResult{Status: "interrupted", Class: "retryable", Turns: 4}})
	last := l.task.Runs[len(l.task.Runs)-1]
	if !last.Told || last.Turns != 4 || last.Status != StatusMaxTurns {
		t.Errorf("filed as %+v", last)
	}
	l.do(due)
	l.want(PhaseFailed)
}
