package simhetzner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

// RecordVar is the environment variable with the default of Config.Record.
const RecordVar = "SIMHETZNER_RECORD"

// Recorded is one recorded response, for the likeness test.
type Recorded struct {
	Method  string          `json:"method"`
	Route   string          `json:"route"` // such as /servers/{id}/actions/poweron
	Query   string          `json:"query,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
	Status  int             `json:"status"`
	Body    json.RawMessage `json:"body"`
}

// recorder stores one response of each shape. A nil recorder stores nothing. Several processes may share a folder.
type recorder struct {
	dir  string
	mu   sync.Mutex
	seen map[string]bool
}

func newRecorder(dir string) *recorder {
	if dir == "" || os.MkdirAll(dir, 0o755) != nil {
		return nil
	}
	return &recorder{dir: dir, seen: map[string]bool{}}
}

// keep stores a response. It is best effort: the test that reads the folder fails if it is empty.
func (r *recorder) keep(method, route string, c *call, status int, raw []byte) {
	if r == nil || raw == nil {
		return
	}
	_, path, _ := strings.Cut(route, " ")
	path = strings.ReplaceAll(path, "{act}", c.act)
	shape := strings.Join([]string{method, path, fmt.Sprint(status), shapeOf(raw), fmt.Sprint(slices.Sorted(maps.Keys(c.query)))}, "\x00")
	sum := sha256.Sum256([]byte(shape))
	name := filepath.Join(r.dir, "hetzner-"+hex.EncodeToString(sum[:12])+".json")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[name] {
		return
	}
	r.seen[name] = true
	if _, err := os.Stat(name); err == nil {
		return
	}
	rec := Recorded{Method: method, Route: path, Query: c.query.Encode(), Status: status, Body: raw}
	if json.Valid(c.body) {
		rec.Request = c.body
	}
	text, err := json.Marshal(rec)
	if err != nil {
		return
	}
	f, err := os.CreateTemp(r.dir, ".new-*")
	if err != nil {
		return
	}
	_, err = f.Write(text)
	if f.Close() != nil || err != nil || os.Rename(f.Name(), name) != nil {
		_ = os.Remove(f.Name())
	}
}

// shapeOf returns the structure of a JSON value: its keys and the kinds of their values.
func shapeOf(raw []byte) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return "text"
	}
	return shapeOfValue(v)
}

func shapeOfValue(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(v)) {
			b.WriteString(k + ":" + shapeOfValue(v[k]) + ";")
		}
		return "{" + b.String() + "}"
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, shapeOfValue(e))
		}
		slices.Sort(all)
		return "[" + strings.Join(slices.Compact(all), "|") + "]"
	case nil:
		return "null"
	default:
		return fmt.Sprintf("%T", v)
	}
}
