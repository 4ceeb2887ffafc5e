package state

import (
	"testing"
	"time"
)

// TestNothingWorksOnAVMThatIsBeingStopped: a run that was dropped is stopped, and its work saved, before anything else of its task
// touches the checkout. Both go through lanes of their own, so that the next launch could otherwise put the checkout elsewhere
// while the stop reads it, and the stop could commit what the next agent is writing.
func TestNothingWorksOnAVMThatIsBeingStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next  JobKind
		waits bool
	}{
		"another run":            {JobLaunch, true},
		"the work is read":       {JobCollect, true},
		"the work is rebased":    {JobRebase, true},
		"the work is put away":   {JobSleep, true},
		"the issue is read":      {JobStart, false},
		"objects are published":  {JobCommit, false},
		"a branch is moved":      {JobMove, false},
		"a review is gathered":   {JobGather, false},
		"a request is opened":    {JobOpenPR, false},
		"a round gets an answer": {JobAnswer, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = func(*Task, Event, Policy) Change {
				return Change{Jobs: []Job{{Kind: c.next, Lane: LaneWork, Key: "next"}, {Kind: JobStop, Lane: LaneControl, Key: "stop"}}}
			}
			s.mustApply(t, event(task1, ""), Ack{})
			s.next = func(*Task, Event, Policy) Change {
				return Change{Jobs: []Job{{Kind: JobLaunch, Lane: LaneWork, Key: "other"}}}
			}
			s.mustApply(t, event(task2, ""), Ack{})
			s.next = func(*Task, Event, Policy) Change { return Change{} }
			if !c.waits {
				s.wantClaims(t, "at once", "next", "stop", "other")
				return
			}
			jobs := s.wantClaims(t, "at first", "stop", "other")
			again := s.time().Add(testLease / 2)
			if err := s.Retry(t.Context(), jobs[0].ID, jobs[0].Epoch, Failed{Error: "boom", Retry: again}); err != nil {
				t.Fatal(err)
			}
			s.finish(t, jobs[1])
			s.wantClaims(t, "while the stop is to be repeated")
			if at, ok, err := s.NextDue(t.Context()); err != nil || !ok || !at.Equal(again) {
				t.Errorf("something is due at %s (%v, %v), want %s", at, ok, err, again)
			}
			s.advance(testLease / 2)
			jobs = s.wantClaims(t, "when the stop is tried again", "stop")
			s.finish(t, jobs...)
			s.wantClaims(t, "after the stop", "next")
		})
	}
}

// TestQuickRetryWaitsForTheStop: a person stops a run and has it go on a moment later, or has everything planned anew.
func TestQuickRetryWaitsForTheStop(t *testing.T) {
	t.Parallel()
	stopped := Order{Verb: VerbStop}
	for name, c := range map[string]struct {
		orders []Order
		first  JobKind // what works then, beside the stop
	}{
		"stop, then retry":       {[]Order{stopped, {Verb: VerbRetry}}, ""},
		"stop, then retry fresh": {[]Order{stopped, {Verb: VerbRetry, Fresh: true}}, ""},
		"stop, then an answer":   {[]Order{stopped, {Verb: VerbMessage, Text: "Go on."}}, ""},
		"replan":                 {[]Order{{Verb: VerbReplan}}, JobStart},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = Next
			var spent *Job
			apply := func(e Event) {
				t.Helper()
				s.advance(time.Second)
				e.Task, e.At = task1, s.time()
				ack := Ack{}
				if spent != nil {
					ack = Ack{Job: spent.ID, Epoch: spent.Epoch}
				}
				s.mustApply(t, e, ack)
				spent = nil
			}
			apply(Event{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Via: "assigned", Repo: &Repo{ID: 7, Owner: "o", Name: "r"}, Issue: &Issue{Title: "Bug", Body: "It breaks."}})
			work := func(kind JobKind) *Job {
				t.Helper()
				job := s.mustClaim(t, LaneWork)
				if job.Kind != kind {
					t.Fatalf("the task's work is %s, want %s", job.Kind, kind)
				}
				return job
			}
			started := Event{Kind: EventStarted, Start: &Start{Settings: DefaultSettings(), Visible: true, Branch: Branch{Name: "b", Base: "main", BaseSHA: "b0"}}}
			spent = work(JobStart)
			apply(started)
			launch := work(JobLaunch)
			spent = launch
			apply(Event{Kind: EventLaunched, Run: launch.Run, Launch: &Launch{Run: launch.Run, VM: VM{Name: "vm-1"}, Started: s.time()}})
			for i, o := range c.orders {
				apply(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: int64(i + 1), At: s.time(), Mention: true}, Orders: []Order{o}})
			}
			if c.first != "" {
				spent = work(c.first)
				apply(started)
			}
			if job, err := s.Claim(t.Context(), s.claimReq(LaneWork)); err != nil || job != nil {
				t.Fatalf("before the run is stopped, there is work to claim: %+v, %v", job, err)
			}
			if spent = s.mustClaim(t, LaneControl); spent.Kind != JobStop || spent.Run != launch.Run {
				t.Fatalf("first comes %s of run %q, want the stop of %s", spent.Kind, spent.Run, launch.Run)
			}
			apply(Event{Kind: EventSaved, Run: launch.Run})
			work(JobLaunch)
		})
	}
}
