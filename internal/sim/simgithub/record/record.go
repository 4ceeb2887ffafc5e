package record

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

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
	"github.com/rs/zerolog"
)

// Var is the environment variable with the default folder of records.
const Var = "SIMGITHUB_RECORD"

// A Record is an answer to a request, or a webhook.
type Record struct {
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

// Recorder writes a file for each answer and each webhook, unless there is already one of the same shape:
// same route, status, keys and kinds of values. Several processes may write into one folder at once.
// A nil Recorder records nothing.
type Recorder struct {
	dir    string
	log    zerolog.Logger
	caller func(*http.Request) string
	mu     sync.Mutex
	seen   map[string]bool
}

// New creates the folder, or returns nil without one. Caller returns the kind of the sender of a request, for
// Record.By.
func New(dir string, log zerolog.Logger, caller func(*http.Request) string) (*Recorder, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create folder of records: %w", err)
	}
	return &Recorder{dir: dir, log: log, caller: caller, seen: map[string]bool{}}, nil
}

// keep writes a record. Route is the pattern of its path.
func (b *Recorder) keep(route string, r Record) error {
	key := strings.Join([]string{
		r.Kind, r.Method, route, r.Event, r.By, fmt.Sprint(r.Status), queryKeys(r.Query), headerKeys(r.Header),
		shapeOf(r.Request), shapeOf(r.Body), r.Text,
	}, "\x00")
	if r.Kind == "graphql" {
		var q struct{ Query string }
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

// maxRequest is the maximum length of the body of a request to be recorded.
const maxRequest = 64 << 20

// Handler returns a handler that records the requests of another one and its answers. Route returns the pattern of a
// request's path.
func (b *Recorder) Handler(next http.HandlerFunc, route func(*http.Request) string) http.HandlerFunc {
	if b == nil {
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
		rec := Record{
			Kind: "rest", Method: r.Method, Path: strings.TrimPrefix(r.URL.EscapedPath(), "/api/v3"), Query: r.URL.RawQuery,
			By: b.caller(r), Request: jsonOrNil(body), Status: t.status, Header: w.Header().Clone(), Body: jsonOrNil(t.body.Bytes()),
		}
		if rec.Body == nil {
			rec.Text = t.body.String()
		}
		if r.URL.Path == "/api/graphql" {
			rec.Kind, rec.Path = "graphql", "/graphql"
		}
		if err := b.keep(route(r), rec); err != nil {
			b.log.Error().Err(err).Msg("failed to record an answer")
		}
	}
}

// Webhook records a webhook.
func (b *Recorder) Webhook(event string, header http.Header, payload []byte) {
	if b == nil {
		return
	}
	if err := b.keep(event, Record{Kind: "webhook", Event: event, Header: header, Body: jsonOrNil(payload)}); err != nil {
		b.log.Error().Err(err).Msg("failed to record a webhook")
	}
}

// tee keeps a copy of an answer.
type tee struct {
	http.ResponseWriter
	status  int
	body    bytes.Buffer
	foreign bool // the content comes from a test
}

// Discard excludes an answer from the records because its content comes from a test.
func Discard(w http.ResponseWriter) {
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
