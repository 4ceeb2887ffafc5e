package gateway

import (
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// inFlightCalls are the model calls of all tasks whose cost is not booked yet. The zero value is empty.
type inFlightCalls struct {
	mu        sync.Mutex
	last      uint64 // the number of the newest call
	all       map[*call]struct{}
	change    chan struct{} // closed at the next change; nil if no call waits for one
	unsettled []*settlement // of calls that have ended, and that could not be stored yet

	// ledger is locked for writing while a cost moves from here to the ledger, and for reading while both are added up,
	// so that nothing counts twice or not at all.
	ledger sync.RWMutex
}

// An entry is the state of a call among the calls in flight.
type entry struct {
	key      state.TaskKey
	run      string
	number   uint64            // calls are numbered in the order in which they arrive
	counter  *modelapi.Counter // of its answer; nil before
	admitted bool
	answered bool            // its answer has begun
	left     state.Remaining // the budget that the caps of its task left when it arrived
}

// add adds a call.
func (o *inFlightCalls) add(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*call]struct{}{}
	}
	o.last++
	c.entry = entry{key: c.task.Key, run: c.task.Run.ID, number: o.last, left: c.task.Money.Remaining()}
	o.all[c] = struct{}{}
}

// remove removes a call. It may be called again.
func (o *inFlightCalls) remove(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, c)
	o.notify()
}

// answerStarted records that a call's answer has begun, and whether it counts as a turn.
func (o *inFlightCalls) answerStarted(c *call, turn bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.entry.answered = true
	if !turn {
		o.notify() // another call may have this turn
	}
}

// markAdmitted records that a call is admitted with its output limited to outputLimit tokens, 0 for no limit.
func (o *inFlightCalls) markAdmitted(c *call, outputLimit int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.entry.admitted = true
	if c.loweredOutput = outputLimit; outputLimit > 0 {
		c.maxOutput, c.estimate.Output = outputLimit, outputLimit
		o.notify() // its reservation is smaller now
	}
}

// markForwarded records that a call is forwarded now.
func (o *inFlightCalls) markForwarded(c *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.forwardedAt = time.Now()
}

// setCounter sets the counter of a call's answer.
func (o *inFlightCalls) setCounter(c *call, counter *modelapi.Counter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c.entry.counter = counter
}

// notify wakes those that wait for a change. The caller holds the lock.
func (o *inFlightCalls) notify() {
	if o.change != nil {
		close(o.change)
		o.change = nil
	}
}

// nextChange returns a channel that is closed at the next change that may let a waiting call pass.
func (o *inFlightCalls) nextChange() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.change == nil {
		o.change = make(chan struct{})
	}
	return o.change
}

// totals are sums over calls: of all tasks, of one task, and of one of its runs.
type totals struct{ all, task, run state.Money }

// add adds the cost of a call; the sums are for this task and run.
func (s *totals) add(e entry, used state.Money, key state.TaskKey, run string) {
	s.all.Add(used)
	s.addToTask(e, used, key, run)
}

// addUnsettled adds the settlements that are not stored yet. The caller holds the lock of o.
func (s *totals) addUnsettled(o *inFlightCalls, key state.TaskKey, run string) {
	for _, d := range o.unsettled {
		s.add(d.entry, d.cost, key, run)
	}
}

// addToTask is like add, but leaves the sum of all tasks unchanged.
func (s *totals) addToTask(e entry, used state.Money, key state.TaskKey, run string) {
	if e.key != key {
		return
	}
	s.task.Add(used)
	if e.run == run {
		s.run.Add(used)
	}
}

// knownUse adds up the reported usage of calls in flight.
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

// A taskShare has the reservations of one task's calls in flight, and the budget that its own caps leave.
type taskShare struct {
	reserved state.Money
	left     state.Remaining
}

// withinCaps returns the reservations that count for all tasks: at most the budget that the task's own caps leave.
// Otherwise one agent could block all others with a call that reserves much and hangs.
func (s *taskShare) withinCaps() state.Money {
	m := s.reserved
	m.MicroUSD = min(m.MicroUSD, s.left.MicroUSD)
	if m.Tokens() > s.left.Tokens {
		m.InputTokens, m.OutputTokens = s.left.Tokens, 0
	}
	return m
}

// earlierCalls are the calls in flight that take precedence over a call.
type earlierCalls struct {
	totals           // their reservations
	count, ofRun int // their number: of all tasks, and of the same run
	turnsOfRun   int // the number of those of the same run that may still become a turn
}

// earlierThan adds up the reservations of the calls in flight that arrived before c or were admitted before it.
func (o *inFlightCalls) earlierThan(c *call) (b earlierCalls) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.entry.number == 0 {
		return b // not a call of a model
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
		s.reserved.Add(reserved)
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

// reservedCost returns the call's reservation: its estimated cost, or the cost of its answer so far if that is more.
func (c *call) reservedCost() state.Money {
	m, _ := c.g.price(c.up, c.estimate)
	if c.entry.counter == nil {
		return m
	}
	used, _ := c.g.price(c.up, c.entry.counter.Current())
	m.InputTokens, m.OutputTokens = max(m.InputTokens, used.InputTokens), max(m.OutputTokens, used.OutputTokens)
	m.MicroUSD = max(m.MicroUSD, used.MicroUSD)
	return m
}
