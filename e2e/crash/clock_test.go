package crash

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
)

// clock is the time of one life, for errand and GitHub: real time plus the skipped time. Waits based on errand's store
// (ends of leases, back-offs, gathering of reviews, gaps between edits of the status comment) have production's length
// and are skipped. Waits for real connections and processes (polls, sandboxes, the agent) take real time, with short
// intervals.
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

// to advances the clock to a moment shortly after at. It never goes back.
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

// Notify also notifies those who wait for the store or a time when the clock was advanced.
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

// counted tracks the jobs that this incarnation works on.
func (g *gate) counted(do queue.Handler) queue.Handler {
	return func(ctx context.Context, job *state.Job) (event.Event, error) {
		c := claim{job.ID, job.Epoch}
		g.working.Store(c, true)
		defer g.working.Delete(c)
		return do(ctx, job)
	}
}

// orphaned is the real time for which a claim must have no worker before the clock skips to the end of its lease,
// because a worker may be slow to begin. A worker that loses its lease nevertheless is fenced, and the next one checks
// for its effects.
const orphaned = 1500 * time.Millisecond

// skip advances the clock to the next time that errand waits for, if errand is otherwise idle. It is called repeatedly
// and acts only on a state that it has seen twice.
func (l *life) skip(ctx context.Context) error {
	if l.script.byHand {
		return nil
	}
	sn := l.world.GitHub.Snapshot()
	repo, ok := sn.Repo(demo.Full)
	if !ok {
		return nil
	}
	// Jobs exist before the task, and some after its end.
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

// due returns the time for which the jobs of a task, which may be nil, wait, or zero if one of them is being worked on.
// lease reports whether it is the end of a claim.
func (l *life) due(t *state.Task, jobs []state.Job) (next time.Time, lease bool) {
	running := t != nil && t.Run != nil && t.Run.State == state.RunActive
	unheard := map[state.Lane]bool{} // claimed without a worker: jobs queued there wait for the end of that lease
	for _, j := range jobs {
		_, working := l.gate.working.Load(claim{j.ID, j.Epoch})
		unheard[j.Lane] = unheard[j.Lane] || j.State == state.JobClaimed && !working
	}
	stops := slices.ContainsFunc(jobs, func(j state.Job) bool { return j.Kind == state.JobStop })
	for _, j := range jobs {
		at := j.NotBefore
		switch _, working := l.gate.working.Load(claim{j.ID, j.Epoch}); {
		case working:
			return time.Time{}, false
		case j.State == state.JobClaimed: // no worker has the claim, so its lease must end
			at = j.Until
		case unheard[j.Lane], stops && j.Kind == state.JobLaunch: // the stop of the run before comes first
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
