package state

import (
	"context"
	"slices"
	"testing"
	"time"
)

// claimAll takes what is due in the lanes of people's words, oldest first.
func claimAll(t *testing.T, s *testStore, do func(*Job) Event) {
	t.Helper()
	for range 50 {
		job := s.mustClaimAny(t, LaneControl)
		if job == nil {
			return
		}
		s.applyOf(t, do(job), job)
	}
	t.Fatal("there is no end of jobs")
}

func (s *testStore) mustClaimAny(t *testing.T, lanes ...Lane) *Job {
	t.Helper()
	job, err := s.Claim(t.Context(), ClaimReq{Lanes: lanes, Lease: func(JobKind) time.Duration { return time.Minute }})
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (s *testStore) applyOf(t *testing.T, e Event, job *Job) {
	t.Helper()
	e.Task = task1
	ack := Ack{}
	if job != nil {
		ack = Ack{Job: job.ID, Epoch: job.Epoch}
	}
	if _, err := s.Apply(context.WithoutCancel(t.Context()), e, ack); err != nil {
		t.Fatalf("apply %s: %v", e.Kind, err)
	}
}

// waiting brings a store's task to its first posted plan.
func waiting(t *testing.T) (*testStore, *Plan) {
	t.Helper()
	s := newTestStore(t)
	s.next = Next
	l := newLife(t)
	l.toPreliminary()
	for _, e := range []Event{
		{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Via: "assigned", Repo: &Repo{ID: task1.Repo}, Issue: &Issue{Title: "Bug", Body: "It breaks."}},
		{Kind: EventStarted, Start: &Start{Settings: DefaultSettings(), Visible: true, Branch: Branch{Name: "b", Base: "main", BaseSHA: "b0"}}},
	} {
		s.applyOf(t, e, nil)
	}
	run := func() string {
		task, err := s.Task(t.Context(), task1)
		if err != nil || task.Run == nil {
			t.Fatalf("no run: %+v, %v", task, err)
		}
		return task.Run.ID
	}
	s.applyOf(t, Event{Kind: EventLaunched, Run: run(), Launch: &Launch{Run: run(), VM: VM{Name: "vm1"}, Started: s.time()}}, nil)
	s.applyOf(t, Event{Kind: EventRunEnded, Run: run(), Result: &RunResult{Class: "success", Text: "A plan.", Outcome: "build", Ended: s.time()}}, nil)
	task, err := s.Task(t.Context(), task1)
	if err != nil {
		t.Fatal(err)
	}
	p := task.NewestPlan()
	s.applyOf(t, Event{Kind: EventPosted, Posted: &Posted{ID: 11, At: s.time()}, Post: &Post{Kind: PostPlan, Hash: p.Hash}, Hash: "body"}, nil)
	return s, p
}

// TestWordsBeforeAnApproval: a comment that was there before an approval counts is heard first,
// however the vetting of its author and the check of the approval overlap. A stranger's changes nothing.
func TestWordsBeforeAnApproval(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		may  Permission
		want Phase
	}{
		"a writer's change request": {may: PermissionWrite, want: PhasePreliminaryPlanning},
		"a stranger's words":        {may: PermissionRead, want: PhasePlanning},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := waiting(t)
			s.applyOf(t, Event{Kind: EventThumb, By: writer, Candidate: &Candidate{Comment: 11, Approval: Approval{Via: ViaReaction, Given: s.time()}}}, nil)
			check := s.mustClaimAny(t, LaneControl) // GitHub is asked about the approval …
			if check == nil || check.Kind != JobApprove {
				t.Fatalf("claimed %+v, want the check of the approval", check)
			}
			// … and meanwhile a comment comes in, which has to wait for its turn.
			s.applyOf(t, Event{Kind: EventCommented, ID: "comment:50", By: visitor, Comment: &Comment{ID: 50, Body: "not like this"}}, nil)
			s.applyOf(t, Event{Kind: EventApproved, Candidate: check.Candidate}, check)
			task, err := s.Task(t.Context(), task1)
			if err != nil || task.Phase != PhaseAwaitingPreliminaryApproval {
				t.Fatalf("the approval overtook the comment: %v, %v", task.Phase, err)
			}
			for range 3 {
				claimAll(t, s, func(j *Job) Event {
					switch j.Kind {
					case JobVet:
						e := *j.Event
						e.Permission = c.may
						return e
					case JobApprove:
						if j.Candidate.Hash != p.Hash {
							t.Errorf("checks %s", j.Candidate.Hash)
						}
						return Event{Kind: EventApproved, Candidate: j.Candidate}
					}
					return Event{Kind: "nothing"}
				})
				s.advance(10 * time.Second)
			}
			if task, err = s.Task(t.Context(), task1); err != nil || task.Phase != c.want {
				t.Errorf("ends in %s, want %s (%v)", task.Phase, c.want, err)
			}
		})
	}
}

// TestTalkCannotHoldUpForEver: strangers who keep talking delay an approval for a moment only.
func TestTalkCannotHoldUpForEver(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	p := l.task.NewestPlan()
	k := &Candidate{Approval: Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: PermissionWrite, Via: ViaReaction, Given: l.now}}
	for n := range 100 {
		jobs := l.do(Event{Kind: EventApproved, Unvetted: true, Candidate: k})
		if l.task.Phase == PhasePlanning {
			if n != maxWaited {
				t.Errorf("counts after %d checks", n)
			}
			return
		}
		i := slices.IndexFunc(jobs, func(j Job) bool { return j.Kind == JobApprove })
		if i < 0 {
			t.Fatal("the approval is lost")
		}
		k = jobs[i].Candidate
	}
	t.Error("it never counts")
}
