package simgithub

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
	"github.com/errand-bot/errand/internal/sim/simgithub/record"
)

// Fault makes requests fail. The zero value of each condition matches everything.
type Fault struct {
	Method string `json:"method"`
	Path   string `json:"path"`  // regular expression on the path below /api/v3, "/graphql FIELD" (the first one), or a git path
	Actor  string `json:"actor"` // "app" (JWT or installation token), "user" or empty
	Nth    int    `json:"nth"`   // start with the n-th match, counted from 1
	Count  int    `json:"count"` // number of matches to fail; 0: all from then on

	Status     int               `json:"status"` // status code of the answer; 0 with Cut or Hang
	Body       string            `json:"body"`   // default: a message in GitHub's format
	Header     map[string]string `json:"header"`
	RetryAfter int               `json:"retry_after"` // seconds; 0: no such header
	After      bool              `json:"after"`       // the request takes effect; only its answer is lost or replaced
	Cut        bool              `json:"cut"`         // close the connection instead of answering
	Hang       bool              `json:"hang"`        // do not answer until the client gives up or the Sim is closed
	Primary    bool              `json:"primary"`     // answer as if the hourly limit was reached
	Reset      int               `json:"reset"`       // seconds until the hourly limit ends; default 60
	Secondary  bool              `json:"secondary"`   // answer as if the secondary limit was reached

	path *regexp.Regexp
	seen int
}

// faultBook is the list of faults. The first that matches applies.
type faultBook struct {
	mu   sync.Mutex
	list []*Fault
}

func newFaultBook() *faultBook { return &faultBook{} }

// Fault adds a fault. It returns an error if its path is not a regular expression.
func (s *Sim) Fault(f Fault) error {
	re, err := regexp.Compile(f.Path)
	if err != nil {
		return fmt.Errorf("compile path of fault: %w", err)
	}
	f.path = re
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, &f)
	return nil
}

// ClearFaults removes all faults of requests and deliveries. Held deliveries stay held.
func (s *Sim) ClearFaults() {
	s.faults.mu.Lock()
	s.faults.list = nil
	s.faults.mu.Unlock()
	s.hooks.ClearFaults()
	s.SetListLag(0)
}

func (b *faultBook) find(method, path, actor string) *Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.list {
		if cmp.Or(f.Method, method) != method || cmp.Or(f.Actor, actor) != actor || !f.path.MatchString(path) {
			continue
		}
		f.seen++
		first := max(f.Nth, 1)
		if f.seen >= first && (f.Count == 0 || f.seen < first+f.Count) {
			return f
		}
	}
	return nil
}

// admit counts a request and returns the fault that applies to it, if any.
func (s *Sim) admit(r *http.Request, name, path string) *verdict {
	actor := "user"
	if cred, ok := credential(r); ok && !strings.HasPrefix(cred, "ghp_") {
		actor = "app"
	}
	s.counts.add(name)
	call := Call{Route: name, Path: path, App: actor == "app"}
	if path == "/graphql" {
		path += " " + firstField(r)
	}
	return &verdict{s: s, f: s.faults.find(r.Method, path, actor), call: call}
}

// graphqlField matches a GraphQL request up to its first field.
var graphqlField = regexp.MustCompile(`^[^{]*\{\s*(\w+)`)

// firstField returns the first field of a GraphQL request, such as updateRefs, and leaves the request's body in place.
func firstField(r *http.Request) string {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	var q query
	if err != nil || json.Unmarshal(body, &q) != nil {
		return ""
	}
	if m := graphqlField.FindStringSubmatch(q.Query); m != nil {
		return m[1]
	}
	return ""
}

// verdict is the fault that applies to a request; its f may be nil.
type verdict struct {
	s    *Sim
	f    *Fault
	call Call
}

// before applies a fault before the request takes effect. It returns true if the request has been answered.
func (v *verdict) before(w http.ResponseWriter, r *http.Request) bool {
	v.s.counts.tell(v.call)
	if v.f == nil || v.f.After {
		return false
	}
	v.strike(w, r)
	return true
}

// after applies a fault after the request has taken effect. It returns true if the request has been answered.
func (v *verdict) after(w http.ResponseWriter, r *http.Request) bool {
	v.call.After = true
	v.s.counts.tell(v.call)
	if v.f == nil || !v.f.After {
		return false
	}
	v.strike(w, r)
	return true
}

func (v *verdict) strike(w http.ResponseWriter, r *http.Request) {
	f := v.f
	if f.Hang {
		select {
		case <-r.Context().Done():
		case <-v.s.ctx.Done():
		}
		panic(http.ErrAbortHandler)
	}
	if f.Cut {
		panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
	}
	h := w.Header()
	identify(h)
	h.Set("Content-Type", "application/json; charset=utf-8")
	for k, val := range f.Header {
		h.Set(k, val)
	}
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	status, body := v.text(w)
	if f.Primary {
		h.Set("X-RateLimit-Limit", strconv.Itoa(v.s.cfg.RateLimit))
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset", strconv.FormatInt(v.s.cfg.AuthNow().Add(time.Duration(cmp.Or(f.Reset, 60))*time.Second).Unix(), 10))
		h.Set("X-RateLimit-Resource", map[bool]string{true: "graphql", false: "core"}[v.call.Path == "/graphql"])
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client has disconnected
}

// text returns the status and the body of a fault's answer.
func (v *verdict) text(w http.ResponseWriter) (int, []byte) {
	f := v.f
	status := f.Status
	e := &Error{Status: status, Message: http.StatusText(status)}
	switch {
	case f.Primary && v.call.Path == "/graphql": // GraphQL reports it in an answer with status 200
		return cmp.Or(status, http.StatusOK), []byte(`{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for installation."}]}`)
	case f.Primary:
		status = cmp.Or(status, http.StatusForbidden)
		e = &Error{Status: status, Message: "API rate limit exceeded for installation.",
			DocURL: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}
	case f.Secondary && v.call.Path == "/graphql" && status == http.StatusOK: // sometimes reported in the same way
		return status, []byte(`{"errors":[{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}]}`)
	case f.Secondary:
		status = cmp.Or(status, http.StatusForbidden)
		e = &Error{Status: status, Message: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
			DocURL: "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}
	case status == 0:
		status = http.StatusInternalServerError
		e = &Error{Status: status, Message: "Server Error"}
	}
	if f.Body != "" {
		record.Discard(w)
		return status, []byte(f.Body)
	}
	return status, e.json()
}

// serveFaults adds a fault (POST) or removes all (DELETE), for other processes.
func (s *Sim) serveFaults(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		s.ClearFaults()
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var in struct {
		Fault
		Hook *delivery.Fault `json:"hook"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if in.Hook != nil {
		s.FaultHooks(*in.Hook)
	} else if err := s.Fault(in.Fault); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
