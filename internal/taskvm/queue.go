package taskvm

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// Rows lists the VMs in the store; *vm.Rows is one.
type Rows interface {
	List(ctx context.Context) ([]vm.Row, error)
}

// A QueueStore reads tasks and applies events to them; *store.Store is one.
type QueueStore interface {
	Overviews(ctx context.Context) ([]state.TaskOverview, error)
	Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error)
	Wake(ctx context.Context) <-chan struct{}
}

// QueueConfig configures a [Queue]. Zero durations select the defaults in parentheses.
type QueueConfig struct {
	Store QueueStore
	Rows  Rows
	// VMs is the maximum number of VMs at the same time; Provider is the provider's name in the configuration.
	VMs      int
	Provider string
	// RefusedAt returns when the provider last refused a VM because of a limit of the account, zero if it has created one
	// since; see fleet.Fleet.AccountRefusedAt.
	RefusedAt func() time.Time
	Now       func() time.Time
	Log       zerolog.Logger
	Every     time.Duration // how often the queue is checked while a task waits in it (2 s)
	Again     time.Duration // how long after a request it may be repeated (10 s)
	// Shown is the minimum time between two changes of the place that a task's status comment shows (1 min). It is longer if
	// more than six tasks wait, because GitHub limits an App's edits per hour.
	Shown time.Duration
}

// A Queue gives VMs to the tasks that wait for one, in the order in which they began to wait: it lets the next task try
// again when a VM is free, and has the VM suspended that has been idle for longest if all are in use, or if the provider
// refuses to create another one because of a limit of the account. It is for a single
// goroutine. A restart loses nothing but the times of its last requests.
type Queue struct {
	cfg   QueueConfig
	tried map[state.TaskKey]time.Time // when tasks were last told to try again
	shown map[state.TaskKey]time.Time // when their places last changed
}

// maxSave is how long saving the work on a VM counts as being under way. Then another VM is chosen.
const maxSave = 10 * time.Minute

// NewQueue returns a [Queue] with the defaults filled in.
func NewQueue(cfg QueueConfig) *Queue {
	cfg.Every = cmp.Or(cfg.Every, 2*time.Second)
	cfg.Again = cmp.Or(cfg.Again, 10*time.Second)
	cfg.Shown = cmp.Or(cfg.Shown, time.Minute)
	return &Queue{cfg: cfg, tried: map[state.TaskKey]time.Time{}, shown: map[state.TaskKey]time.Time{}}
}

// Run checks the queue until ctx ends.
func (q *Queue) Run(ctx context.Context) error {
	const idle = time.Minute
	wake := q.cfg.Store.Wake(ctx)
	for {
		waits, err := q.Step(ctx)
		if err != nil && ctx.Err() == nil {
			q.cfg.Log.Warn().Err(err).Msg("failed to check the queue for VMs; retrying")
		}
		if clock.Sleep(ctx, q.cfg.Every) != nil {
			return nil
		}
		if !waits && err == nil { // the store reports the next change
			if _, err := clock.SleepOrWake(ctx, idle, wake); err != nil {
				return nil //nolint:nilerr // ctx has ended
			}
		}
	}
}

// Step checks the queue once. It returns false if no task waits in it.
func (q *Queue) Step(ctx context.Context) (waits bool, err error) {
	tasks, err := q.cfg.Store.Overviews(ctx)
	if err != nil || !slices.ContainsFunc(tasks, isQueued) {
		return err != nil, err
	}
	rows, err := q.cfg.Rows.List(ctx)
	if err != nil {
		return true, err
	}
	queue, refused := waiting(tasks, rows), q.cfg.RefusedAt()
	free := min(max(q.cfg.VMs-inUse(rows, queue), 0), accountRoom(rows, q.cfg.Provider, refused), len(queue))
	for _, t := range queue[:free] {
		if err := q.retry(ctx, t.Key); err != nil {
			return true, err
		}
	}
	needed := len(queue) - free
	if !refused.IsZero() {
		needed -= beingDeleted(rows, q.cfg.Provider, q.cfg.Now())
	}
	if err := q.suspend(ctx, idleVMs(tasks, rows, q.cfg.Provider), needed); err != nil {
		return true, err
	}
	return true, q.show(ctx, queue)
}

// retry lets a task try again to get a VM.
func (q *Queue) retry(ctx context.Context, task state.TaskKey) error {
	if now := q.cfg.Now(); now.Sub(q.tried[task]) >= q.cfg.Again {
		q.tried[task] = now
		_, err := q.cfg.Store.Apply(ctx, event.Event{Task: task, Payload: event.ConditionChanged{}}, store.Ack{})
		return err
	}
	return nil
}

// suspend has as many of the idle VMs suspended as are needed, including those that are being suspended already.
func (q *Queue) suspend(ctx context.Context, idle []state.TaskOverview, needed int) error {
	now := q.cfg.Now()
	idle = slices.DeleteFunc(idle, func(t state.TaskOverview) bool {
		underWay := now.Sub(t.WantedAt) < maxSave
		if underWay {
			needed--
		}
		return underWay
	})
	for _, t := range idle {
		if needed <= 0 {
			return nil
		}
		applied, err := q.cfg.Store.Apply(ctx, event.Event{Task: t.Key, Payload: event.VMWanted{VM: t.IdleVM}}, store.Ack{})
		if err != nil {
			return err
		}
		if applied.Changed { // otherwise somebody has just answered
			q.cfg.Log.Info().Str("vm", t.IdleVM).Str("task", t.Key.String()).Msg("suspending an idle VM: another task waits for one")
			needed--
		}
	}
	return nil
}

// show has the tasks show their places.
func (q *Queue) show(ctx context.Context, queue []state.TaskOverview) error {
	now, gap := q.cfg.Now(), max(q.cfg.Shown, q.cfg.Shown*time.Duration(len(queue))/6)
	tried, shown := map[state.TaskKey]time.Time{}, map[state.TaskKey]time.Time{}
	for i, t := range queue {
		tried[t.Key], shown[t.Key] = q.tried[t.Key], q.shown[t.Key]
		if t.Place == i+1 || now.Sub(shown[t.Key]) < gap {
			continue
		}
		shown[t.Key] = now
		if _, err := q.cfg.Store.Apply(ctx, event.Event{Task: t.Key, Payload: event.QueueMoved{Place: i + 1}}, store.Ack{}); err != nil {
			return err
		}
	}
	q.tried, q.shown = tried, shown // without tasks that have left the queue
	return nil
}

func isQueued(t state.TaskOverview) bool { return !t.Queued.IsZero() }

// waiting returns the queue, without tasks whose VM is coming up. A VM that is only intended may have been refused.
func waiting(tasks []state.TaskOverview, rows []vm.Row) []state.TaskOverview {
	queue := slices.DeleteFunc(slices.Clone(tasks), func(t state.TaskOverview) bool {
		return !isQueued(t) || slices.ContainsFunc(rows, func(r vm.Row) bool {
			return r.Task == t.Key && !r.Phase.Over() && r.Phase != vm.Intended && r.Name != t.IdleVM // it may have an old one, too
		})
	})
	slices.SortStableFunc(queue, func(a, b state.TaskOverview) int { return a.Queued.Compare(b.Queued) })
	return queue
}

// ahead returns the tasks of the queue that come before a task, which need not wait yet.
func ahead(queue []state.TaskOverview, task state.TaskKey) []state.TaskOverview {
	i := slices.IndexFunc(queue, func(t state.TaskOverview) bool { return t.Key == task })
	if i < 0 {
		return queue
	}
	return queue[:i]
}

// inUse returns the number of VMs that leave no room for the queue. A standby VM is deleted when somebody needs its place,
// and the intended VM of a task in the queue is the one that it waits for.
func inUse(rows []vm.Row, queue []state.TaskOverview) (n int) {
	for _, r := range rows {
		if !r.Phase.Over() && (!r.Standby || r.Phase != vm.Parked) && !isIntendedFor(r, queue) {
			n++
		}
	}
	return n
}

// isIntendedFor reports whether a VM is only intended, for one of the tasks.
func isIntendedFor(r vm.Row, tasks []state.TaskOverview) bool {
	return r.Phase == vm.Intended && slices.ContainsFunc(tasks, func(t state.TaskOverview) bool { return t.Key == r.Task })
}

// accountRoom returns how many VMs the limit of the provider's account leaves room for, as far as errand knows: after a
// refusal, as many as have been deleted since. Other changes are noticed by the tasks' own retries.
func accountRoom(rows []vm.Row, provider string, refused time.Time) int {
	if refused.IsZero() {
		return math.MaxInt
	}
	room := 0
	for _, r := range rows {
		if r.Provider == provider && r.Successor == "" && !r.CreatedAt.IsZero() && r.EndedAt.After(refused) {
			room++
		}
	}
	return room
}

// beingDeleted returns the number of VMs that soon leave room in the provider's account. A deletion that takes longer than
// maxSave is not counted.
func beingDeleted(rows []vm.Row, provider string, now time.Time) (n int) {
	for _, r := range rows {
		if r.Provider == provider && r.Phase.Over() && !r.CreatedAt.IsZero() && r.EndedAt.IsZero() && now.Sub(r.Since) < maxSave {
			n++
		}
	}
	return n
}

// idleVMs returns the tasks that can give up their VMs, in the order in which they do: first those that wait for another
// one, then those that have waited for people the longest, at last those whose work could not be saved before. A VM of
// another provider makes no room.
func idleVMs(tasks []state.TaskOverview, rows []vm.Row, provider string) []state.TaskOverview {
	idle := slices.DeleteFunc(slices.Clone(tasks), func(t state.TaskOverview) bool {
		return t.IdleVM == "" || !slices.ContainsFunc(rows, func(r vm.Row) bool {
			return r.Name == t.IdleVM && !r.Phase.Over() && r.Provider == provider
		})
	})
	rank := func(t state.TaskOverview) int {
		switch {
		case !t.WantedAt.IsZero():
			return 2
		case isQueued(t):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(idle, func(a, b state.TaskOverview) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), a.IdleSince.Compare(b.IdleSince))
	})
	return idle
}
