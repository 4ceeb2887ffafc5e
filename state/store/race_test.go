package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/kvtest"
)

// crew is a number of workers on one store, with their finished jobs.
type crew struct {
	*testStore
	mu       sync.Mutex
	finished map[string]int      // job id → how often it was finished
	order    map[string][]string // task and lane → keys in the order in which they were finished
	left     int
}

// Workers exceed their leases, fail and return jobs concurrently: every job is finished exactly once, and those of one
// task and lane in the order of their creation.
func TestManyWorkers(t *testing.T) {
	t.Parallel()
	const tasks, rounds, workers = 4, 8, 8
	c := &crew{
		testStore: newTestStore(t), finished: map[string]int{}, order: map[string][]string{},
		left: tasks * rounds * 2,
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	for i := range tasks {
		group.Go(func() {
			for n := range rounds {
				key := strconv.Itoa(n)
				e := spelled(state.TaskKey{Repo: 1, Issue: i + 1}, "save", "work/w"+key, "talk/t"+key)
				if _, err := c.Apply(ctx, e, Ack{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range workers {
		group.Go(func() { c.work(ctx, t, rand.New(rand.NewPCG(1, uint64(i)))) })
	}
	group.Wait()
	if ctx.Err() != nil {
		t.Fatalf("got %d unfinished jobs, want 0", c.left)
	}
	for id, n := range c.finished {
		if n != 1 {
			t.Errorf("job %s: got finished %d times, want once", id, n)
		}
	}
	for lane, keys := range c.order {
		for n, key := range keys {
			if strings.HasPrefix(lane, string(state.LaneWork)) && key != "w"+strconv.Itoa(n) {
				t.Errorf("lane %s: got the order %v", lane, keys)
				break
			}
		}
	}
	for i := range tasks {
		task, err := c.Task(ctx, state.TaskKey{Repo: 1, Issue: i + 1})
		if err != nil || task.Version != rounds*3 {
			t.Errorf("task %d is at version %d, %v; want %d", i+1, task.Version, err, rounds*3)
		}
	}
}

// work claims and finishes jobs until none is left.
func (c *crew) work(ctx context.Context, t *testing.T, random *rand.Rand) {
	woken := c.Wake(ctx)
	for ctx.Err() == nil && !c.done() {
		job, err := c.Claim(ctx, c.claimReq())
		if err != nil {
			t.Error(err)
			return
		}
		if job == nil {
			select {
			case <-woken:
			case <-ctx.Done():
			default: // nothing to claim: time passes, and leases with it
				c.advance(time.Second)
				if _, err := c.Rescue(ctx, c.time()); err != nil {
					t.Error(err)
				}
			}
			continue
		}
		switch random.IntN(4) {
		case 0: // dawdle: the lease ends, somebody else gets the job
			c.advance(2 * testLease)
			if _, err := c.Rescue(ctx, c.time()); err != nil {
				t.Error(err)
			}
		case 1: // give back
			err := c.Retry(ctx, job.ID, job.Epoch, state.Failed{Error: "again", Retry: c.time().Add(time.Second)})
			if err != nil && !errors.Is(err, ErrLeaseLost) {
				t.Error(err)
			}
		}
		c.finishOne(ctx, t, job)
	}
}

func (c *crew) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left == 0
}

// finishOne applies a job's outcome; a worker that lost the lease is refused. The mutex makes the order of the records
// that of the commits within a lane, because no other worker can finish there in between.
func (c *crew) finishOne(ctx context.Context, t *testing.T, job *state.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.Apply(ctx, spelled(job.Task, "save"), Ack{Job: job.ID, Epoch: job.Epoch})
	if errors.Is(err, ErrLeaseLost) {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	c.left--
	c.finished[job.ID]++
	lane := fmt.Sprintf("%s %s", job.Lane, job.Task)
	c.order[lane] = append(c.order[lane], job.Key)
}

// A story is played repeatedly; each time one write fails, or succeeds with an error for the caller, and the process
// starts again. The result is always the same.
func TestEveryWriteMayFail(t *testing.T) {
	t.Parallel()
	whole := playStory(t, 0, kvtest.FaultNone)
	if whole < 8 {
		t.Fatalf("got a story of only %d writes", whole)
	}
	for _, fault := range []kvtest.Fault{kvtest.FaultBefore, kvtest.FaultAfter} {
		for n := int64(1); n <= whole; n++ {
			playStory(t, n, fault)
		}
	}
}

// playStory plays the story with a fault in the n-th write and returns the number of writes.
func playStory(t *testing.T, n int64, fault kvtest.Fault) int64 {
	t.Helper()
	s := newTestStore(t)
	var faulty *kvtest.Faulty
	faulty = kvtest.NewFaulty(s.db, func(i int64) kvtest.Fault {
		if i == n {
			return fault
		}
		return kvtest.FaultNone
	})
	s.Store.db = faulty
	failures := 0
	for !describeState(t, s) {
		if failures++; failures > 2 {
			t.Fatalf("fault %d in write %d: got no end of the story", fault, n)
		}
		s.advance(2 * testLease) // the process begins again, later
	}
	what := fmt.Sprintf("fault %d in write %d", fault, n)
	task, err := s.Task(t.Context(), task1)
	if err != nil || task == nil || task.Version != 3 || task.Phase != state.PhaseDone {
		t.Errorf("%s: task is %+v, %v", what, task, err)
	}
	wantLive(t, s, task1, "")
	wantPending(t, s, "")
	return faulty.Updates()
}

// describeState plays the story from the state of the store to its end, or to the first fault: a delivery is stored and
// applied, it makes two jobs, they are claimed, attempted and finished.
func describeState(t *testing.T, s *testStore) bool {
	t.Helper()
	injected := func(err error) bool {
		if err != nil && !errors.Is(err, kvtest.ErrInjected) {
			t.Fatal(err)
		}
		return err != nil
	}
	ctx := t.Context()
	if _, err := s.Rescue(ctx, s.time()); injected(err) {
		return false
	}
	if _, err := s.PutDelivery(ctx, Delivery{GUID: "guid", Payload: []byte("{}")}); injected(err) {
		return false
	}
	pending, err := s.PendingDeliveries(ctx, 10)
	injected(err)
	for _, d := range pending {
		if _, err := s.Apply(ctx, spelled(task1, "save", "work/a", "work/b"), Ack{Delivery: d.GUID}); injected(err) {
			return false
		}
	}
	for {
		job, err := s.Claim(ctx, s.claimReq())
		if injected(err) {
			return false
		}
		if job == nil {
			return true
		}
		if injected(s.MarkAttempted(ctx, job.ID, job.Epoch)) {
			return false
		}
		detail := "save"
		if job.Key == "b" {
			detail = "phase=done"
		}
		if _, err := s.Apply(ctx, spelled(task1, detail), Ack{Job: job.ID, Epoch: job.Epoch}); injected(err) {
			return false
		}
	}
}

var _ kv.DB = (*kvtest.Faulty)(nil)
