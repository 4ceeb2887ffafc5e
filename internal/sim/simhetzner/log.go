package simhetzner

import (
	"maps"
	"slices"
	"time"
)

// keptRequests limits the log; the counts continue.
const keptRequests = 10_000

// Request is one received request.
type Request struct {
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	Path   string    `json:"path"` // below /v1
	Query  string    `json:"query,omitempty"`
	Route  string    `json:"route"` // such as POST /servers/{id}/actions/{act}
	// Status and Code are the intended response; Fault states that another one was sent. A request that never took
	// effect has status 0.
	Status int    `json:"status"`
	Code   string `json:"code,omitempty"`
	Fault  bool   `json:"fault,omitempty"`
}

type requestLog struct {
	list   []Request
	counts map[string]int
	total  int
}

func (l *requestLog) add(r Request) {
	if len(l.list) == keptRequests {
		l.list = slices.Delete(l.list, 0, keptRequests/2)
	}
	l.list = append(l.list, r)
	l.counts[r.Route]++
	l.total++
}

// Requests returns the last requests, oldest first.
func (s *Sim) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log.list)
}

// Counts returns the number of requests by route and in total.
func (s *Sim) Counts() (byRoute map[string]int, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.log.counts), s.log.total
}
