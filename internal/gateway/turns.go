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

// change replaces what is remembered of a run, the zero value at first, and returns what it is now.
func (p *perRun[V]) change(run string, to func(V) V) V {
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

// of returns what is remembered of a run, the zero value for nothing.
func (p *perRun[V]) of(run string) (v V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs != nil {
		v, _ = p.runs.Get(run)
	}
	return v
}

// turnCount counts the answers that runs got of the model, for those whose agent cannot be held to a number of
// turns by itself. Answers under way are known here alone; those that were booked are in the store, too, so that
// a run does not get its turns anew after a restart.
type turnCount struct{ perRun[int] }

// add counts an answer that begins. Booked is how many of the run's answers the store knew when it was asked for.
func (c *turnCount) add(run string, booked int) {
	c.change(run, func(n int) int { return max(n, booked) + 1 })
}

// usedUp reports whether a run had all of its turns; 0 is no bound.
func (c *turnCount) usedUp(run string, booked, most int) bool {
	return c.usedUpWith(run, booked, 0, most)
}

// usedUpWith is usedUp if so many calls under way become turns, too.
func (c *turnCount) usedUpWith(run string, booked, under, most int) bool {
	return most > 0 && max(c.of(run), booked)+under >= most
}

// How often one run's refusals by the gateway are logged.
const refusalEvery = time.Minute

// refusals bounds how often it is logged that a run is refused the model: an agent may ask again and again.
type refusals struct{ perRun[refusal] }

type refusal struct {
	told   time.Time
	untold int
}

// tell reports whether a refusal is to be logged, and how many were not since the last one.
func (r *refusals) tell(run string, now time.Time) (untold int, tell bool) {
	r.change(run, func(f refusal) refusal {
		if !f.told.IsZero() && now.Sub(f.told) < refusalEvery {
			f.untold++
			return f
		}
		untold, tell = f.untold, true
		return refusal{told: now}
	})
	return untold, tell
}
