package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

const testLease = time.Minute

func (s *testStore) claimReq(lanes ...state.Lane) ClaimReq {
	return ClaimReq{Lanes: lanes, Lease: func(state.JobKind) time.Duration { return testLease }}
}

// mustClaim claims a job of the lanes; it fails the test if there is none.
func (s *testStore) mustClaim(t *testing.T, lanes ...state.Lane) *state.Job {
	t.Helper()
	job, err := s.Claim(t.Context(), s.claimReq(lanes...))
	if err != nil {
		t.Fatal(err)
	}
	if job == nil {
		t.Fatalf("got no job in lanes %v, want one", lanes)
	}
	return job
}

// wantClaims claims all claimable jobs and compares their keys.
func (s *testStore) wantClaims(t *testing.T, what string, want ...string) []*state.Job {
	t.Helper()
	var jobs []*state.Job
	var got []string
	for range 20 {
		job, err := s.Claim(t.Context(), s.claimReq())
		if err != nil {
			t.Fatal(err)
		}
		if job == nil {
			break
		}
		jobs, got = append(jobs, job), append(got, job.Key)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got claims %v, want %v", what, got, want)
	}
	return jobs
}

// finish spends a claimed job with an event without effect.
func (s *testStore) finish(t *testing.T, jobs ...*state.Job) {
	t.Helper()
	for _, j := range jobs {
		s.mustApply(t, spelled(j.Task, ""), Ack{Job: j.ID, Epoch: j.Epoch})
	}
}

func TestClaimIsSerialPerTaskAndLane(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "work/a", "work/b", "talk/c"), Ack{})
	s.advance(time.Second)
	s.mustApply(t, spelled(task2, "", "work/d"), Ack{})
	first := s.wantClaims(t, "at first", "a", "c", "d")
	if first[0].Until != s.time().Add(testLease) || first[0].Epoch != 1 || first[0].Attempt != 1 || first[0].Attempted {
		t.Errorf("claimed job: got %+v", first[0])
	}
	s.finish(t, first[1:]...)
	s.wantClaims(t, "while the lane is busy")
	s.finish(t, first[0])
	s.wantClaims(t, "then", "b")
}

func TestClaimOrder(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = func(_ *state.Task, e event.Event, _ machine.Policy) machine.Change {
		job := spelledJob(event.Of[event.Conflict](e).Paths[0], e)
		job.Priority = len(e.Via)
		return machine.Change{Jobs: []state.Job{job}}
	}
	add := func(issue int, priority, job string) {
		s.mustApply(t, spelled(state.TaskKey{Repo: 1, Issue: issue}, priority, job), Ack{})
		s.advance(time.Second)
	}
	add(1, "", "work/old")
	add(2, "", "work/due-late+10s")
	add(3, "!", "work/urgent")
	add(4, "", "work/new")
	s.advance(5 * time.Second)
	s.wantClaims(t, "before the late one is due", "urgent", "old", "new")
	s.advance(5 * time.Second)
	s.wantClaims(t, "after", "due-late")
}

func TestClaimOnlyFromLanesAskedFor(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "work/a", "status/b"), Ack{})
	if job := s.mustClaim(t, state.LaneTalk, state.LaneStatus); job.Key != "b" {
		t.Errorf("got a claim of %s, want b", job.Key)
	}
}

// Which queued jobs block the others of their lane.
func TestOvertaking(t *testing.T) {
	t.Parallel()
	for _, lane := range state.Lanes() {
		s := newTestStore(t)
		l := string(lane)
		s.mustApply(t, spelled(task1, "", l+"/delayed+1h", l+"/a", l+"/b"), Ack{})
		jobs := s.wantClaims(t, l+": a delayed job is overtaken", "a")
		again := s.time().Add(time.Minute)
		if err := s.Retry(t.Context(), jobs[0].ID, jobs[0].Epoch, state.Failed{Error: "boom", Retry: again}); err != nil {
			t.Fatal(err)
		}
		holds := lane == state.LaneWork || lane == state.LaneStatus
		if holds {
			s.wantClaims(t, l+": a retried job holds the lane")
		} else {
			s.finish(t, s.wantClaims(t, l+": a retried job is overtaken", "b")...)
		}
		s.advance(time.Minute)
		jobs = s.wantClaims(t, l+": its time has come", "a")
		if jobs[0].Epoch != 2 || jobs[0].Attempt != 2 || jobs[0].LastError != "boom" {
			t.Errorf("%s: retried job: %+v", l, jobs[0])
		}
		s.finish(t, jobs...)
		if holds {
			s.finish(t, s.wantClaims(t, l+": then the next", "b")...)
		}
		s.advance(time.Hour)
		s.wantClaims(t, l+": at last the delayed one", "delayed")
	}
}

func TestJobKeys(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "status/s+10s", "status/s+20s", "talk/s"), Ack{})
	wantLive(t, s, task1, "s:queued:0")
	if at, ok, err := s.NextDue(t.Context()); !ok || err != nil || !at.Equal(testStart) {
		t.Errorf("a queued job is not brought forward: due %v, %v, %v", at, ok, err)
	}
	s.mustApply(t, spelled(task2, "", "status/s"), Ack{})
	wantLive(t, s, task2, "s:queued:0")

	// While it is claimed another queues up behind it, once.
	job := s.mustClaim(t)
	s.mustApply(t, spelled(task1, "", "status/s"), Ack{})
	s.mustApply(t, spelled(task1, "", "status/s"), Ack{})
	wantLive(t, s, task1, "s:claimed:1 s:queued:0")

	// Returned for a retry, it replaces the job behind it.
	if err := s.Retry(t.Context(), job.ID, job.Epoch, state.Failed{Error: "limit", Retry: s.time().Add(time.Second)}); err != nil {
		t.Fatal(err)
	}
	wantLive(t, s, task1, "s:queued:1")

	// Waiting to be repeated, it is not brought forward.
	s.mustApply(t, spelled(task1, "", "status/s"), Ack{})
	s.wantClaims(t, "before the retry is due", "s") // task2's
	s.advance(time.Second)
	again := s.mustClaim(t)
	s.mustApply(t, spelled(task1, "", "status/s"), Ack{Job: again.ID, Epoch: again.Epoch})
	wantLive(t, s, task1, "s:queued:0")

	// Without a key jobs are as many as were asked for.
	s.next = func(*state.Task, event.Event, machine.Policy) machine.Change {
		return machine.Change{Jobs: []state.Job{{Kind: state.JobReact}, {Kind: state.JobReact}}}
	}
	s.mustApply(t, spelled(task3, ""), Ack{})
	jobs, err := s.Jobs(t.Context(), task3)
	if err != nil || len(jobs) != 2 || jobs[0].ID == jobs[1].ID || jobs[0].Lane != state.LaneWork {
		t.Errorf("jobs without a key: got %+v, %v", jobs, err)
	}
}

func TestDropWork(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "work/a", "work/b", "work/c+1h", "talk/d", "status/e"), Ack{})
	s.mustClaim(t, state.LaneWork)
	s.mustApply(t, spelled(task1, "drop", "work/b"), Ack{})
	wantLive(t, s, task1, "a:claimed:1 d:queued:0 e:queued:0 b:queued:0")
}

// A worker whose lease was lost cannot change anything.
func TestFencing(t *testing.T) {
	t.Parallel()
	lose := map[string]func(*testing.T, *testStore, *state.Job){
		"rescued": func(t *testing.T, s *testStore, _ *state.Job) {
			s.advance(testLease)
			if n, err := s.Rescue(t.Context(), s.time()); n != 1 || err != nil {
				t.Fatalf("got %d rescued, error %v", n, err)
			}
		},
		"rescued and claimed again": func(t *testing.T, s *testStore, _ *state.Job) {
			s.advance(testLease)
			if n, err := s.Rescue(t.Context(), s.time()); n != 1 || err != nil {
				t.Fatalf("got %d rescued, error %v", n, err)
			}
			s.mustClaim(t)
		},
		"given back": func(t *testing.T, s *testStore, j *state.Job) {
			if err := s.Retry(t.Context(), j.ID, j.Epoch, state.Failed{Retry: s.time()}); err != nil {
				t.Fatal(err)
			}
		},
		"done": func(t *testing.T, s *testStore, j *state.Job) { s.finish(t, j) },
	}
	for name, fn := range lose {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.mustApply(t, spelled(task1, "save", "work/a"), Ack{})
			job := s.mustClaim(t)
			fn(t, s, job)
			jobs := s.live(t, task1)

			_, err := s.Apply(t.Context(), spelled(task1, "save", "work/b"), Ack{Job: job.ID, Epoch: job.Epoch})
			wantIs(t, "apply", err, ErrLeaseLost)
			wantIs(t, "mark", s.MarkAttempted(t.Context(), job.ID, job.Epoch), ErrLeaseLost)
			wantIs(t, "retry", s.Retry(t.Context(), job.ID, job.Epoch, state.Failed{Retry: s.time()}), ErrLeaseLost)

			wantLive(t, s, task1, jobs)
			if task, err := s.Task(t.Context(), task1); err != nil || task.Version != 1 {
				t.Errorf("the task changed: version %d, %v", task.Version, err)
			}
		})
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "work/a", "talk/b"), Ack{})
	a := s.mustClaim(t, state.LaneWork)
	b, err := s.Claim(t.Context(), ClaimReq{Lanes: []state.Lane{state.LaneTalk}, Lease: func(state.JobKind) time.Duration { return time.Hour }})
	if err != nil || b == nil {
		t.Fatalf("claim: %v, %v", b, err)
	}
	if err := s.MarkAttempted(t.Context(), a.ID, a.Epoch); err != nil {
		t.Fatal(err)
	}
	wantDue := func(want time.Time) {
		t.Helper()
		if at, ok, err := s.NextDue(t.Context()); !ok || err != nil || !at.Equal(want) {
			t.Errorf("next due %v, %v, %v; want %v", at, ok, err, want)
		}
	}
	wantDue(a.Until)
	s.advance(testLease - time.Nanosecond)
	if n, err := s.Rescue(t.Context(), s.time()); n != 0 || err != nil {
		t.Errorf("got %d rescued too early, error %v", n, err)
	}
	s.advance(time.Nanosecond)
	if n, err := s.Rescue(t.Context(), s.time()); n != 1 || err != nil {
		t.Errorf("got %d rescued, error %v; want 1", n, err)
	}
	wantLive(t, s, task1, "a:queued:2 b:claimed:1")
	again := s.mustClaim(t)
	if !again.Attempted || again.Attempt != 2 || again.LastError == "" || again.Epoch <= a.Epoch {
		t.Errorf("rescued job: got %+v", again)
	}
	s.finish(t, again)
	wantDue(testStart.Add(time.Hour))
	s.finish(t, b)
	if at, ok, err := s.NextDue(t.Context()); ok || err != nil {
		t.Errorf("got next due %v, error %v, want none", at, err)
	}
}

// Queues with waiting jobs; the work lane's retried job blocks the one behind it.
func TestNextDue(t *testing.T) {
	t.Parallel()
	for lane, want := range map[state.Lane]time.Duration{state.LaneWork: time.Hour, state.LaneTalk: 0} {
		s := newTestStore(t)
		l := string(lane)
		s.mustApply(t, spelled(task1, "", l+"/a"), Ack{})
		job := s.mustClaim(t)
		if err := s.Retry(t.Context(), job.ID, job.Epoch, state.Failed{Retry: s.time().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		s.mustApply(t, spelled(task1, "", l+"/b"), Ack{})
		if at, ok, err := s.NextDue(t.Context()); !ok || err != nil || !at.Equal(testStart.Add(want)) {
			t.Errorf("%s: next due %v, %v, %v; want after %v", lane, at, ok, err, want)
		}
	}
}

func TestRetryNeedsATime(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.mustApply(t, spelled(task1, "", "work/a"), Ack{})
	job := s.mustClaim(t)
	if err := s.Retry(t.Context(), job.ID, job.Epoch, state.Failed{Error: "boom"}); err == nil {
		t.Error("a job was requeued without a time")
	}
	wantLive(t, s, task1, "a:claimed:1")
}

func TestWritesWakeWorkers(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	woken := s.Wake(t.Context())
	expect := func(what string, want bool) {
		t.Helper()
		select {
		case <-woken:
			if !want {
				t.Errorf("%s: got a notification, want none", what)
			}
		default:
			if want {
				t.Errorf("%s: got no notification", what)
			}
		}
	}
	s.mustApply(t, spelled(task1, "save"), Ack{})
	expect("a task alone", false)
	s.mustApply(t, spelled(task1, "save", "work/a"), Ack{})
	expect("a job", true)
	if _, err := s.PutDelivery(t.Context(), Delivery{GUID: "g"}); err != nil {
		t.Fatal(err)
	}
	expect("a delivery", true)
}
