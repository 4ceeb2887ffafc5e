package walk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// dice is a walk's source of randomness.
type dice interface {
	// roll returns a number from 0 to n-1; n is at most 256.
	roll(what string, n int) int
}

// world is one walk: GitHub and its people, VMs and agents, errand and its store, the clock, the armed troubles, and
// the model of the promises. It is for one goroutine.
type world struct {
	dice
	now      time.Time
	hub      *hub
	machines *machines
	db       *memory
	store    *store.Store
	journal  journal // the same, as errand sees it
	jobs     *jobs
	polls    *polls
	books    *books
	works    *works
	storage  *storage
	known    []*state.Task // all tasks at a version of the store
	knownAt  int
	errand   *errand
	model    *model
	files    map[string]*changeset.Changeset
	asleep   map[string][]byte // saved work, by name
	lanes    []state.Lane

	mood      string // of the next run
	mishap    mishap // of the next webhook
	armed     []trouble
	chains    []*chain
	job       *state.Job // in flight
	down      string     // the call that fails until downUntil
	revoked   []grant
	out       time.Time // GitHub is down until then
	downUntil time.Time
	slow      time.Time // time of the last slow call
	lostSight time.Time // time of the last failure to follow a run
	slowly    bool      // such a call is in flight
	late      bool      // its effect occurs now
	upAt      time.Time // when errand restarts, if it is down
	trouble   time.Time // time of the last failure
	blocker   *issue    // the issue's blockers
	plant     plant
	lag       time.Duration // after which GitHub's lists show a comment
	coarse    time.Duration // the interval of watchers in a long span
	ended     coarseSpan    // the span before this one
	inStep    time.Time     // when the current step began
	nested    int
	plans     int
	done      int // jobs
	steps     int
	applying  event.Kind     // being applied by the store
	log       zerolog.Logger // drops everything unless it is set
	itself    bool           // the current request to the store is the walk's own
	trail     []string
	met       func(string) // for coverage
	fail      func(string)
	broke     string // the first complaint, because the queue converts a step's panic to an error
}

// began is the start time of every walk.
func began() time.Time { return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC) }

func newWorld(d dice, fault plant, met, fail func(string)) *world {
	w := &world{dice: d, plant: fault, now: began(), files: map[string]*changeset.Changeset{}, asleep: map[string][]byte{}, lanes: state.Lanes(), met: met, fail: fail}
	w.assemble()
	w.openStore()
	for i := range w.lanes { // another order in every walk
		j := i + w.roll("lane", len(w.lanes)-i)
		w.lanes[i], w.lanes[j] = w.lanes[j], w.lanes[i]
	}
	w.machines.limit(w.lanes)
	w.hub.config = configs()[max(w.roll("config at first", 10)-4, 0)]
	w.start()
	return w
}

// assemble creates GitHub, the VMs and the model of the promises, with an empty database.
func (w *world) assemble() {
	w.hub, w.machines, w.model = newHub(w), &machines{w: w, slots: 3}, newModel(w)
	w.db, w.knownAt = newMemory(), -1
}

// openStore opens the store of the database, and begins to count its operations.
func (w *world) openStore() {
	st, err := store.Open(context.Background(), w.db, store.Options{Now: func() time.Time { return w.now }})
	if err != nil {
		w.fatalf("open the store: %v", err)
	}
	w.store, w.journal, w.jobs, w.polls = st, journal{st, w}, newJobs(w), &polls{w: w}
	w.books, w.works, w.storage = newBooks(w), newWorks(w), newStorage(w)
	w.db.commit = w.commit
}

// fatalf ends the walk: a promise is broken.
func (w *world) fatalf(format string, args ...any) {
	if w.broke == "" {
		w.broke = w.story(format, args...)
	}
	w.fail(w.broke)
}

// story returns a complaint with the walk that led to it.
func (w *world) story(format string, args ...any) string {
	return fmt.Sprintf(format, args...) + "\nthe walk:\n" + strings.Join(w.trail, "\n")
}

// note adds a line to the walk's log.
func (w *world) note(format string, args ...any) {
	w.trail = append(w.trail, fmt.Sprintf("%-14s", w.now.Sub(began()).Truncate(time.Second))+strings.Repeat("  ", w.nested)+fmt.Sprintf(format, args...))
}

func (w *world) hit(what string) { w.met(what) }

// troubled records a failure, so that time limits are counted from now.
func (w *world) troubled() { w.trouble = w.now }

// trouble is a failure at an external call, a number of calls from now.
type trouble struct {
	after int
	kind  string
	act   func()
	op    string // the call, or the event for the store, at which it occurs; any, if empty
}

// troubles that can be armed. "meanwhile" lets others act while the call is under way.
func troubles() []string {
	return []string{"meanwhile", "denied", "lost answer", "limit", "die before", "die after", "slow", "forbidden", "store refuses"}
}

var errCut = errors.New("the connection was cut")

// gate is called by every external call.
func (w *world) gate(ctx context.Context, op string, writes bool, effect func() error) error {
	w.now = w.now.Add(60 * time.Millisecond)
	if err := ctx.Err(); err != nil {
		return err
	}
	w.hit("call " + op)
	onVM := strings.Contains(op, "VM") || slices.Contains([]string{"place", "prepare", "reset", "rebase", "collect", "lend", "attach tether", "start run", "ask for run", "stop run", "follow", "pack", "unpack"}, op)
	if !onVM && w.now.Before(w.out) {
		w.troubled()
		return temporary(op, forge.ClassTemporary, 503, time.Time{})
	}
	if err := w.fails(op); err != nil {
		return err
	}
	t, ok := trouble{}, false
	if kind := w.link(op, onVM, writes); kind != "" {
		t, ok = w.chainTrouble(kind), true
		w.hit("link " + kind)
	} else {
		t, ok = w.nextTrouble(op, onVM, writes)
	}
	if !ok {
		return effect()
	}
	w.hit("trouble " + t.kind)
	w.note("trouble: %s at %q", t.kind, op)
	if op == "follow" || op == "attach tether" { // real runs send a heartbeat every few seconds; the simulated ones do not
		w.lostSight = w.now
	}
	if t.kind != "meanwhile" {
		w.troubled()
	}
	return w.suffer(ctx, t, op, effect)
}

// nextTrouble counts down the armed troubles and returns the one that occurs now.
func (w *world) nextTrouble(op string, onVM, writes bool) (trouble, bool) {
	for i := range w.armed {
		t := &w.armed[i]
		if t.kind == "store refuses" || t.op != "" && t.op != op {
			continue // at a commit, or at another call
		}
		if t.after--; t.after >= 0 {
			continue
		}
		if onVM && (t.kind == "limit" || t.kind == "forbidden") || t.kind == "lost answer" && !writes || t.kind == "meanwhile" && w.nested > 1 {
			continue // at the next matching call
		}
		found := *t
		w.armed = slices.Delete(w.armed, i, i+1)
		return found, true
	}
	return trouble{}, false
}

func (w *world) suffer(ctx context.Context, t trouble, op string, effect func() error) error {
	switch t.kind {
	case "meanwhile", "denied":
		slow := w.slow
		if t.act != nil {
			w.meanwhile(t.act)
		}
		switch err := ctx.Err(); {
		case err != nil:
			return err
		case w.slow != slow: // it took longer than the lease, before which a step's context ends
			return context.DeadlineExceeded
		case t.kind == "meanwhile":
			return effect()
		}
		return temporary(op, forge.ClassTemporary, 502, time.Time{})
	case "forbidden":
		if t.act != nil {
			w.meanwhile(t.act)
		}
		return cmp.Or(ctx.Err(), refuses(op))
	case "limit":
		return temporary(op, forge.ClassTemporary, 429, w.now.Add(64*time.Second))
	case "lost answer":
		if err := effect(); err != nil {
			return err
		}
		return temporary(op, forge.ClassUnknown, 0, time.Time{})
	case "slow": // so slow that the lease expires, and another worker does the job before this call has its effect
		if w.slowly { // no call takes longer
			return temporary(op, forge.ClassTemporary, 502, time.Time{})
		}
		w.slowly = true
		defer func() { w.slowly = false }()
		w.now = w.now.Add(20 * time.Minute)
		w.slow = w.now
		w.troubled() // the walk has one goroutine, so nothing was read meanwhile
		if _, err := w.journal.Rescue(ctx, w.now); err != nil {
			return err
		}
		w.nested++
		w.errand.settle()
		w.nested--
		if err := ctx.Err(); err != nil {
			return err
		}
		if op == "unpack" || op == "pack" { // the stream ends with its connection
			return context.DeadlineExceeded
		}
		w.late = true
		defer func() { w.late = false }()
		return cmp.Or(effect(), context.DeadlineExceeded) // a step's context ends before its lease does
	case "die before":
		w.die()
		return ctx.Err()
	case "die after":
		err := effect()
		w.die()
		return cmp.Or(ctx.Err(), err)
	}
	w.fatalf("no such trouble: %s", t.kind)
	return nil
}

// meanwhile runs a function during a call.
func (w *world) meanwhile(act func()) {
	began := w.inStep
	w.nested++
	act()
	w.nested--
	w.inStep = began
}

// temporary returns a temporary error of GitHub or of the network.
func temporary(op string, class forge.Class, status int, retry time.Time) error {
	return &forge.Error{Op: op, Reason: "GitHub did not answer as it should.", Class: class, Status: status, Retry: retry, Err: errCut}
}

// die ends errand's process at once; it restarts later.
func (w *world) die() {
	w.troubled()
	w.errand.kill()
	w.upAt = w.now.Add([]time.Duration{time.Second, 30 * time.Second, 10 * time.Minute}[w.roll("down", 3)])
}

// pass lets time pass with everything that happens in it.
func (w *world) pass(d time.Duration) {
	until := w.now.Add(d)
	w.coarse = 0
	if d > time.Minute {
		w.coarse = d / 6
	}
	for n := 0; ; n++ {
		if n > 20_000 {
			w.fatalf("too many events within %s", d)
		}
		w.happen()
		at := w.next()
		if !at.Before(until) {
			break
		}
		if at.After(w.now) {
			w.now = at
		}
	}
	if w.now.Before(until) {
		w.now = until
	}
	w.happen()
	w.ended = coarseSpan{w.coarse, w.now}
	w.coarse = 0
	w.errand.endCoarseSpan()
}

// happen does everything that is due at this instant.
func (w *world) happen() {
	if w.broke != "" {
		w.fail(w.broke)
	}
	if !w.errand.up() && !w.now.Before(w.upAt) {
		w.note("errand restarts")
		w.start()
	}
	for _, o := range w.machines.list {
		for _, r := range o.runs {
			if r.exit == nil && !w.now.Before(r.ends) {
				w.endRun(r, "exited")
			}
		}
	}
	w.hub.deliver()
	if w.errand.up() {
		w.errand.settle()
	}
	w.model.watch()
}

// next returns the time of the next event.
func (w *world) next() time.Time {
	at := w.now.Add(100 * 24 * time.Hour)
	if w.errand.up() {
		at = w.errand.next()
	} else {
		at = earlier(at, w.upAt)
	}
	if h := w.hub.nextHook(); !h.IsZero() {
		at = earlier(at, h)
	}
	for _, o := range w.machines.list {
		for _, r := range o.runs {
			if r.exit == nil {
				at = earlier(at, r.ends)
			}
		}
	}
	if !at.After(w.now) { // due, but not available: its lane is busy
		at = w.now.Add(time.Second)
	}
	return at
}

// tasks returns all tasks in the store.
func (w *world) tasks() []*state.Task {
	if w.knownAt == w.db.version {
		return w.known
	}
	var list []*state.Task
	for _, name := range w.db.named("task/") { // not AllTasks, which would decode every task again
		key, err := state.ParseTaskKey(name)
		if err != nil {
			w.fatalf("list tasks: %v", err)
		}
		task, err := w.store.Task(context.Background(), key)
		if err != nil {
			w.fatalf("list tasks: %v", err)
		}
		list = append(list, task)
	}
	w.known, w.knownAt = list, w.db.version
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
