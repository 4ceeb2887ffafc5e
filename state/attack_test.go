package state

import (
	"slices"
	"testing"
	"time"
)

// TestConditionsAreNoChangeRequest: conditions of an approval go with every prompt after it. They are
// no feedback that waits for a run: the next plan can be approved, and no round is begun for them.
func TestConditionsAreNoChangeRequest(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	approve := func() {
		p := l.task.NewestPlan()
		l.do(Event{Kind: EventApproved, Candidate: &Candidate{Approval: Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: PermissionWrite, Via: ViaCommand, Given: l.now, With: "keep the flag"}}})
	}
	launch := func() {
		var taken []string
		for _, f := range l.task.Feedback {
			if f.Kind != "condition" {
				taken = append(taken, f.ID)
			}
		}
		l.do(Event{Kind: EventLaunched, Run: l.task.Run.ID, Launch: &Launch{Run: l.task.Run.ID, VM: VM{Name: "vm1"}, Started: l.now, Taken: taken}})
	}
	approve()
	launch()
	l.end(RunResult{Text: "Steps.", Outcome: "build"})
	l.want(PhaseAwaitingPlanApproval, JobPost)
	l.postPlan(12)
	approve()
	l.want(PhaseImplementing, JobLaunch)
	launch()
	l.end(RunResult{Outcome: "done"})
	l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}})
	l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}})
	l.do(Event{Kind: EventMoved})
	l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}})
	l.want(PhasePROpen)
	if slices.Contains(kindsOf(l.jobs), JobGather) {
		t.Error("a round is begun though nobody asked for one")
	}
	if l.do(Event{Kind: EventGathered}); l.task.Phase != PhasePROpen {
		t.Errorf("an empty round began: %s", l.task.Phase)
	}
	if n := len(l.task.Feedback); n != 2 {
		t.Errorf("%d conditions are kept, want 2: %+v", n, l.task.Feedback)
	}
}

// TestOutsidersReviewReachesNobody: on a public repository anybody may submit a review, in any phase.
func TestOutsidersReviewReachesNobody(t *testing.T) {
	t.Parallel()
	for _, phase := range Phases() {
		l := newLife(t)
		l.toPR()
		l.task.Phase = phase
		l.do(Event{Kind: EventReviewed, By: visitor, Permission: PermissionRead, Review: &Review{ID: 9, State: "approved", Body: "run this"}})
		if len(l.task.Feedback) != 0 || l.task.PR.Ready || slices.Contains(kindsOf(l.jobs), JobGather) {
			t.Errorf("in %s: feedback %v, ready %v, jobs %v", phase, l.task.Feedback, l.task.PR.Ready, kindsOf(l.jobs))
		}
	}
}

// unaided lets everything but people act until the task comes to rest, and counts the launches.
func unaided(l *life, result func(*Run) RunResult) (launches int) {
	l.t.Helper()
	for range 2000 {
		switch {
		case l.task.Run != nil && l.task.Run.State == RunLaunching:
			launches++
			l.launch()
		case l.task.Run != nil:
			l.end(result(l.task.Run))
		case l.task.Phase == PhaseInterrupted:
			l.now = l.now.Add(time.Hour)
			l.do(Event{Kind: EventDue, Detail: "resume"})
		case l.task.Step == JobCollect:
			l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}})
		case l.task.Step == JobCommit:
			l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}})
		case l.task.Step == JobMove:
			l.do(Event{Kind: EventMoved})
		case l.task.Step == JobOpenPR:
			l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}})
		default:
			return launches
		}
	}
	l.t.Fatalf("no rest in %s after %d launches", l.task.Phase, launches)
	return launches
}

// TestLaunchesAreBounded: agents cost money, so that without a person's word they are launched a
// bounded number of times, whatever goes wrong with them.
func TestLaunchesAreBounded(t *testing.T) {
	t.Parallel()
	lost := RunResult{Status: StatusVMLost, Class: "retryable"}
	flips := 0
	for name, result := range map[string]func(*Run) RunResult{
		"the checks lose the VM": func(r *Run) RunResult {
			if r.Kind == RunCheck {
				return lost
			}
			return RunResult{Outcome: "done"}
		},
		"the agent is lost every other time, the checks fail": func(r *Run) RunResult {
			if r.Kind == RunCheck {
				return RunResult{Checks: []CheckResult{{Name: "test", Code: 1}}}
			}
			if flips++; flips%2 == 0 {
				return lost
			}
			return RunResult{Outcome: "done"}
		},
		"the agent is always lost": func(*Run) RunResult { return lost },
	} {
		l := newLife(t)
		l.toPreliminary()
		l.task.Settings.Check = []Command{{Run: "make test"}}
		l.approve()
		l.launch()
		l.end(RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		l.approve()
		if n := unaided(l, result); n > maxUnasked {
			t.Errorf("%s: %d launches, then %s", name, n, l.task.Phase)
		}
		if p := l.task.Phase; p != PhaseFailed && p != PhasePROpen {
			t.Errorf("%s: ends in %s", name, p)
		}
	}
}
