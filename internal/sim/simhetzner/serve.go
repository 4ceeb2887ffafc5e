package simhetzner

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

const maxBody = 1 << 20

// call is one request for a handler. s.mu is locked.
type call struct {
	now    time.Time
	path   string
	query  url.Values
	id     int64 // {id} in the path
	act    string
	body   []byte
	fault  *Fault // the fault that applies to the started action, or nil
	method string
}

// answer is a handler's response. A nil body means none.
type answer struct {
	status int
	body   any
}

type handler func(s *Sim, c *call) (answer, error)

// decode decodes the request's body.
func decode[T any](c *call) (T, error) {
	var v T
	if len(bytes.TrimSpace(c.body)) == 0 {
		return v, nil
	}
	if err := json.Unmarshal(c.body, &v); err != nil {
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return v, newFieldError(cmp.Or(typ.Field, "body"), "has to be %s", typ.Type)
		}
		return v, newError("json_error", "invalid JSON: %v", err)
	}
	return v, nil
}

// ServeHTTP serves the API below /v1 and the simulator's control pages below /_sim.
func (s *Sim) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// serve returns the handler of one route. It releases the lock before it writes the response.
func (s *Sim) serve(route string, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			return // the client has disconnected, or the body is too large
		}
		path := strings.TrimPrefix(r.URL.Path, "/v1")
		w.Header().Set("X-Correlation-Id", uuid.NewString())
		f := s.faults.find(r.Method, path, r.URL.RawQuery)
		c := &call{path: path, query: r.URL.Query(), act: r.PathValue("act"), body: body, fault: f, method: r.Method}
		do := h
		if raw := r.PathValue("id"); raw != "" {
			if c.id, err = strconv.ParseInt(raw, 10, 64); err != nil || c.id <= 0 {
				do = func(*Sim, *call) (answer, error) { return answer{}, newFieldError("id", "has to be a number") }
			}
		}
		ans := s.execute(w, r, route, do, c)
		if f.affectsRequest() {
			s.writeFault(w, r, f)
			return
		}
		s.writeAnswer(w, r, route, c, ans)
	}
}

// execute executes a request under the lock.
func (s *Sim) execute(w http.ResponseWriter, r *http.Request, route string, h handler, c *call) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.now = s.cfg.Now()
	s.events.settle(c.now)
	entry := Request{At: c.now, Method: r.Method, Path: c.path, Query: r.URL.RawQuery, Route: route, Fault: c.fault.affectsRequest()}
	var ans answer
	err := s.authorize(w.Header(), r, c)
	if err == nil {
		switch {
		case c.fault == nil || !c.fault.affectsRequest() || c.fault.After:
			ans, err = h(s, c)
		case c.fault.Late > 0:
			s.events.add(c.now.Add(c.fault.Late), nil, func(at time.Time, _ error) {
				c.now, c.fault = at, nil
				_, _ = h(s, c) // the response has already been sent
			})
		}
	}
	if err != nil {
		e := asAPI(err)
		ans = answer{status: e.status, body: e.body()}
		entry.Code = e.code
	} else {
		ans = c.fault.falsify(ans)
	}
	entry.Status = ans.status
	s.log.add(entry)
	s.events.settle(c.now) // actions without duration end before the response is read
	return ans
}

// authorize checks the token and the rate limit.
func (s *Sim) authorize(h http.Header, r *http.Request, c *call) error {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	readOnly := s.cfg.ReadOnlyToken != "" && token == s.cfg.ReadOnlyToken
	switch {
	case !ok || token == "":
		return newError(codeUnauthorized, "token is required")
	case s.cfg.Token != "" && token != s.cfg.Token && !readOnly:
		return newError(codeUnauthorized, "unable to authenticate")
	case s.cfg.RateLimit > 0 && !s.bucket.takeRequest(c.now, h):
		return newError(codeLimited, "limit of %d requests per hour reached", s.cfg.RateLimit)
	case readOnly && r.Method != http.MethodGet:
		return newError("token_readonly", "the token is only allowed to perform GET requests")
	}
	return nil
}

// writeFault sends a fault's response.
func (s *Sim) writeFault(w http.ResponseWriter, r *http.Request, f *Fault) {
	switch {
	case f.Hang:
		select {
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
		panic(http.ErrAbortHandler)
	case f.Cut || (f.Code == "" && f.Status == 0):
		panic(http.ErrAbortHandler) // net/http closes the connection and logs nothing
	case f.Code != "":
		e := newError(f.Code, "ordered by a fault")
		e.status = cmp.Or(f.Status, e.status)
		writeJSON(w, e.status, e.body())
	default:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, "<html><body>"+http.StatusText(f.Status)+"</body></html>")
	}
}

func (s *Sim) writeAnswer(w http.ResponseWriter, r *http.Request, route string, c *call, ans answer) {
	if ans.body == nil {
		w.WriteHeader(ans.status)
		return
	}
	raw := writeJSON(w, ans.status, ans.body)
	s.records.keep(r.Method, route, c, ans.status, raw)
}

func writeJSON(w http.ResponseWriter, status int, body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return nil
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the client may have disconnected
	return raw
}

// bucket is the project's rate limit: it holds the requests of an hour and refills evenly.
type bucket struct {
	size  int
	left  float64
	asked time.Time
}

func (b *bucket) refill(now time.Time) {
	if b.asked.IsZero() {
		b.left = float64(b.size)
	} else if d := now.Sub(b.asked); d > 0 {
		b.left = min(float64(b.size), b.left+d.Hours()*float64(b.size))
	}
	b.asked = now
}

// takeRequest takes one request and returns false if there is none left. It sets the headers in both cases.
func (b *bucket) takeRequest(now time.Time, h http.Header) bool {
	b.refill(now)
	ok := b.left >= 1
	if ok {
		b.left--
	}
	full := time.Duration((float64(b.size) - b.left) / float64(b.size) * float64(time.Hour))
	h.Set("RateLimit-Limit", strconv.Itoa(b.size))
	h.Set("RateLimit-Remaining", strconv.Itoa(int(math.Floor(b.left))))
	h.Set("RateLimit-Reset", strconv.FormatInt(now.Add(full).Unix(), 10))
	return ok
}

// Drain leaves the project with left requests until the bucket refills.
func (s *Sim) Drain(left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bucket.refill(s.cfg.Now())
	s.bucket.left = float64(left)
}
