package gateway

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxRuns bounds how many runs something is remembered of in memory. The one that was not heard of for the longest
// time is forgotten first: of those that go on there are far fewer.
const maxRuns = 1000

// perRun remembers something of each run. The zero value is empty.
type perRun[V any] struct {
	mu   sync.Mutex
	runs *simplelru.LRU[string, V]
}

// update replaces what is remembered of a run, the zero value at first, and returns what it is now.
func (p *perRun[V]) update(run string, to func(V) V) V {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs, _ = simplelru.NewLRU[string, V](maxRuns, nil) // fails for sizes below one only
	}
	before, _ := p.runs.Get(run)
	after := to(before)
	p.runs.Add(run, after)
	return after
}

// get returns what is remembered of a run, the zero value for nothing.
func (p *perRun[V]) get(run string) (v V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs != nil {
		v, _ = p.runs.Get(run)
	}
	return v
}

// turnCounter counts the answers that runs got of the model, for those whose agent cannot be held to a number of
// turns by itself. Answers under way are known here alone; those that were booked are in the store, too, so that
// a run does not get its turns anew after a restart.
type turnCounter struct{ perRun[int] }

// add counts an answer that begins. Booked is how many of the run's answers the store knew when it was asked for.
func (c *turnCounter) add(run string, booked int) {
	c.update(run, func(n int) int { return max(n, booked) + 1 })
}

// usedUp reports whether a run had all of its turns; 0 is no bound.
func (c *turnCounter) usedUp(run string, booked, most int) bool {
	return c.usedUpByCalls(run, booked, 0, most)
}

// usedUpByCalls is usedUp if so many calls under way become turns, too.
func (c *turnCounter) usedUpByCalls(run string, booked, under, most int) bool {
	return most > 0 && max(c.get(run), booked)+under >= most
}

// How often one run's refusals by the gateway are logged.
const denialLogInterval = time.Minute

// denialLog bounds how often it is logged that a run is refused the model: an agent may ask again and again.
type denialLog struct{ perRun[loggedDenial] }

type loggedDenial struct {
	at         time.Time
	suppressed int
}

// allow reports whether a refusal is to be logged, and how many were not since the last one.
func (r *denialLog) allow(run string, now time.Time) (untold int, tell bool) {
	r.update(run, func(f loggedDenial) loggedDenial {
		if !f.at.IsZero() && now.Sub(f.at) < denialLogInterval {
			f.suppressed++
			return f
		}
		untold, tell = f.suppressed, true
		return loggedDenial{at: now}
	})
	return untold, tell
}
