package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/errand-bot/errand/internal/server"
)

// errDied is the error of all operations after errand's death.
var errDied = errors.New("errand has died")

// moment is the point within an operation at which it fails or errand dies.
type moment string

const (
	before moment = "before" // no effect
	after  moment = "after"  // with the effect; the answer is lost

	// Errand survives these.
	refused moment = "refused" // no effect, and an error
	unheard moment = "unheard" // with the effect; the answer is lost
)

// errUnheard is the error of a failing operation that errand survives.
var errUnheard = errors.New("connection reset by failpoint")

// point is a failpoint: the n-th time (from 1) that one life does op.
type point struct {
	op   string
	n    int
	when moment
}

func (p point) String() string { return fmt.Sprintf("%s %s #%d", p.when, p.op, p.n) }

// script holds the failpoints of one life, over all incarnations of errand, and the operations so far.
type script struct {
	mu     sync.Mutex
	die    map[point]bool // not yet reached
	drawn  []draw         // likewise, in order
	hits   []point
	counts map[string]int // operations that began
	ends   map[string]int // operations that ended
	order  map[point]int  // the number of operations before each one; the moment is empty
	from   int            // the number of operations before those that a test is about

	plot     plot
	clock    *clock
	byHand   bool          // the test advances the clock
	settings string        // errand's section timing
	timing   server.Timing // timing without a configuration key
	fault    fault         // planted as a control
	patience time.Duration // timeout of one step of this life
	held     map[point]*held
	listen   func(context.Context) (net.Listener, error) // opens errand's port; nil for an ordinary one
	started  ledger                                      // runs
	tried    ledger                                      // names of VMs, also of those whose creation failed
}

// ledger is a list of what all incarnations have done.
type ledger struct {
	mu   sync.Mutex
	list []string
}

func (l *ledger) add(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, what)
}

// twice returns an error if a run was added twice.
func (l *ledger) twice() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, name := range l.list {
		if slices.Index(l.list, name) < i {
			return fmt.Errorf("run %s was started twice", name)
		}
	}
	return nil
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}

// held is an operation that does not begin until it is released.
type held struct {
	reached, release chan struct{}
	then             moment // its failure
}

// hold blocks one operation.
func (s *script) hold(op string, n int, then moment) *held {
	h := &held{reached: make(chan struct{}), release: make(chan struct{}), then: then}
	s.held[point{op: op, n: n}] = h
	return h
}

func newScript(die ...point) *script {
	s := &script{die: map[point]bool{}, counts: map[string]int{}, ends: map[string]int{}, order: map[point]int{}, held: map[point]*held{}, plot: demoLife, clock: newClock(), settings: timingYAML, timing: timing(), patience: patience}
	for _, p := range die {
		s.die[p] = true
	}
	return s
}

// seen returns how often each operation began.
func (s *script) seen() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// ended returns how often an operation ended, with or without an effect.
func (s *script) ended(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends[op]
}

func (s *script) end(op string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[op]++
}

// reached returns the failpoints that were triggered, in order.
func (s *script) reached() []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits)
}

// missed returns the failpoints that were not reached.
func (s *script) missed() []point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.die))
}

// lastHit returns the failpoint of the last death.
func (s *script) lastHit() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.hits) == 0 {
		return "none"
	}
	return s.hits[len(s.hits)-1].String()
}

// gate intercepts all external operations of one incarnation of errand.
type gate struct {
	s    *script
	died chan struct{} // closed at death
	once sync.Once
	open atomic.Bool // operations are no longer blocked, because the world is being cleaned up

	working sync.Map // the claims being worked on
}

func newGate(s *script) *gate { return &gate{s: s, died: make(chan struct{})} }

// dead reports whether this incarnation has died.
func (g *gate) dead() bool {
	if g.open.Load() {
		return false
	}
	select {
	case <-g.died:
		return true
	default:
		return false
	}
}

func (g *gate) kill() { g.once.Do(func() { close(g.died) }) }

// enter counts an operation and returns the moment at which it fails, if any.
func (g *gate) enter(op string) (when moment, alive bool) {
	g.s.mu.Lock()
	defer g.s.mu.Unlock()
	if g.dead() {
		return "", false
	}
	g.s.counts[op]++
	p := point{op: op, n: g.s.counts[op]}
	if h := g.s.held[p]; h != nil {
		g.s.mu.Unlock()
		close(h.reached)
		select {
		case <-h.release:
		case <-g.died:
		}
		g.s.mu.Lock()
		return h.then, !g.dead()
	}
	g.s.order[p] = len(g.s.order)
	if !g.s.due(&p) {
		return "", true
	}
	g.s.hits = append(g.s.hits, p)
	if p.when == before {
		g.kill()
	}
	return p.when, true
}

// due reports whether p is a failpoint, and sets its moment.
func (s *script) due(p *point) bool {
	for _, p.when = range moments(p.op) {
		if s.die[*p] {
			delete(s.die, *p)
			return true
		}
	}
	if len(s.drawn) == 0 || len(s.order) < s.drawn[0].from || !slices.Contains(moments(p.op), s.drawn[0].when) {
		return false
	}
	p.when, s.drawn = s.drawn[0].when, s.drawn[1:]
	return true
}

// draw selects the first failpoint of its moment after a number of operations.
type draw struct {
	from int
	when moment
}

// do runs one effect, unless errand is dead or dies before it. An effect during which errand dies still happens, but
// its result is lost.
func (g *gate) do(ctx context.Context, op string, effect func(context.Context) error) error {
	if g.open.Load() {
		return effect(ctx)
	}
	when, alive := g.enter(op)
	defer g.s.end(op)
	switch {
	case !alive || when == before:
		return errDied
	case when == refused:
		return errUnheard
	}
	if when == after { // it continues to its end, unless errand dies elsewhere meanwhile
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		go func() {
			select {
			case <-g.died:
				cancel()
			case <-ctx.Done():
			}
		}()
		defer g.kill()
	}
	err := effect(ctx)
	if when == after {
		g.kill()
	}
	switch {
	case g.dead():
		return errDied
	case when == unheard:
		return errUnheard
	}
	return err
}

// through is do for functions that return a value.
func through[T any](ctx context.Context, g *gate, op string, effect func(context.Context) (T, error)) (T, error) {
	var out T
	err := g.do(ctx, op, func(ctx context.Context) (err error) {
		out, err = effect(ctx)
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}
