package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// TestPausesAreKept: pauses of everything and of repositories are independent, survive a restart, keep their beginning when they
// are repeated, and each change is in the audit log.
func TestPausesAreKept(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	ctx := t.Context()
	set := func(p state.Pause, want string) {
		t.Helper()
		a, err := s.Pauses.Set(ctx, p, Action{ID: "id", By: p.By, Subject: p.Name, Command: "pause"})
		if err != nil || a.Result != want {
			t.Errorf("got %+v, %v; want %q", a, err, want)
		}
		s.advance(time.Minute)
	}
	lift := func(which func(state.Pause) bool, want string, ended, left int) {
		t.Helper()
		a, e, l, err := s.Pauses.Lift(ctx, which, Action{ID: "id", By: "token", Command: "resume"})
		if err != nil || a.Result != want || len(e) != ended || len(l) != left {
			t.Errorf("got %+v, %d ended, %d left, %v; want %q, %d, %d", a, len(e), len(l), err, want, ended, left)
		}
		s.advance(time.Minute)
	}
	of := func(repo int64) string {
		t.Helper()
		p, err := s.Pauses.Of(ctx, repo)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return "none"
		}
		return p.Waiting().Detail
	}
	everything := func(p state.Pause) bool { return p.Repo == 0 }
	lift(everything, "was not paused", 0, 0)
	set(state.Pause{Repo: 8, Name: "acme/zoo", By: "token"}, "paused")
	set(state.Pause{Repo: 7, Name: "acme/shop", By: "token", Reason: "release"}, "paused")
	set(state.Pause{Repo: 7, Name: "acme/shop", By: "another", Reason: "release"}, "was paused already")
	if got := of(7) + ", " + of(9) + ", " + of(0); got != "the operator paused this repository: release, none, none" {
		t.Errorf("got %s", got)
	}
	set(state.Pause{By: "token"}, "paused")
	set(state.Pause{By: "another", Reason: "new disk"}, "was paused already; the reason was replaced")
	set(state.Pause{By: "another"}, "was paused already")
	s.reopen(t)
	s.wantSound(t)
	list, err := s.Pauses.List(ctx)
	want := []state.Pause{
		{Since: testStart.Add(4 * time.Minute), By: "token", Reason: "new disk"},
		{Repo: 7, Name: "acme/shop", Since: testStart.Add(2 * time.Minute), By: "token", Reason: "release"},
		{Repo: 8, Name: "acme/zoo", Since: testStart.Add(time.Minute), By: "token"},
	}
	if d := cmp.Diff(want, list); err != nil || d != "" {
		t.Errorf("after a restart: %v (-want +got):\n%s", err, d)
	}
	if got := of(7) + ", " + of(9); got != "the operator paused errand: new disk, the operator paused errand: new disk" {
		t.Errorf("got %s", got)
	}
	lift(func(p state.Pause) bool { return p.Repo == 7 }, "resumed", 1, 2)
	lift(everything, "resumed", 1, 1)
	lift(everything, "was not paused", 0, 1)
	lift(func(state.Pause) bool { return true }, "resumed", 1, 0)
	if got := of(7) + ", " + of(8); got != "none, none" {
		t.Errorf("got %s", got)
	}
	actions, err := s.Audit.List(ctx, 100, func(Action) bool { return true })
	if err != nil || len(actions) != 11 || actions[0].Result != "resumed" || actions[10].Result != "was not paused" || actions[9].Subject != "acme/zoo" {
		t.Errorf("got audit log %+v, %v", actions, err)
	}
}

// TestPauseIsStoredWithItsAuditEntry: after a power cut there is neither.
func TestPauseIsStoredWithItsAuditEntry(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	db, lost := s.Store.db, errors.New("power cut")
	s.Pauses.db = failing{db, lost}
	if _, err := s.Pauses.Set(t.Context(), state.Pause{By: "token"}, Action{ID: "1", Command: "pause"}); !errors.Is(err, lost) {
		t.Errorf("got error %v", err)
	}
	s.Pauses.db = db
	list, err := s.Pauses.List(t.Context())
	actions, err2 := s.Audit.List(t.Context(), 10, func(Action) bool { return true })
	if err != nil || err2 != nil || len(list) > 0 || len(actions) > 0 {
		t.Errorf("got %v and %v, errors %v, %v", list, actions, err, err2)
	}
}

// TestUnderWay: runs and jobs with effects are under way, also those of tasks that have ended; runs that wait, and jobs that only
// read or are not due, are not.
func TestUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase   state.Phase
		step    state.JobKind
		run     state.RunState
		waiting bool
		jobs    []state.Job
		want    string
	}{
		"nothing":                      {phase: state.PhasePROpen},
		"an agent":                     {phase: state.PhaseImplementing, step: state.StepRun, run: state.RunActive, want: "run implement"},
		"an agent that is stopped":     {phase: state.PhaseImplementing, step: state.StepRun, run: state.RunStopping, want: "run implement"},
		"before the start":             {phase: state.PhaseImplementing, step: state.JobLaunch, run: state.RunLaunching, jobs: []state.Job{{Kind: state.JobLaunch, State: state.JobQueued}}},
		"starting":                     {phase: state.PhaseImplementing, step: state.JobLaunch, run: state.RunLaunching, jobs: []state.Job{{Kind: state.JobLaunch, State: state.JobClaimed}}, want: "launch"},
		"starting after a wait":        {phase: state.PhaseImplementing, step: state.JobLaunch, run: state.RunLaunching, waiting: true, jobs: []state.Job{{Kind: state.JobLaunch, State: state.JobClaimed}}, want: "launch"},
		"waits":                        {phase: state.PhaseImplementing, step: state.JobLaunch, run: state.RunLaunching, waiting: true},
		"waits for a VM to publish":    {phase: state.PhaseImplementing, step: state.JobCollect, waiting: true},
		"publishes":                    {phase: state.PhaseImplementing, step: state.JobMove, jobs: []state.Job{{Kind: state.JobMove, State: state.JobClaimed}}, want: "move"},
		"publishes later, after a 502": {phase: state.PhaseImplementing, step: state.JobMove, jobs: []state.Job{{Kind: state.JobMove, State: state.JobQueued, NotBefore: testStart.Add(time.Hour)}}, want: "move"},
		"reads the issue":              {phase: state.PhaseQueued, step: state.JobStart, jobs: []state.Job{{Kind: state.JobStart, State: state.JobClaimed}}},
		"a comment":                    {phase: state.PhasePROpen, jobs: []state.Job{{Kind: state.JobPost, State: state.JobQueued}}, want: "post"},
		"a reminder of tomorrow":       {phase: state.PhaseAwaitingPlanApproval, jobs: []state.Job{{Kind: state.JobDue, State: state.JobQueued, NotBefore: testStart.Add(time.Hour)}, {Kind: state.JobPost, State: state.JobQueued, NotBefore: testStart.Add(time.Hour)}}},
		"reads a permission":           {phase: state.PhasePROpen, jobs: []state.Job{{Kind: state.JobVet, State: state.JobClaimed}, {Kind: state.JobStatus, State: state.JobClaimed}}},
		"saves work after its end":     {phase: state.PhaseCancelled, jobs: []state.Job{{Kind: state.JobStop, State: state.JobClaimed}}, want: "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
				task := &state.Task{TaskPhase: state.TaskPhase{Phase: c.phase, Step: c.step}, TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "shop"}}}
				if c.waiting {
					task.Waiting = &state.Waiting{Kind: state.WaitVM}
				}
				if c.run != "" {
					task.Run = &state.Run{ID: "r", Kind: state.RunImplement, State: c.run}
				}
				return machine.Change{Task: task, Jobs: slices.Clone(c.jobs)}
			}
			s.mustApply(t, event.Event{Task: task1, Payload: event.ConditionChanged{}}, Ack{})
			for _, j := range c.jobs {
				if j.State != state.JobClaimed {
					continue
				}
				if _, err := s.Claim(t.Context(), ClaimReq{Lease: func(state.JobKind) time.Duration { return time.Hour }}); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			list, err := s.UnderWay(context.Background())
			for _, u := range list {
				if u.Repo.FullName() != "acme/shop" || u.Task != task1 {
					t.Errorf("got %+v", u)
				}
				got = append(got, strings.TrimSpace(string(u.Job)+" "+string(u.Run)))
			}
			if err != nil || strings.Join(got, ", ") != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestIsUnderWay: a job that failed is under way until it succeeds, and so is a launch whose run may have begun.
func TestIsUnderWay(t *testing.T) {
	t.Parallel()
	later := testStart.Add(time.Hour)
	for name, c := range map[string]struct {
		job  state.Job
		want bool
	}{
		"due":                                    {state.Job{Kind: state.JobPost, NotBefore: testStart}, true},
		"of tomorrow":                            {state.Job{Kind: state.JobPost, NotBefore: later}, false},
		"tried again later":                      {state.Job{Kind: state.JobPost, NotBefore: later, Attempt: 1}, true},
		"has a worker":                           {state.Job{Kind: state.JobPost, NotBefore: later, State: state.JobClaimed}, true},
		"a launch that waits":                    {state.Job{Kind: state.JobLaunch, Attempt: 3}, false},
		"a launch with a worker":                 {state.Job{Kind: state.JobLaunch, State: state.JobClaimed}, true},
		"a run that may have run":                {state.Job{Kind: state.JobLaunch, Attempted: true, Launch: &state.Launch{}}, true},
		"a launch that was begun, without a run": {state.Job{Kind: state.JobLaunch, Launch: &state.Launch{}}, false},
	} {
		if got := isUnderWay(c.job, testStart); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
