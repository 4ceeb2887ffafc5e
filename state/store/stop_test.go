package store

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
)

// A dropped run is stopped, and its work saved, before any other job of its task uses the checkout. Both are in lanes
// of their own, so the next launch could otherwise change the checkout while the stop reads it, and the stop could
// commit files that the next agent is writing.
func TestNothingWorksOnAVMThatIsBeingStopped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next  state.JobKind
		waits bool
	}{
		"another run":            {state.JobLaunch, true},
		"the work is read":       {state.JobCollect, true},
		"the work is rebased":    {state.JobRebase, true},
		"the work is put away":   {state.JobSuspend, true},
		"the issue is read":      {state.JobStart, false},
		"objects are published":  {state.JobCommit, false},
		"a branch is moved":      {state.JobMove, false},
		"a review is gathered":   {state.JobGather, false},
		"a request is opened":    {state.JobOpenPR, false},
		"a round gets an answer": {state.JobAnswer, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
				return machine.Change{Jobs: []state.Job{{Kind: c.next, Lane: state.LaneWork, Key: "next"}, {Kind: state.JobStop, Lane: state.LaneControl, Key: "stop"}}}
			}
			s.mustApply(t, spelled(task1, ""), Ack{})
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
				return machine.Change{Jobs: []state.Job{{Kind: state.JobLaunch, Lane: state.LaneWork, Key: "other"}}}
			}
			s.mustApply(t, spelled(task2, ""), Ack{})
			s.next = func(*state.Task, event.Event, machine.Policy) machine.Change { return machine.Change{} }
			if !c.waits {
				s.wantClaims(t, "at once", "next", "stop", "other")
				return
			}
			jobs := s.wantClaims(t, "at first", "stop", "other")
			again := s.time().Add(testLease / 2)
			if err := s.Retry(t.Context(), jobs[0].ID, jobs[0].Epoch, state.Failed{Error: "boom", Retry: again}); err != nil {
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

// A person stops a run and continues or replans it a moment later.
func TestQuickRetryWaitsForTheStop(t *testing.T) {
	t.Parallel()
	stopped := state.Order{Verb: state.VerbStop}
	for name, c := range map[string]struct {
		orders []state.Order
		first  state.JobKind // what works then, beside the stop
	}{
		"stop, then retry":       {[]state.Order{stopped, {Verb: state.VerbRetry}}, ""},
		"stop, then retry fresh": {[]state.Order{stopped, {Verb: state.VerbRetry, Fresh: true}}, ""},
		"stop, then an answer":   {[]state.Order{stopped, {Verb: state.VerbMessage, Text: "Go on."}}, ""},
		"replan":                 {[]state.Order{{Verb: state.VerbReplan}}, state.JobStart},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = machine.Next
			var spent *state.Job
			apply := func(e event.Event) {
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
			apply(event.Event{By: ada, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}})
			work := func(kind state.JobKind) *state.Job {
				t.Helper()
				job := s.mustClaim(t, state.LaneWork)
				if job.Kind != kind {
					t.Fatalf("the task's work is %s, want %s", job.Kind, kind)
				}
				return job
			}
			started := event.Event{Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}}}}
			spent = work(state.JobStart)
			apply(started)
			launch := work(state.JobLaunch)
			spent = launch
			apply(event.Event{Run: launch.Run, Payload: event.Launched{Launch: state.Launch{Run: launch.Run, VM: state.VM{Name: "vm-1"}, Started: s.time()}}})
			for i, o := range c.orders {
				apply(event.Event{By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: int64(i + 1), At: s.time(), Mention: true}, Orders: []state.Order{o}}})
			}
			if c.first != "" {
				spent = work(c.first)
				apply(started)
			}
			if job, err := s.Claim(t.Context(), s.claimReq(state.LaneWork)); err != nil || job != nil {
				t.Fatalf("before the run is stopped, there is work to claim: got %+v, %v", job, err)
			}
			if spent = s.mustClaim(t, state.LaneControl); spent.Kind != state.JobStop || spent.Run != launch.Run {
				t.Fatalf("first comes %s of run %q, want the stop of %s", spent.Kind, spent.Run, launch.Run)
			}
			apply(event.Event{Run: launch.Run, Payload: event.WorkSaved{}})
			work(state.JobLaunch)
		})
	}
}
