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
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
				return machine.Change{Task: &state.Task{}}
			}
			s.mustApply(t, event.Event{Task: task1, Payload: event.ConditionChanged{}}, Ack{Job: j.ID, Epoch: j.Epoch})
		}
		s.advance(searchTime + time.Second)
	}
	if _, ended, _, err := s.Pauses.Lift(ctx, func(p state.Pause) bool { return p.Repo == 0 }, Action{ID: "2", Command: "resume"}); err != nil || len(ended) != 1 {
		t.Errorf("got %v, %v", ended, err)
	}
}
