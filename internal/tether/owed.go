package tether

import (
	"sync"

	"github.com/errand-bot/errand/state"
)

// owed is what runs have spent and the store would not take. It holds one sum a run, and few runs: a store
// that does not write stops everything else, too.
type owed struct {
	mu   sync.Mutex
	sums map[string]state.Money
}

// take returns what a run owes, and forgets it.
func (o *owed) take(run string) state.Money {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := o.sums[run]
	delete(o.sums, run)
	return m
}

func (o *owed) put(run string, m state.Money) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sums == nil {
		o.sums = map[string]state.Money{}
	}
	m.Add(o.sums[run])
	o.sums[run] = m
}
