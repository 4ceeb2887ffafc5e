package gateway

import (
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// inFlightCalls are the calls of models under way, of all tasks, in the order in which they came: what they use is not
// booked yet. The zero value has none.
type inFlightCalls struct {
	mu        sync.Mutex
	last      uint64
	all       map[*call]struct{}
	change    chan struct{} // closed when one ends; replaced then
	unsettled []*settlement // of calls that have ended, which the store has not taken

	// ledger is held for writing while what a call has used goes from here to the ledger, and for reading while
	// both are added up: nothing counts twice then, or not at all.
	ledger sync.RWMutex
}

// entry is what open knows of a call.
type entry struct {
	key      state.TaskKey
	run      string
	number   uint64            // by which calls came
	counter  *modelapi.Counter // of its answer; nil before
	admitted bool              // it goes on whatever comes
	answered bool              // its answer has begun
	left     state.Left        // what its task may still use, as it came
}

func (o *inFlightCalls) add(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*call]struct{}{}
	}
	o.last++
	c.entry = entry{key: c.task.Key, run: c.task.Run.ID, number: o.last, left: c.task.Money.Left()}
	o.all[c] = struct{}{}
}

// remove may be called again.
func (o *inFlightCalls) remove(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
	o.notify()
}

// answerStarted says that a call's answer has begun, as a turn or not.
func (o *inFlightCalls) answerStarted(c *call, turn bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.entry.answered = true
	if !turn {
		o.notify() // who waits for it may have that turn
	}
}

// admit says that a call goes on, with its output bounded to so many tokens; 0 leaves it as it was asked.
func (o *inFlightCalls) admit(c *call, most int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.entry.admitted = true
	if c.loweredOutput = most; most > 0 {
		c.maxOutput, c.estimate.Output = most, most
		o.notify() // who waits for it may find room now
	}
}

// forwarded says that a call is passed on now.
func (o *inFlightCalls) forwarded(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.forwardedAt = time.Now()
}

func (o *inFlightCalls) setCounter(c *call, by *modelapi.Counter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.entry.counter = by
}

// notify wakes who waits for others. The lock is held.
func (o *inFlightCalls) notify() {
	if o.change != nil {
		close(o.change)
		o.change = nil
	}
}

// changed is closed when something ends that a call may wait for.
func (o *inFlightCalls) changed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.change == nil {
		o.change = make(chan struct{})
	}
	return o.change
}

// totals is what calls use: of everybody, of a task, of one of its runs.
type totals struct{ all, task, run state.Money }

func (s *totals) add(p entry, used state.Money, key state.TaskKey, run string) {
	s.all.Add(used)
	s.addToTask(p, used, key, run)
}

// addUnsettled adds what the store has not taken yet. The lock of open is held.
func (s *totals) addUnsettled(o *inFlightCalls, key state.TaskKey, run string) {
	for _, d := range o.unsettled {
		s.add(d.entry, d.cost, key, run)
	}
}

// addToTask is add, without what everybody uses.
func (s *totals) addToTask(p entry, used state.Money, key state.TaskKey, run string) {
	if p.key != key {
		return
	}
	s.task.Add(used)
	if p.run == run {
		s.run.Add(used)
	}
}

// knownUse adds up what is known that they have used so far.
func (o *inFlightCalls) knownUse(key state.TaskKey, run string) (s totals) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.all {
		if c.entry.counter != nil {
			used, _ := c.g.price(c.up, c.entry.counter.Current())
			s.add(c.entry, used, key, run)
		}
	}
	s.addUnsettled(o, key, run)
	return s
}

// taskShare is what the calls of one task may come to use, and what its own caps leave it.
type taskShare struct {
	used state.Money
	left state.Left
}

// withinCaps is what a task takes of what all of them have: no more than its own caps leave it, whatever its calls say that
// they may use. Else one agent could keep the others from the model with a call that says much and hangs.
func (s *taskShare) withinCaps() state.Money {
	m := s.used
	m.MicroUSD = min(m.MicroUSD, s.left.MicroUSD)
	if m.Tokens() > s.left.Tokens {
		m.InputTokens, m.OutputTokens = s.left.Tokens, 0
	}
	return m
}

// earlierCalls is what stands before a call.
type earlierCalls struct {
	totals           // what calls that came before may come to use
	count, ofRun int // how many there are: of everybody, of the same run
	turnsOfRun   int // of those of the same run, how many may become a turn yet
}

// earlierThan adds up the calls that came before c, or were admitted before it, and go on: each with its estimate until
// more is known of it.
func (o *inFlightCalls) earlierThan(c *call) (b earlierCalls) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.entry.number == 0 {
		return b // it is no call of a model
	}
	b.addUnsettled(o, c.entry.key, c.entry.run)
	tasks := map[state.TaskKey]*taskShare{}
	defer func() {
		for _, s := range tasks {
			b.all.Add(s.withinCaps())
		}
	}()
	for other := range o.all {
		if other == c || other.entry.number > c.entry.number && !other.entry.admitted {
			continue
		}
		b.count++
		reserved := other.reservedCost()
		b.addToTask(other.entry, reserved, c.entry.key, c.entry.run)
		s := tasks[other.entry.key]
		if s == nil {
			s = &taskShare{}
			tasks[other.entry.key] = s
		}
		s.left = other.entry.left
		s.used.Add(reserved)
		if other.entry.run != c.entry.run {
			continue
		}
		b.ofRun++
		if !other.entry.answered && other.billable {
			b.turnsOfRun++
		}
	}
	return b
}

// reservedCost is what a call may come to cost: its estimate, or what its answer has used where that is more already.
func (c *call) reservedCost() state.Money {
	m, _ := c.g.price(c.up, c.estimate)
	if c.entry.counter == nil {
		return m
	}
	used, _ := c.g.price(c.up, c.entry.counter.Current())
	m.InputTokens, m.OutputTokens, m.MicroUSD = max(m.InputTokens, used.InputTokens), max(m.OutputTokens, used.OutputTokens), max(m.MicroUSD, used.MicroUSD)
	return m
}
