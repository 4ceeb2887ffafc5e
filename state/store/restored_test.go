package store

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// TestRestoredStore: a store from a backup is paused until the operator resumes it, and for eight days jobs that can look for their
// effect do that, since the time of the backup.
func TestRestoredStore(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	ctx := t.Context()
	backup := testStart.Add(-time.Hour)
	if _, err := s.Pauses.Set(ctx, state.Pause{By: "token", Reason: "before"}, Action{ID: "0", Command: "pause"}); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkRestored(ctx, backup, Action{ID: "1", By: "errand restore", Command: "restore"}); err != nil {
		t.Fatal(err)
	}
	s.reopen(t)
	p, err := s.Pauses.Of(ctx, 7)
	if err != nil || p == nil || !p.Restored.Equal(backup) || p.Waiting().Detail != "the operator paused errand: restored from the backup of "+backup.Format("2006-01-02 15:04 UTC") {
		t.Fatalf("got pause %+v, %v", p, err)
	}
	if r := s.Restored(); !r.Backup.Equal(backup) || !r.At.Equal(testStart) {
		t.Errorf("got %+v", r)
	}
	if born, err := s.VMs.Since(ctx); err != nil || !born.Equal(testStart) {
		t.Errorf("VMs are known since %v, %v", born, err)
	}
	kinds := map[state.JobKind]bool{
		state.JobPost: true, state.JobStatus: true, state.JobIssue: true, state.JobOpenPR: true, state.JobAnswer: true,
		state.JobCommit: false, state.JobMove: false, state.JobLaunch: false, state.JobSuspend: false, state.JobReact: false,
	}
	s.advance(2 * searchTime) // the operator took a while
	for _, later := range []bool{false, true} {
		for kind, marked := range kinds {
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
				return machine.Change{Task: &state.Task{}, Jobs: []state.Job{{Kind: kind, Key: string(kind)}}}
			}
			s.mustApply(t, event.Event{Task: task1, Payload: event.ConditionChanged{}}, Ack{})
			j, err := s.Claim(ctx, ClaimReq{Lease: func(state.JobKind) time.Duration { return time.Minute }})
			if err != nil || j == nil || j.Kind != kind {
				t.Fatalf("got job %+v, %v", j, err)
			}
			if want := marked && !later; j.Attempted != want || want != j.UnknownSince.Equal(backup) {
				t.Errorf("%s, later %v: attempted %v, unknown since %v", kind, later, j.Attempted, j.UnknownSince)
			}
			if later != j.Restored.IsZero() {
				t.Errorf("%s, later %v: restored at %v", kind, later, j.Restored)
			}
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
				return machine.Change{Task: &state.Task{}}
			}
			s.mustApply(t, event.Event{Task: task1, Payload: event.ConditionChanged{}}, Ack{Job: j.ID, Epoch: j.Epoch})
		}
		if err := s.MarkCaughtUp(ctx); err != nil {
			t.Fatal(err)
		}
		s.reopen(t)
		s.advance(searchTime + time.Second)
	}
	if _, ended, _, err := s.Pauses.Lift(ctx, func(p state.Pause) bool { return p.Repo == 0 }, Action{ID: "2", Command: "resume"}); err != nil || len(ended) != 1 {
		t.Errorf("got %v, %v", ended, err)
	}
}

// TestRestoredStoreRepeatsNoNumber: runs and VMs get numbers that no errand can have used since the backup, also if the same backup, or
// one of the restored errand, is restored later. A run that was about to start gets a new one, unless its start was recorded.
func TestRestoredStoreRepeatsNoNumber(t *testing.T) {
	t.Parallel()
	key := func(issue int) state.TaskKey { return state.TaskKey{Repo: 10, Issue: issue} }
	ctx := t.Context()
	s := newTestStore(t)
	store := func(task *state.Task, jobs ...state.Job) {
		s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
			return machine.Change{Task: task, Jobs: jobs}
		}
		s.mustApply(t, event.Event{Task: task.Key, Payload: event.ConditionChanged{}}, Ack{})
	}
	launching := func(issue, seq int) *state.Task {
		task := &state.Task{Key: key(issue), TaskPhase: state.TaskPhase{Phase: state.PhasePlanning}, TaskRuns: state.TaskRuns{Run: &state.Run{State: state.RunLaunching}}}
		task.SetRunSeq(seq)
		return task
	}
	store(&state.Task{Key: key(1), TaskPhase: state.TaskPhase{Phase: state.PhaseDone}, TaskRuns: state.TaskRuns{RunSeq: 7}, TaskVMs: state.TaskVMs{VMs: []state.VM{{Name: "a", Gen: 4}}}})
	store(launching(2, 3), state.Job{Kind: state.JobLaunch, Key: "l", Run: "10-2-3"}, state.Job{Kind: state.JobStop, Lane: state.LaneControl, Key: "s", Run: "10-2-2"})
	store(launching(3, 3), state.Job{Kind: state.JobLaunch, Key: "l", Run: "10-3-3"})
	j, err := s.Claim(ctx, ClaimReq{Lanes: []state.Lane{state.LaneWork}, Lease: func(state.JobKind) time.Duration { return time.Minute }})
	if err != nil || j == nil || j.Task != key(3) { // the other one waits for the stop
		t.Fatalf("got job %+v, %v", j, err)
	}
	if err := s.MarkLaunch(ctx, j.ID, j.Epoch, state.Launch{Run: j.Run}); err != nil {
		t.Fatal(err)
	}
	backup := testStart
	restore := func(id string, wantRuns, wantGen int) {
		t.Helper()
		if err := s.MarkRestored(ctx, backup, Action{ID: id, By: "errand restore", Command: "restore"}); err != nil {
			t.Fatal(err)
		}
		s.reopen(t)
		gen, err := s.VMs.FirstGen(ctx)
		if got := s.Restored().UsedRuns; err != nil || got != wantRuns || gen != wantGen || s.policy.UsedRuns != wantRuns {
			t.Errorf("%s: got %d runs, generation %d, %v, want %d and %d", id, got, gen, err, wantRuns, wantGen)
		}
	}
	s.advance(time.Hour)
	restore("first", 7+3700, 4+3700+1)
	for issue, want := range map[int]string{2: "10-2-3708", 3: "10-3-3"} {
		task, err := s.Task(ctx, key(issue))
		if err != nil || task.Run.ID != want {
			t.Errorf("issue %d: got run %+v, %v, want %s", issue, task.Run, err, want)
		}
		jobs, err := s.Jobs(ctx, key(issue))
		if err != nil || jobs[0].Run != want {
			t.Errorf("issue %d: got job %+v, %v, want run %s", issue, jobs[0], err, want)
		}
		if issue == 2 && jobs[1].Run != "10-2-2" {
			t.Errorf("the stop job is for run %s now", jobs[1].Run)
		}
	}
	backup = backup.Add(time.Hour) // made by the restored errand
	restore("chained", 3708+100, 4+3700+100+1)
	backup = backup.Add(time.Hour) // by a clock that is wrong
	restore("from the future", 3809+100, 4+3700+200+1)
}

// TestTwoRestorationsShareNoNumber: if the same backup is restored again soon after, the second errand uses none of the numbers that the
// first one used meanwhile, even if a task began a run, and got a VM, each second.
func TestTwoRestorationsShareNoNumber(t *testing.T) {
	t.Parallel()
	var used [2]int
	var gens [2]int
	const between = 20 // seconds
	for i := range used {
		s := newTestStore(t)
		s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
			return machine.Change{Task: &state.Task{Key: task1, TaskRuns: state.TaskRuns{RunSeq: 7}, TaskVMs: state.TaskVMs{VMs: []state.VM{{Name: "a", Gen: 4}}}}}
		}
		s.mustApply(t, event.Event{Task: task1, Payload: event.ConditionChanged{}}, Ack{})
		s.advance(time.Duration(10+i*between) * time.Second)
		if err := s.MarkRestored(t.Context(), testStart, Action{ID: "1", Command: "restore"}); err != nil {
			t.Fatal(err)
		}
		used[i] = s.Restored().UsedRuns
		var err error
		if gens[i], err = s.VMs.FirstGen(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if used[0]+between > used[1] || gens[0]+between > gens[1] {
		t.Errorf("after %d s the numbers of runs begin after %d instead of %d, and generations of VMs at %d instead of %d", between, used[1], used[0], gens[1], gens[0])
	}
}

// TestChainedRestorations: an errand that was restored from the backup of a restored errand looks for effects since the first backup, unless
// the restored errand had done that already.
func TestChainedRestorations(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		caughtUp bool
		later    time.Duration // from the first restoration to the second backup
		second   bool          // effects are looked for since the second backup
	}{
		"before it was resumed":      {later: 30 * 24 * time.Hour},
		"soon after":                 {caughtUp: true, later: time.Hour},
		"when nothing is looked for": {caughtUp: true, later: searchTime + time.Hour, second: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			first := testStart.Add(-time.Hour)
			restore := func(id string, backup time.Time) {
				if err := s.MarkRestored(t.Context(), backup, Action{ID: id, Command: "restore"}); err != nil {
					t.Fatal(err)
				}
				s.reopen(t)
			}
			restore("1", first)
			if test.caughtUp {
				if err := s.MarkCaughtUp(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			s.advance(test.later)
			second := s.time()
			s.advance(time.Hour)
			restore("2", second)
			want := first
			if test.second {
				want = second
			}
			if r := s.Restored(); !r.Backup.Equal(want) || !r.At.Equal(s.time()) || !r.CaughtUp.IsZero() {
				t.Errorf("got %+v, want effects since %v", r, want)
			}
		})
	}
}
