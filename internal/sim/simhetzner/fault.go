package simhetzner

import (
	"cmp"
	"fmt"
	"regexp"
	"sync"
	"time"
)

// Fault makes requests fail, or what they begin. Conditions that are empty match everything; what is to
// happen may be combined where that makes sense (After with Cut: the answer is lost after the effect).
type Fault struct {
	Method string `json:"method"`
	Path   string `json:"path"`  // regular expression on the path below /v1, such as ^/servers$
	Query  string `json:"query"` // likewise on the raw query, such as \bpage=2\b
	Nth    int    `json:"nth"`   // start with the n-th match, counted from 1
	Count  int    `json:"count"` // how many matches; 0: all from then on
	// For ends the fault this long after the first request that it met. 0: never.
	For time.Duration `json:"for"`

	Code   string `json:"code"`   // answer with this error of the API, such as locked or rate_limit_exceeded
	Status int    `json:"status"` // HTTP status; default that of Code. Without Code: a bare answer, not JSON
	After  bool   `json:"after"`  // the request takes effect, only its answer is replaced or lost
	Cut    bool   `json:"cut"`    // close the connection instead of answering
	Hang   bool   `json:"hang"`   // say nothing until the client gives up or the Sim is closed
	// Late has the request take effect only after this time, while it is answered as the fault says at
	// once; with none of Code, Status, Cut and Hang the connection is closed.
	Late time.Duration `json:"late"`

	// What follows leaves the request alone and is about the action that it begins.

	ActionCode string        `json:"action_code"` // the action fails with this code
	Slow       time.Duration `json:"slow"`        // the action takes this long
	Deaf       bool          `json:"deaf"`        // the server does not obey a shutdown
	Unreadable bool          `json:"unreadable"`  // the image ends as unavailable

	// What follows lets the request do what it does and falsifies its answer.

	Hide  string `json:"hide"`  // lists leave out what has a matching "ID NAME", and count without it
	Claim string `json:"claim"` // the status of every server, image or action in the answer, such as off or unavailable

	path, query *regexp.Regexp
	hide        *regexp.Regexp // nil: nothing
	seen        int
	first       time.Time
}

// strikes says whether the request itself is met.
func (f *Fault) strikes() bool {
	return f != nil && (f.Code != "" || f.Status != 0 || f.Cut || f.Hang || f.Late > 0)
}

type faultBook struct {
	now  func() time.Time
	mu   sync.Mutex
	list []*Fault
}

// Fault adds a fault; the first that matches a request decides. An error means that Path or Query is no
// regular expression.
func (s *Sim) Fault(f Fault) error {
	var err error
	if f.path, err = regexp.Compile(f.Path); err != nil {
		return fmt.Errorf("compile path of fault: %w", err)
	}
	if f.query, err = regexp.Compile(f.Query); err != nil {
		return fmt.Errorf("compile query of fault: %w", err)
	}
	if f.Hide != "" {
		if f.hide, err = regexp.Compile(f.Hide); err != nil {
			return fmt.Errorf("compile what a fault hides: %w", err)
		}
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, &f)
	return nil
}

// ClearFaults takes all faults away. What is on its way late still lands.
func (s *Sim) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
}

func (b *faultBook) find(method, path, query string) *Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for _, f := range b.list {
		if cmp.Or(f.Method, method) != method || !f.path.MatchString(path) || !f.query.MatchString(query) {
			continue
		}
		f.seen++
		start := max(f.Nth, 1)
		if f.seen < start || (f.Count > 0 && f.seen >= start+f.Count) {
			continue
		}
		if f.first.IsZero() {
			f.first = now
		}
		if f.For > 0 && !now.Before(f.first.Add(f.For)) {
			continue
		}
		return f
	}
	return nil
}
