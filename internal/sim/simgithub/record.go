package simgithub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
	"github.com/errand-bot/errand/internal/sim/simgithub/git"
	"github.com/rs/zerolog"
)

// RecordVar is the environment variable with the default of Config.Record.
const RecordVar = "SIMGITHUB_RECORD"

// Recorded is an answer to a request, or a webhook.
type Recorded struct {
	Kind    string          `json:"kind"`              // rest, graphql or webhook
	Method  string          `json:"method,omitempty"`  // of the request
	Path    string          `json:"path,omitempty"`    // below /api/v3, escaped; of GraphQL: /graphql
	Query   string          `json:"query,omitempty"`   // of the address, as sent
	By      string          `json:"by,omitempty"`      // app (JWT), installation, user or nobody
	Request json.RawMessage `json:"request,omitempty"` // body, if it is JSON
	Event   string          `json:"event,omitempty"`   // of a webhook
	Status  int             `json:"status,omitempty"`  // of the answer
	Header  http.Header     `json:"header"`            // of the answer, or of the webhook
	Body    json.RawMessage `json:"body,omitempty"`    // of the answer or the webhook, if it is JSON
	Text    string          `json:"text,omitempty"`    // the answer's body, if it is not JSON
}

// recorder writes a file for each answer and each webhook, unless there is already one of the same shape:
// same route, status, keys and kinds of values. Several processes may write into one folder at once.
type recorder struct {
	dir  string
	mu   sync.Mutex
	seen map[string]bool
}

// newRecorder creates the folder. Without a folder it returns nil, and a nil recorder records nothing.
func newRecorder(dir string) (*recorder, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder of records: %w", err)
	}
	return &recorder{dir: dir, seen: map[string]bool{}}, nil
}

// keep writes a record. Route is the pattern of its path.
func (b *recorder) keep(route string, r Recorded) error {
	key := strings.Join([]string{
		r.Kind, r.Method, route, r.Event, r.By, fmt.Sprint(r.Status), queryKeys(r.Query), headerKeys(r.Header), shapeOf(r.Request), shapeOf(r.Body), r.Text,
	}, "\x00")
	if r.Kind == "graphql" {
		var q query
		if json.Unmarshal(r.Request, &q) == nil {
			key += "\x00" + q.Query
		}
	}
	sum := sha256.Sum256([]byte(key))
	name := filepath.Join(b.dir, r.Kind+"-"+hex.EncodeToString(sum[:12])+".json")
	b.mu.Lock()
	known := b.seen[name]
	b.seen[name] = true
	b.mu.Unlock()
	if known {
		return nil
	}
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("marshal record: %w", err)
	}
	return git.WriteFile(name, raw)
}

// record returns a handler whose requests and answers are recorded.
func (s *Sim) record(next http.HandlerFunc, route func(*http.Request) string) http.HandlerFunc {
	if s.records == nil {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
		if err != nil {
			next(w, r)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		t := &tee{ResponseWriter: w, status: http.StatusOK}
		next(t, r)
		if t.foreign {
			return
		}
		rec := Recorded{
			Kind: "rest", Method: r.Method, Path: strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3"), Query: r.URL.RawQuery,
			By: callerKind(r), Request: jsonOrNil(body), Status: t.status, Header: w.Header().Clone(), Body: jsonOrNil(t.body.Bytes()),
		}
		if rec.Body == nil {
			rec.Text = t.body.String()
		}
		if r.URL.Path == "/api/graphql" {
			rec.Kind, rec.Path = "graphql", "/graphql"
		}
		if err := s.records.keep(route(r), rec); err != nil {
			s.log.Error().Err(err).Msg("failed to record an answer")
		}
	}
}

// hookRecorder returns a function that records a webhook before it is sent.
func (b *recorder) hookRecorder(log zerolog.Logger) func(*delivery.Delivery) {
	return func(d *delivery.Delivery) {
		if b == nil {
			return
		}
		if err := b.keep(d.Event, Recorded{Kind: "webhook", Event: d.Event, Header: d.ReqHeader, Body: jsonOrNil(d.Payload)}); err != nil {
			log.Error().Err(err).Msg("failed to record a webhook")
		}
	}
}

// tee keeps a copy of an answer.
type tee struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	foreign bool // the content comes from a test
}

// disown excludes an answer from the records because its content comes from a test.
func disown(w http.ResponseWriter) {
	if t, ok := w.(*tee); ok {
		t.foreign = true
	}
}

// WriteHeader keeps the status.
func (t *tee) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

// Write keeps the body.
func (t *tee) Write(p []byte) (int, error) {
	t.body.Write(p)
	return t.ResponseWriter.Write(p)
}

func callerKind(r *http.Request) string {
	cred, ok := credential(r)
	switch {
	case !ok:
		return "nobody"
	case strings.HasPrefix(cred, "ghp_"):
		return "user"
	case !strings.HasPrefix(cred, "gh") && strings.Count(cred, ".") == 2:
		return "app"
	default:
		return "installation"
	}
}

func jsonOrNil(body []byte) json.RawMessage {
	if len(body) == 0 || !json.Valid(body) {
		return nil
	}
	return slices.Clone(body)
}

func queryKeys(query string) string {
	var keys []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return strings.Join(keys, "&")
}

func headerKeys(h http.Header) string {
	var keys []string
	for k := range h {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return strings.Join(keys, " ")
}
