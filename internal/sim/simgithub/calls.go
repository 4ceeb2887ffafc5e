package simgithub

import (
	"sort"
	"sync"
)

// callBook counts requests by method and route.
type callBook struct {
	mu      sync.Mutex
	counts  map[string]int
	watcher func(Call)
}

func newCallBook() *callBook { return &callBook{counts: map[string]int{}} }

func (b *callBook) add(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[name]++
}

// CallCount is the number of calls of a route.
type CallCount struct {
	Route string // "METHOD pattern", such as "GET /repos/{owner}/{repo}/issues/{number}", or "git upload-pack"
	Count int
}

// Calls returns the number of calls of each route of REST, GraphQL and git, and their sum.
func (s *Sim) Calls() (list []CallCount, total int) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	for name, n := range s.counts.counts {
		list = append(list, CallCount{Route: name, Count: n})
		total += n
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Route < list[j].Route })
	return list, total
}

// Call is a request, for Sim.OnCall.
type Call struct {
	Route string // as in CallCount
	Path  string // below /api/v3, "/graphql", or a git path
	App   bool   // sent with a JWT or an installation token
	After bool   // the request has taken effect and is about to be answered; else it is not processed yet
}

// OnCall makes the simulator call f for each request, before it takes effect and again after, so that a test can act at
// exactly that moment. The request waits for f, which may act on the Sim as any person. A nil f removes the function.
func (s *Sim) OnCall(f func(Call)) {
	s.counts.mu.Lock()
	defer s.counts.mu.Unlock()
	s.counts.watcher = f
}

// tell calls the function of OnCall.
func (b *callBook) tell(c Call) {
	b.mu.Lock()
	f := b.watcher
	b.mu.Unlock()
	if f != nil {
		f(c)
	}
}
