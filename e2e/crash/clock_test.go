package crash

import (
	"context"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
)

// clock is the time in one life, for errand and for GitHub: real time, and what was skipped of it. What
// errand waits for by its store (the ends of leases, back-offs, the gathering of reviews, the gaps
// between edits of the status comment) has production's length and costs nothing. What waits on real
// connections and processes (polls, the boxes, the agent) has real time, and short intervals.
type clock struct {
	mu      sync.Mutex
	skipped time.Duration
	moved   chan struct{} // closed at the next skip
}

func newClock() *clock { return &clock{moved: make(chan struct{})} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skipped)
}

// to moves the clock on to a moment a little after at. It never goes back.
func (c *clock) to(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := at.Sub(time.Now().Add(c.skipped)) + time.Millisecond
	if left <= 0 {
		return
	}
	c.skipped += left
	close(c.moved)
	c.moved = make(chan struct{})
}

func (c *clock) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// Notify wakes those who wait for the store or for a time when the clock was moved, too.
func (d gatedDB) Notify(ctx context.Context, prefix string) <-chan struct{} {
	in, out := d.DB.Notify(ctx, prefix), make(chan struct{}, 1)
	go func() {
		for moved := d.g.s.clock.next(); ; {
			select {
			case <-ctx.Done():
				return
			case <-in:
			case <-moved:
				moved = d.g.s.clock.next()
			}
			select {
			case out <- struct{}{}:
			default:
			}
		}
	}()
	return out
}

var _ kv.DB = gatedDB{}

// claim is one claim of a job.
type claim struct {
	job   string
	epoch int64
}

// counted keeps account of the jobs that this incarnation works on.
func (g *gate) counted(do queue.Handler) queue.Handler {
	return func(ctx context.Context, job *state.Job) (event.Event, error) {
		c := claim{job.ID, job.Epoch}
		g.working.Store(c, true)
		defer g.working.Delete(c)
		return do(ctx, job)
	}
}

// orphaned is for how long, in real time, a claim has to be nobody's before its lease is made to end: a
// worker may be slow to begin. One that is robbed of its lease for all that is fenced, and looks.
const orphaned = 1500 * time.Millisecond

// skip moves the clock on to what errand waits for next, if that is all that it does. It is called now
// and again, and believes only what it sees twice.
func (l *life) skip(ctx context.Context) error {
	if l.script.byHand {
		return nil
	}
	sn := l.world.GitHub.Snapshot()
	repo, ok := sn.Repo(demo.Full)
	if !ok {
		return nil
	}
	// Jobs come before the task, and some after its end.
	key, store := state.TaskKey{Repo: repo.ID, Issue: 1}, l.world.Server.Store()
	task, err := store.Task(ctx, key)
	if err != nil {
		return err
	}
	jobs, err := store.Jobs(ctx, key)
	if err != nil {
		return err
	}
	next, lease := l.due(task, jobs)
	switch {
	case !next.Equal(l.waits):
		l.waits, l.since = next, time.Now()
	case !lease || time.Since(l.since) > orphaned:
		l.script.clock.to(next)
	}
	return nil
}

// due returns the time for which the jobs of a task, which may be nil, wait, or zero if one of them is being worked on. lease
// says that it is the end of a claim.
func (l *life) due(t *state.Task, jobs []state.Job) (next time.Time, lease bool) {
	running := t != nil && t.Run != nil && t.Run.State == state.RunActive
	unheard := map[state.Lane]bool{} // claimed by nobody: what is queued there waits for the end of that lease
	for _, j := range jobs {
		_, working := l.gate.working.Load(claim{j.ID, j.Epoch})
		unheard[j.Lane] = unheard[j.Lane] || j.State == state.JobClaimed && !working
	}
	for _, j := range jobs {
		at := j.NotBefore
		switch _, working := l.gate.working.Load(claim{j.ID, j.Epoch}); {
		case working:
			return time.Time{}, false
		case j.State == state.JobClaimed: // the claim was not heard of: its lease has to end
			at = j.Until
		case unheard[j.Lane]:
			continue
		case j.Kind == state.JobDue || running && j.Attempt == 0:
			continue
		}
		if next.IsZero() || at.Before(next) {
			next, lease = at, j.State == state.JobClaimed
		}
	}
	return next, lease
}
