package simmodel

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Record is one received request, with unchanged headers and body.
type Record struct {
	ID     string      `json:"id"`
	Time   time.Time   `json:"time"`
	Path   string      `json:"path"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
	// Step, Rule and Turn identify the chosen response; Rule is empty if none was.
	Step string `json:"step"`
	Rule string `json:"rule"`
	Turn int    `json:"turn"`
	// Status is the response's status. A cut stream counts as 200.
	Status int  `json:"status"`
	Stream bool `json:"stream"`
	// Usage is the response's usage; zero if there was none, or if it was cut.
	Usage Usage `json:"usage"`
}

// recorder keeps the newest records within two limits.
type recorder struct {
	mu       sync.Mutex
	maxCount int
	maxBytes int
	list     []Record
	bytes    int
}

func (r *recorder) add(rec Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, rec)
	r.bytes += len(rec.Body)
	drop := 0
	for len(r.list)-drop > r.maxCount || (r.bytes > r.maxBytes && drop < len(r.list)) {
		r.bytes -= len(r.list[drop].Body)
		drop++
	}
	if drop > 0 {
		r.list = slices.Clone(r.list[drop:])
	}
}

func (r *recorder) all() []Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// serveControl serves the simulator's control requests for tests and the demo:
//
//	POST /_sim/release?gate=NAME   open a gate
//	GET  /_sim/waiting?gate=NAME   respond 200 once a request waits there, 504 after 30 s
//	GET  /_sim/requests            the records
//	PUT  /_sim/script              replace the script by the one in the body, in YAML
func (s *Server) serveControl(w http.ResponseWriter, r *http.Request) {
	gate := r.URL.Query().Get("gate")
	switch r.Method + " " + r.URL.Path {
	case "POST /_sim/release":
		if gate == "" {
			http.Error(w, "name the gate: ?gate=NAME", http.StatusBadRequest)
			return
		}
		s.Release(gate)
		w.WriteHeader(http.StatusNoContent)
	case "GET /_sim/waiting":
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
		defer cancel()
		if s.Waiting(ctx, gate) != nil {
			http.Error(w, "no request waits at "+gate, http.StatusGatewayTimeout)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case "GET /_sim/requests":
		writeJSON(w, http.StatusOK, s.Requests())
	case "PUT /_sim/script":
		s.putScript(w, r)
	default:
		http.NotFound(w, r)
	}
}

// putScript replaces the script, or responds with its errors.
func (s *Server) putScript(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	script, err := ParseScript(data)
	if err == nil {
		err = s.SetScript(script)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
