package store

import (
	"context"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
)

// claimAll claims the due jobs in the lanes of people's events, oldest first.
func claimAll(t *testing.T, s *testStore, do func(*state.Job) event.Event) {
	t.Helper()
	for range 50 {
		job := s.mustClaimAny(t, state.LaneControl)
		if job == nil {
			return
		}
		s.applyOf(t, do(job), job)
	}
	t.Fatal("got an endless sequence of jobs")
}

func (s *testStore) mustClaimAny(t *testing.T, lanes ...state.Lane) *state.Job {
	t.Helper()
	job, err := s.Claim(t.Context(), ClaimReq{Lanes: lanes, Lease: func(state.JobKind) time.Duration { return time.Minute }})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (s *testStore) applyOf(t *testing.T, e event.Event, job *state.Job) {
	t.Helper()
	e.Task = task1
	ack := Ack{}
	if job != nil {
		ack = Ack{Job: job.ID, Epoch: job.Epoch}
	}
	if _, err := s.Apply(context.WithoutCancel(t.Context()), e, ack); err != nil {
		t.Fatalf("apply %s: %v", e.Kind(), err)
	}
}

// waiting brings a store's task to its first posted plan.
func waiting(t *testing.T) (*testStore, *state.Plan) {
	t.Helper()
	s := newTestStore(t)
	s.next = machine.Next
	for _, e := range []event.Event{
		{By: ada, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: task1.Repo}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}},
		{Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}}}},
	} {
		s.applyOf(t, e, nil)
	}
	run := func() string {
		task, err := s.Task(t.Context(), task1)
		if err != nil || task.Run == nil {
			t.Fatalf("got no run in %+v, error %v", task, err)
		}
		return task.Run.ID
	}
	s.applyOf(t, event.Event{Run: run(), Payload: event.Launched{Launch: state.Launch{Run: run(), VM: state.VM{Name: "vm1"}, Started: s.time()}}}, nil)
	s.applyOf(t, event.Event{Run: run(), Payload: event.RunEnded{Result: state.RunResult{Class: state.RunSucceeded, Text: "A plan.", Outcome: "build", Ended: s.time()}}}, nil)
	task, err := s.Task(t.Context(), task1)
	if err != nil {
		t.Fatal(err)
	}
	p := task.NewestPlan()
	s.applyOf(t, event.Event{Payload: event.Posted{Comment: state.Posted{ID: 11, At: s.time()}, Post: &state.Post{Kind: state.PostPlan, Hash: p.Hash}, BodyHash: "body"}}, nil)
	return s, p
}

// A comment that was made before an approval counts is processed first, however the vetting of its author and the check
// of the approval overlap. A comment by a user without write access has no effect.
func TestWordsBeforeAnApproval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		may  state.Permission
		want state.Phase
		held int
	}{
		"a ada's change request": {may: state.PermissionWrite, want: state.PhaseAwaitingPreliminaryApproval, held: 1},
		"a stranger's words":     {may: state.PermissionRead, want: state.PhasePlanning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := waiting(t)
			s.applyOf(t, event.Event{By: ada, Payload: event.Thumb{Candidate: &state.Candidate{Comment: 11, Approval: state.Approval{Via: state.ViaReaction, Given: s.time()}}}}, nil)
			check := s.mustClaimAny(t, state.LaneControl) // GitHub is asked about the approval …
			if check == nil || check.Kind != state.JobApprove {
				t.Fatalf("claimed %+v, want the check of the approval", check)
			}
			// … and meanwhile a comment comes in, which has to wait for its turn.
			s.applyOf(t, event.Event{ID: "comment:50", By: eve, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "not like this"}}}, nil)
			s.applyOf(t, event.Event{Payload: event.Approved{Candidate: *check.Candidate}}, check)
			task, err := s.Task(t.Context(), task1)
			if err != nil || task.Phase != state.PhaseAwaitingPreliminaryApproval {
				t.Fatalf("the approval was applied before the comment: got %v, error %v", task.Phase, err)
			}
			for range 3 {
				claimAll(t, s, func(j *state.Job) event.Event {
					switch j.Kind {
					case state.JobVet:
						e := storedEvent(t, j)
						e.Permission = c.may
						return e
					case state.JobApprove:
						if j.Candidate.Hash != p.Hash {
							t.Errorf("checks %s", j.Candidate.Hash)
						}
						return event.Event{Payload: event.Approved{Candidate: *j.Candidate}}
					}
					return event.Event{}
				})
				s.advance(10 * time.Second)
			}
			if task, err = s.Task(t.Context(), task1); err != nil || task.Phase != c.want || len(task.Held) != c.held {
				t.Errorf("got final phase %s, %d held approvals, want %s, %d (%v)", task.Phase, len(task.Held), c.want, c.held, err)
			}
		})
	}
}
