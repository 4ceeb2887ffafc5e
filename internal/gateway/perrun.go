package gateway

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// maxRuns is the number of runs that perRun keeps. It is far above the number of active runs; the least recently used
// one is dropped first.
const maxRuns = 1000

// perRun keeps a value for each run in memory. The zero value is empty.
type perRun[V any] struct {
	mu   sync.Mutex
	runs *simplelru.LRU[string, V]
}

// update replaces a run's value, at first the zero value, and returns the new one.
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

// get returns a run's value, or the zero value.
func (p *perRun[V]) get(run string) (v V) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs != nil {
		v, _ = p.runs.Get(run)
	}
	return v
}
