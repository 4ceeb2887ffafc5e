package walk

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// errand is the product, assembled as in internal/server, but driven by the walk's clock on one goroutine. It dies with
// its context; the store survives.
type errand struct {
	w        *world
	ctx      context.Context
	kill     context.CancelFunc
	store    journal
	steps    *workflow.Steps
	queue    *queue.Queue
	poller   *watch.Poller
	super    *watch.Supervisor
	sweeper  *watch.Sweeper
	inbox    *handlers.Inbox
	watching bool
	follows  map[string]*watch.Following
	nextPoll time.Time
	nextHook time.Time // next sweep for lost webhooks
	nextLook time.Time // next sweep of GitHub's state
	swept    time.Time // last successful sweep of GitHub's state
	rescue   time.Time
	followed time.Time
	vmQueue  *taskvm.Queue
	nextTurn time.Time // next check of the queue for VMs
	born     time.Time
	reaped   map[string]bool // VMs without an owner at the last check
	idle     int             // version of the store at which all lanes were idle
	due      time.Time       // when a job is due then
}

// bench holds stateless objects that all walks share, because they are expensive to create. It detects known secrets,
// but not gitleaks' patterns, which no walk needs and which would take a tenth of its time.
type bench struct {
	redact  *trust.Redactor
	scanner *secretscan.Scanner
	agents  *registry.Registry
	err     error
}

var shared = sync.OnceValue(func() *bench {
	agents, err := registry.New(registry.DefaultConfig())
	return &bench{redact: trust.NewRedactor(nil, "hunter2-hunter2"), scanner: secretscan.New(nil, "hunter2-hunter2"), agents: agents, err: err}
})

// start creates errand with the existing store, as at a start of its process.
func (w *world) start() {
	b := shared()
	if b.err != nil {
		w.fatalf("make errand: %v", b.err)
	}
	e := &errand{born: w.now, idle: -1, w: w, store: w.journal, follows: map[string]*watch.Following{}}
	e.ctx, e.kill = context.WithCancel(context.Background())
	w.machines.refused = time.Time{} // errand does not store it
	now := func() time.Time { return w.now }
	gh := api{hub: w.hub}
	e.steps = workflow.New(workflow.Config{
		Store: w.journal, GitHub: gh, VMs: w.machines.vms(), Runner: w.machines, Tether: w.machines, Files: files{w: w}, Agents: b.agents, Agent: registry.DefaultConfig(),
		Redact: b.redact, Scanner: b.scanner, Defaults: settings.Default(), Now: now,
		RepoConfig: func(data []byte) (settings.Settings, error) {
			return config.ParseRepo(data, settings.Default(), nil)
		},
	})
	e.queue = queue.New(queue.Config{
		Store: w.journal, Handle: w.plant.handle(w, e.steps.Handle), Judge: server.Judge, Now: now, Log: w.log, Lease: server.Lease, Patient: server.Patient, Exclusive: true,
	})
	e.poller = watch.NewPoller(watch.PollerConfig{Store: w.journal, GitHub: gh, Log: w.log, Now: now})
	e.super = watch.NewSupervisor(watch.SupervisorConfig{
		Store: w.journal, Follow: w.machines.follow, Gone: isLost, Log: w.log, Now: now,
		Tether: func(ctx context.Context, t *state.Task) error { return w.machines.Ensure(ctx, t.Run.VM, t.Key) },
		Interpret: func(t *state.Task, r *state.Run) watch.Interpreter {
			return w.plant.interpreter(e.steps.Interpret(t, r))
		},
		Transcripts: func(string) (watch.Transcript, error) { return transcript{}, nil },
	})
	e.inbox = handlers.NewInbox(w.journal, w.journal, mapper(w), w.log, now)
	e.inbox.Applied = func() { e.nextPoll = earlier(e.nextPoll, w.now.Add(2*time.Second)) }
	e.sweeper = watch.NewSweeper(watch.SweeperConfig{
		Store: sweepStore{w.journal, w.model}, GitHub: gh, Inbox: sweepInbox{e.inbox, w.model}, Log: w.log, Now: now, BotID: botID, BotLogin: botLogin, Slug: slug, Assignee: assignee, Label: label,
	})
	e.vmQueue = w.machines.queue()
	e.nextTurn, e.nextPoll, e.nextHook, e.nextLook, e.rescue, e.followed = w.now, w.now, w.now, w.now, w.now.Add(10*time.Second), w.now
	w.errand, w.model.good = e, map[conversation]time.Time{}
	w.itself = true // errand would end and be restarted
	if _, err := w.journal.Rescue(e.ctx, w.now.Add(24*time.Hour)); err != nil && e.ctx.Err() == nil {
		w.fatalf("rescue: %v", err)
	}
	w.itself = false
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// up reports whether the process is running.
func (e *errand) up() bool { return e.ctx.Err() == nil }

// receive accepts a webhook as the route does; false means an answer other than 200.
func (e *errand) receive(k *hook) bool {
	if !e.up() {
		return false
	}
	if err := e.inbox.Insert(e.ctx, k.guid, k.event, k.payload); err != nil {
		return false
	}
	k.through = true
	return true
}

// settle does all due work sequentially until errand is idle. The order of lanes and watchers is drawn once per walk.
func (e *errand) settle() {
	for n := 0; e.up(); n++ {
		if n > 2000 {
			e.w.fatalf("errand never becomes idle at one instant")
		}
		if !e.once() {
			return
		}
	}
}

// once does one round of work and reports whether there was any.
func (e *errand) once() bool {
	w, any := e.w, false
	if e.idle != w.db.version || !w.now.Before(e.due) {
		any = w0(e.inbox.Work(e.ctx)) > 0
		any = e.lanes() || any
		if !any {
			e.rest()
		}
	}
	e.watch()
	return any
}

// rest records the time of the next job.
func (e *errand) rest() {
	e.idle, e.due = e.w.db.version, e.w.now.Add(1000*time.Hour)
	if due, ok, err := e.store.NextDue(e.ctx); err == nil && ok {
		e.due = due
		if !due.After(e.w.now) { // its lane is busy
			e.due = e.w.now.Add(time.Second)
			e.rescue = earlier(e.rescue, e.w.now.Add(10*time.Second)) // its lease may have ended, also within a long span
		}
	}
}

// lanes does one job of each lane.
func (e *errand) lanes() (any bool) {
	w := e.w
	for _, lane := range w.lanes {
		if done, err := e.queue.Step(e.ctx, lane); err != nil && e.up() && !errors.Is(err, errFull) {
			w.fatalf("claim a job: %v", err)
		} else if done {
			w.done++
			any = true
		}
	}
	return any
}

func w0(n int, _ error) int { return n }

// watch runs the watchers that are due.
func (e *errand) watch() {
	w := e.w
	if e.watching { // a person acts during a watcher's call, which reads afterwards
		return
	}
	e.watching = true
	defer func() { e.watching = false }()
	if !w.now.Before(e.followed) {
		e.follow()
	}
	if e.up() && !w.now.Before(e.nextPoll) {
		e.nextPoll = w.now.Add(max(time.Minute, w.coarse))
		w.polls.checkBegin()
		if young, _, _ := e.poller.Poll(e.ctx); young {
			e.nextPoll = w.now.Add(max(15*time.Second, w.coarse))
		}
		w.polls.ends()
	}
	if e.up() && !w.now.Before(e.nextHook) {
		e.nextHook = w.now.Add(max(5*time.Minute, w.coarse))
		swept := w.storage.fetches()
		_ = e.sweeper.SweepDeliveries(e.ctx) // logged there, and retried
		swept()
	}
	if e.up() && !w.now.Before(e.nextLook) {
		e.nextLook = w.now.Add(max(15*time.Minute, w.coarse))
		e.reap()
		swept := w.model.sweeps()
		if err := e.sweeper.SweepState(e.ctx); (err == nil || errors.Is(err, watch.ErrIncomplete)) && e.up() {
			e.swept = w.now
		}
		swept()
	}
	if e.up() && !w.now.Before(e.nextTurn) {
		e.nextTurn = w.now.Add(max(time.Minute, w.coarse))
		if waits, _ := e.vmQueue.Step(e.ctx); waits { // an error is retried
			e.nextTurn = w.now.Add(max(10*time.Second, w.coarse))
		}
	}
	if e.up() && !w.now.Before(e.rescue) {
		e.rescue = w.now.Add(max(time.Minute, w.coarse))
		if _, err := e.store.Rescue(e.ctx, w.now); err != nil && e.up() && !errors.Is(err, errFull) {
			w.fatalf("rescue: %v", err)
		}
	}
}

// endCoarseSpan ends the coarse intervals of a long span: watchers that were due in hours run at their normal
// intervals.
func (e *errand) endCoarseSpan() {
	now := e.w.now
	e.followed, e.nextPoll, e.rescue = earlier(e.followed, now.Add(time.Minute)), earlier(e.nextPoll, now.Add(time.Minute)), earlier(e.rescue, now.Add(time.Minute))
	e.nextTurn = earlier(e.nextTurn, now.Add(time.Minute))
	e.nextHook, e.nextLook = earlier(e.nextHook, now.Add(5*time.Minute)), earlier(e.nextLook, now.Add(15*time.Minute))
}

// follow reads the logs of active runs like the supervisor's goroutines.
func (e *errand) follow() {
	e.followed = e.w.now.Add(max(time.Minute, e.w.coarse))
	tasks, err := e.store.TasksIn(e.ctx, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview)
	if err != nil {
		return
	}
	for _, t := range tasks {
		if t.Run == nil || t.Run.State != state.RunActive || e.follows[t.Run.ID] != nil {
			continue
		}
		if e.follows[t.Run.ID], err = e.super.Follow(t); err != nil {
			e.w.fatalf("follow run %s: %v", t.Run.ID, err)
		}
	}
	for _, id := range sortedKeys(e.follows) {
		if e.up() && e.follows[id].Step(e.ctx) && e.up() {
			e.follows[id].Close()
			delete(e.follows, id)
		}
	}
}

// reap deletes VMs that had no owner at two checks.
func (e *errand) reap() {
	owned := map[string]bool{}
	err := e.store.EachOpen(e.ctx, func(l store.Listed) error {
		t, err := l.Load()
		if err != nil {
			return err
		}
		if t.VM != nil {
			owned[t.VM.Name] = true
		}
		if t.Run != nil {
			for _, o := range e.w.machines.list {
				owned[o.name] = owned[o.name] || o.owner == t.Key.String()
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	before := e.reaped
	e.reaped = map[string]bool{}
	for _, o := range e.w.machines.list {
		if !o.ended && !owned[o.name] {
			e.reaped[o.name] = true
			owned[o.name] = !before[o.name]
		}
	}
	e.w.machines.reap(owned)
}

// next returns the time of the next work.
func (e *errand) next() time.Time {
	return slices.MinFunc([]time.Time{e.nextTurn, e.nextPoll, e.nextHook, e.nextLook, e.rescue, e.followed, e.due}, time.Time.Compare)
}
