package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// runWithoutPeople applies all events except people's until the task rests, and counts the launches.
func runWithoutPeople(l *life, result func(*state.Run) state.RunResult) (launches int) {
	l.t.Helper()
	for range 2000 {
		switch {
		case l.task.Run != nil && l.task.Run.State == state.RunLaunching:
			launches++
			l.launch()
		case l.task.Run != nil:
			l.end(result(l.task.Run))
		case l.task.Phase == state.PhaseInterrupted:
			l.now = l.now.Add(time.Hour)
			l.do(event.Event{Payload: event.NewDue("resume", "")})
		case l.task.Step == state.JobCollect:
			l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}}})
		case l.task.Step == state.JobCommit:
			l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}}})
		case l.task.Step == state.JobMove:
			l.do(event.Event{Payload: event.BranchMoved{}})
		case l.task.Step == state.JobOpenPR:
			l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: "open"}}})
		default:
			return launches
		}
	}
	l.t.Fatalf("got no rest in %s after %d launches", l.task.Phase, launches)
	return launches
}

// Without an action by people, agents are launched a limited number of times, whatever fails, because they cost money.
func TestLaunchesWithoutPeopleAreLimited(t *testing.T) {
	t.Parallel()
	lost := state.RunResult{Status: state.StatusVMLost, Class: state.RunRetryable}
	flips := 0
	for name, result := range map[string]func(*state.Run) state.RunResult{
		"the checks lose the VM": func(r *state.Run) state.RunResult {
			if r.Kind == state.RunCheck {
				return lost
			}
			return state.RunResult{Outcome: "done"}
		},
		"the agent is lost every other time, the checks fail": func(r *state.Run) state.RunResult {
			if r.Kind == state.RunCheck {
				return state.RunResult{Checks: []state.CheckResult{{Name: "test", Code: 1}}}
			}
			if flips++; flips%2 == 0 {
				return lost
			}
			return state.RunResult{Outcome: "done"}
		},
		"the agent is always lost": func(*state.Run) state.RunResult { return lost },
	} {
		l := newLife(t)
		l.toPreliminary()
		l.task.Settings.Check = []settings.Command{{Run: "make test"}}
		l.approve()
		l.launch()
		l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		l.approve()
		if n := runWithoutPeople(l, result); n > maxUnattendedLaunches {
			t.Errorf("%s: got %d launches, then phase %s", name, n, l.task.Phase)
		}
		if p := l.task.Phase; p != state.PhaseFailed && p != state.PhasePROpen {
			t.Errorf("%s: got final phase %s", name, p)
		}
	}
}

// Anybody who closes issues on a public repository pokes blocked tasks; however often, only one check is queued at a
// time.
func TestOneRecheckIsQueuedAtATime(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	keys := map[string]bool{}
	for range 5 {
		for _, j := range l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitBlocked, Detail: "#2"}}}) {
			if j.Kind == state.JobDue {
				keys[j.Key] = true
			}
		}
		l.do(event.Event{Payload: event.ConditionChanged{}})
	}
	if len(keys) != 1 {
		t.Errorf("got %d queued checks, want 1: %v", len(keys), keys)
	}
}

// The cost of a stopped run is counted once.
func TestCostOfStoppedRunIsCountedOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	run := l.task.Run.ID
	l.now = l.now.Add(10 * time.Minute)
	l.comment(state.VerbStop)
	l.want(state.PhaseAwaitingAnswer, state.JobStop)
	res := &state.RunResult{Status: state.StatusInterrupted, Class: state.RunRetryable, Ended: l.now, Money: state.Money{InputTokens: 10, OutputTokens: 5, MicroUSD: 7}}
	l.do(event.Event{Run: run, Payload: event.RunEnded{Result: *res}})
	l.do(event.Event{Run: run, Payload: event.RunEnded{Result: *res}})
	if m := l.task.Money; m.MicroUSD != 7 || m.InputTokens != 10 || m.OutputTokens != 5 || l.task.Active < 10*time.Minute {
		t.Errorf("got money %+v, active %s", m, l.task.Active)
	}
}

// A task that stopped at its cap continues when the cap is raised.
func TestRaisedBudgetContinuesTask(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobLaunch, Class: state.ClassBudget, Reason: "the cap is reached"}}})
	l.want(state.PhaseFailed, state.JobPost)
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 60, Mention: true}, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}}}})
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	if l.task.Money.CapMicroUSD != 15_000_000 {
		t.Errorf("got a cap of %d", l.task.Money.CapMicroUSD)
	}
}

// Times reported by a VM cannot exceed the limits on agent activity and on waits.
func TestWrongVMClocksAreCorrected(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"right": 0, "slow": -100 * 24 * time.Hour, "fast": 100 * 24 * time.Hour} {
		l := newLife(t)
		l.trigger()
		l.start()
		l.launch()
		l.now = l.now.Add(10 * time.Minute)
		l.do(event.Event{Run: l.task.Run.ID, Payload: event.RunEnded{Result: state.RunResult{Class: state.RunRetryable, Status: "limit", Ended: l.now.Add(off), RetryAt: l.now.AddDate(100, 0, 0)}}})
		l.want(state.PhaseInterrupted, state.JobDue)
		if a := l.task.Active; a < 10*time.Minute || a > 11*time.Minute {
			t.Errorf("%s: got active time %s", name, a)
		}
		if d := l.task.Waiting.Until.Sub(l.now); d > maxWait {
			t.Errorf("%s: got a wait of %s", name, d)
		}
	}
}

// Progress events and comments by users without write access do not use up GitHub's rate limit.
func TestStatusUpdatesAreRateLimited(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	edits, gap := 0, DefaultPolicy().StatusGap
	begun := l.now
	for l.now.Sub(begun) < time.Hour {
		l.now = l.now.Add(4 * time.Second)
		l.do(event.Event{Run: l.task.Run.ID, Payload: event.Progress{LastSeq: 1}})
		l.do(event.Event{By: visitor, Permission: state.PermissionRead, Payload: event.Commented{Comment: &state.Comment{ID: l.now.Unix()}}})
		if l.task.Status.Shown < l.task.Visible && !l.now.Before(l.task.Status.At.Add(gap)) {
			edits++
			l.do(event.Event{Payload: event.StatusSent{Status: state.StatusComment{Comment: 1, Shown: l.task.Visible, At: l.now}}})
		}
	}
	if edits < 30 || edits > 61 {
		t.Errorf("got %d edits in an hour", edits)
	}
}

// Interrupted checks run again automatically, without an agent, unless the work was lost with its VM.
func TestInterruptedChecksAreRepeated(t *testing.T) {
	t.Parallel()
	for status, want := range map[state.RunStatus]state.RunKind{state.StatusLost: state.RunCheck, state.StatusVMLost: state.RunImplement} {
		l := newLife(t)
		l.runChecks()
		l.end(state.RunResult{Class: state.RunRetryable, Status: status})
		l.want(state.PhaseInterrupted)
		l.do(event.Event{Payload: event.NewDue("resume", "")})
		l.want(state.PhaseImplementing, state.JobLaunch)
		if l.task.Run.Kind != want {
			t.Errorf("%s: got a run %s, want %s", status, l.task.Run.Kind, want)
		}
	}
}
