package gateway

import (
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// open are the calls of models under way, of all tasks, in the order in which they came: what they use is not
// booked yet. The zero value has none.
type open struct {
	mu   sync.Mutex
	last uint64
	all  map[*call]struct{}
	left chan struct{} // closed when one ends; replaced then
	owed []*settlement // of calls that have ended, which the store has not taken

	// books is held for writing while what a call has used goes from here to the ledger, and for reading while
	// both are added up: nothing counts twice then, or not at all.
	books sync.RWMutex
}

// place is what open knows of a call.
type place struct {
	key      state.TaskKey
	run      string
	number   uint64            // by which calls came
	counter  *modelapi.Counter // of its answer; nil before
	admitted bool              // it goes on whatever comes
	answered bool              // its answer has begun
	left     state.Left        // what its task may still use, as it came
}

func (o *open) put(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*call]struct{}{}
	}
	o.last++
	c.place = place{key: c.task.Key, run: c.task.Run.ID, number: o.last, left: c.task.Money.Left()}
	o.all[c] = struct{}{}
}

// drop may be called again.
func (o *open) drop(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
	o.tell()
}

// begun says that a call's answer has begun, as a turn or not.
func (o *open) begun(c *call, turn bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.place.answered = true
	if !turn {
		o.tell() // who waits for it may have that turn
	}
}

// admitted says that a call goes on, with its output bounded to so many tokens; 0 leaves it as it was asked.
func (o *open) admitted(c *call, most int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.place.admitted = true
	if c.lowered = most; most > 0 {
		c.most, c.guess.Output = most, most
		o.tell() // who waits for it may find room now
	}
}

// passed says that a call is passed on now.
func (o *open) passed(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.asks = time.Now()
}

func (o *open) metered(c *call, by *modelapi.Counter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.place.counter = by
}

// tell wakes who waits for others. The lock is held.
func (o *open) tell() {
	if o.left != nil {
		close(o.left)
		o.left = nil
	}
}

// change is closed when something ends that a call may wait for.
func (o *open) change() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.left == nil {
		o.left = make(chan struct{})
	}
	return o.left
}

// sums is what calls use: of everybody, of a task, of one of its runs.
type sums struct{ all, task, run state.Money }

func (s *sums) add(p place, used state.Money, key state.TaskKey, run string) {
	s.all.Add(used)
	s.ofTask(p, used, key, run)
}

// addOwed adds what the store has not taken yet. The lock of open is held.
func (s *sums) addOwed(o *open, key state.TaskKey, run string) {
	for _, d := range o.owed {
		s.add(d.place, d.cost, key, run)
	}
}

// ofTask is add, without what everybody uses.
func (s *sums) ofTask(p place, used state.Money, key state.TaskKey, run string) {
	if p.key != key {
		return
	}
	s.task.Add(used)
	if p.run == run {
		s.run.Add(used)
	}
}

// used adds up what is known that they have used so far.
func (o *open) used(key state.TaskKey, run string) (s sums) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		if c.place.counter != nil {
			used, _ := c.g.price(c.up, c.place.counter.Running())
			s.add(c.place, used, key, run)
		}
	}
	s.addOwed(o, key, run)
	return s
}

// share is what the calls of one task may come to use, and what its own caps leave it.
type share struct {
	used state.Money
	left state.Left
}

// within is what a task takes of what all of them have: no more than its own caps leave it, whatever its calls say that
// they may use. Else one agent could keep the others from the model with a call that says much and hangs.
func (s *share) within() state.Money {
	m := s.used
	m.MicroUSD = min(m.MicroUSD, s.left.MicroUSD)
	if m.Tokens() > s.left.Tokens {
		m.InputTokens, m.OutputTokens = s.left.Tokens, 0
	}
	return m
}

// before is what stands before a call.
type before struct {
	sums           // what calls that came before may come to use
	any, calls int // how many there are: of everybody, of the same run
	turns      int // of those of the same run, how many may become a turn yet
}

// before adds up the calls that came before c, or were admitted before it, and go on: each with its estimate until
// more is known of it.
func (o *open) before(c *call) (b before) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.place.number == 0 {
		return b // it is no call of a model
	}
	b.addOwed(o, c.place.key, c.place.run)
	tasks := map[state.TaskKey]*share{}
	defer func() {
		for _, s := range tasks {
			b.all.Add(s.within())
		}
	}()
	for other := range o.all {
		if other == c || other.place.number > c.place.number && !other.place.admitted {
			continue
		}
		b.any++
		reserved := other.reserved()
		b.ofTask(other.place, reserved, c.place.key, c.place.run)
		s := tasks[other.place.key]
		if s == nil {
			s = &share{}
			tasks[other.place.key] = s
		}
		s.left = other.place.left
		s.used.Add(reserved)
		if other.place.run != c.place.run {
			continue
		}
		b.calls++
		if !other.place.answered && other.bills {
			b.turns++
		}
	}
	return b
}

// reserved is what a call may come to cost: its estimate, or what its answer has used where that is more already.
func (c *call) reserved() state.Money {
	m, _ := c.g.price(c.up, c.guess)
	if c.place.counter == nil {
		return m
	}
	used, _ := c.g.price(c.up, c.place.counter.Running())
	m.InputTokens, m.OutputTokens, m.MicroUSD = max(m.InputTokens, used.InputTokens), max(m.OutputTokens, used.OutputTokens), max(m.MicroUSD, used.MicroUSD)
	return m
}
