package simhetzner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// Fault makes requests, or the actions they start, fail. Empty conditions match everything; effects may be combined if
// that makes sense (After with Cut: the response is lost after the effect).
type Fault struct {
	Method string `json:"method"`
	Path   string `json:"path"`  // regular expression for the path below /v1, such as ^/servers$
	Query  string `json:"query"` // regular expression for the raw query, such as \bpage=2\b
	Nth    int    `json:"nth"`   // first match to affect, counted from 1
	Count  int    `json:"count"` // number of matches; 0: all from then on
	// For ends the fault this long after the first affected request. 0: never.
	For time.Duration `json:"for"`

	Code   string `json:"code"`   // respond with this API error, such as locked or rate_limit_exceeded
	Status int    `json:"status"` // HTTP status; default that of Code. Without Code: a bare response, not JSON
	After  bool   `json:"after"`  // the request takes effect, only its response is replaced or lost
	Cut    bool   `json:"cut"`    // close the connection instead of responding
	Hang   bool   `json:"hang"`   // send no response until the client gives up or the Sim is closed
	// Late delays the request's effect by this time, while the fault's response is sent immediately; with none of Code,
	// Status, Cut and Hang the connection is closed.
	Late time.Duration `json:"late"`

	// The following fields do not affect the request, but the action that it starts.

	ActionCode string        `json:"action_code"` // the action fails with this code
	Slow       time.Duration `json:"slow"`        // the action takes this long
	Deaf       bool          `json:"deaf"`        // the server ignores a shutdown
	Unreadable bool          `json:"unreadable"`  // the image becomes unavailable

	// The following fields do not affect the request, but falsify its response.

	Hide  string `json:"hide"`  // lists omit entries with a matching "ID NAME", and do not count them
	Claim string `json:"claim"` // status of every server, image or action in the response, such as off or unavailable

	path, query *regexp.Regexp
	hide        *regexp.Regexp // nil: nothing
	seen        int
	first       time.Time
}

// affectsRequest reports whether the request itself is affected.
func (f *Fault) affectsRequest() bool {
	return f != nil && (f.Code != "" || f.Status != 0 || f.Cut || f.Hang || f.Late > 0)
}

type faultBook struct {
	now  func() time.Time
	mu   sync.Mutex
	list []*Fault
}

// Fault adds a fault; the first one that matches a request applies. It returns an error if Path or Query is not a valid
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
			return fmt.Errorf("compile hide of fault: %w", err)
		}
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, &f)
	return nil
}

// ClearFaults removes all faults. Late requests still take effect.
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

// hides reports whether lists omit an object.
func (f *Fault) hides(id int64, name string) bool {
	return f != nil && f.hide != nil && f.hide.MatchString(fmt.Sprintf("%d %s", id, name))
}

// falsify changes the status in a response.
func (f *Fault) falsify(ans answer) answer {
	if f == nil || f.Claim == "" || ans.body == nil {
		return ans
	}
	raw, err := json.Marshal(ans.body)
	if err != nil {
		return ans // encoding the response returns the same error
	}
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		return ans
	}
	for _, key := range []string{"server", "image", "action"} {
		setClaimedStatus(body[key], f.Claim)
		list, _ := body[key+"s"].([]any)
		for _, v := range list {
			setClaimedStatus(v, f.Claim)
		}
	}
	return answer{ans.status, body}
}

func setClaimedStatus(v any, status string) {
	if object, ok := v.(map[string]any); ok {
		object["status"] = status
	}
}

// Twin executes an order a second time, late: it creates another server with the name, labels and all other data of the
// server with this ID, though names should be unique. It returns the new ID, 0 if there is no such server.
func (s *Sim) Twin(id int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	s.events.settle(now)
	sv := s.servers[id]
	if sv == nil {
		return 0
	}
	o := &order{
		typ: sv.typ, location: sv.location, image: sv.image, labels: sv.labels, keys: sv.keys, firewalls: sv.firewalls,
		v4: sv.v4 != nil, v6: sv.v6 != nil, start: true,
	}
	if o.image == nil { // it has been deleted since
		o.image = s.images.find(schema.IDOrName{Name: "ubuntu-24.04"}, sv.typ.Architecture)
	}
	o.Name, o.UserData = sv.name, sv.userData
	second := s.newServer(o, now)
	s.bootServer(&call{now: now}, second, o)
	return second.id
}
