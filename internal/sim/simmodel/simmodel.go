// Package simmodel simulates the API of a language model: an HTTP server that supports Anthropic's Messages API,
// OpenAI's Responses API and Google's generateContent API, streamed and unstreamed, and responds from a single script.
//
// A Script is a list of rules. The server reads the conversation in each request, selects the first rule that matches
// its step and prompt, and plays the rule's turn for the number of responses since the last prompt. The server stores
// no conversation: like the real API it only uses the request, so an agent may be killed, resumed or retried at any
// point.
//
// It can wait at named gates, fail with any status, cut a stream, and record requests. It does not validate requests
// beyond their form, because real clients send many undocumented fields. Each API is a dialect.
//
// Start here: [Server.ServeHTTP]; [Script] and [Turn] describe the script.
package simmodel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBody limits one request. The real API refuses more than 32 MB.
const maxBody = 32 << 20

// Config configures a [Server]. The zero value responds to every request with "no rule".
type Config struct {
	Script Script
	// Key must be sent by clients, as X-Api-Key, X-Goog-Api-Key or a bearer token. Empty accepts any key.
	Key string
	// Pace is the number of words per second of a stream; 0 means no pause.
	Pace float64
	// MaxHold limits how long a request waits at a gate; default 10 minutes.
	MaxHold time.Duration
	// MaxRecords and MaxRecordBytes limit the stored requests; the oldest are dropped first. Defaults: 1000 requests
	// and 64 MiB of bodies.
	MaxRecords     int
	MaxRecordBytes int
	// Now is the clock of the records; default time.Now.
	Now func() time.Time
}

// Server is the model. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg   Config
	gates *gates
	log   *recorder

	mu     sync.Mutex
	rules  []rule
	seq    int
	faults map[string]int
	total  Totals

	account *account // nil unless there is a subscription
}

var _ http.Handler = (*Server)(nil)

// Totals are the counts of all responses; failed requests only count in Requests.
type Totals struct {
	Requests int
	Answers  int
	Usage    Usage
}

// New checks the script and returns a server for it. The error names the invalid rule.
func New(cfg Config) (*Server, error) {
	if cfg.MaxHold <= 0 {
		cfg.MaxHold = 10 * time.Minute
	}
	if cfg.MaxRecords <= 0 {
		cfg.MaxRecords = 1000
	}
	if cfg.MaxRecordBytes <= 0 {
		cfg.MaxRecordBytes = 64 << 20
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	rules, err := compile(cfg.Script)
	if err != nil {
		return nil, err
	}
	return &Server{
		cfg:    cfg,
		rules:  rules,
		gates:  newGates(),
		log:    &recorder{maxCount: cfg.MaxRecords, maxBytes: cfg.MaxRecordBytes},
		faults: map[string]int{},
	}, nil
}

// SetScript replaces the script for later requests. On an error the old one is kept.
func (s *Server) SetScript(script Script) error {
	rules, err := compile(script)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules = rules
	return nil
}

// script returns the current rules, which are immutable.
func (s *Server) script() []rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rules
}

// Release opens the gate permanently. It may be called before any request has arrived, and repeatedly.
func (s *Server) Release(gate string) { s.gates.release(gate) }

// Waiting returns nil as soon as a request waits at the gate, or has passed it, and the context's error if that ends
// first.
func (s *Server) Waiting(ctx context.Context, gate string) error { return s.gates.waiting(ctx, gate) }

// Requests returns the stored requests, oldest first.
func (s *Server) Requests() []Record { return s.log.all() }

// Totals returns the counts since the start.
func (s *Server) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// dialect is one API: it parses requests, and encodes responses and errors.
type dialect interface {
	// read converts a request to the Messages API's format, in which conversations are processed.
	read(r *http.Request, body []byte) (request, error)
	whole(ctx context.Context, s *Server, w http.ResponseWriter, p play)
	stream(ctx context.Context, s *Server, w http.ResponseWriter, p play)
	fail(w http.ResponseWriter, e apiError, id string)
}

// dialectOf returns the API of a path; unknown paths are refused in the first one's format.
func dialectOf(path string) (d dialect, known bool) {
	switch path {
	case "/v1/messages":
		return messagesAPI{}, true
	case "/v1/responses":
		return responsesAPI{}, true
	}
	if geminiPath.MatchString(path) {
		return geminiAPI{}, true
	}
	return messagesAPI{}, false
}

// ServeHTTP serves the Messages API at /v1/messages, the Responses API at /v1/responses, Google's at
// /v1beta/models/MODEL:streamGenerateContent, a warm-up at /, and the controls under /_sim/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, known := dialectOf(r.URL.Path)
	switch {
	case strings.HasPrefix(r.URL.Path, "/_sim/"):
		s.serveControl(w, r)
	case r.URL.Path == "/" && (r.Method == http.MethodHead || r.Method == http.MethodGet):
		w.WriteHeader(http.StatusOK)
	case r.URL.Path == renewPath && r.Method == http.MethodPost:
		s.serveRenewal(w, r)
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet, r.URL.Path == "/v1beta/models" && r.Method == http.MethodGet:
		s.serveModels(w, r)
	case !known:
		d.fail(w, apiError{Status: http.StatusNotFound, Message: "Not found: " + r.URL.Path}, s.nextID("req"))
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		d.fail(w, apiError{Status: http.StatusMethodNotAllowed, Message: "Method not allowed"}, s.nextID("req"))
	default:
		s.serveModel(w, r, d)
	}
}

// serveModel records the request and sends the response.
func (s *Server) serveModel(w http.ResponseWriter, r *http.Request, d dialect) {
	id := s.nextID("req")
	rec := Record{ID: id, Time: s.cfg.Now(), Path: r.URL.RequestURI(), Header: r.Header.Clone()}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	rec.Body = body
	var play play
	if err == nil {
		play, err = s.decide(r, body, d)
	}
	rec.Step, rec.Rule, rec.Turn, rec.Stream = play.conv.Step, play.ruleName, play.conv.Turn, play.stream
	if err == nil {
		err = s.hold(r.Context(), play)
	}
	var failure apiError
	switch {
	case errors.As(err, &failure):
	case err != nil:
		failure = apiError{Status: http.StatusBadRequest, Message: err.Error()}
	default:
		failure = s.fault(play)
	}
	rec.Status = http.StatusOK
	if failure.Status != 0 {
		rec.Status = failure.Status
	} else if !play.cut {
		rec.Usage = play.answer.Usage
	}
	s.log.add(rec)
	s.count(rec)
	if failure.Status != 0 {
		failure.Stream = play.stream
		d.fail(w, failure, id)
		return
	}
	w.Header().Set("Request-Id", id)
	if play.stream {
		d.stream(r.Context(), s, w, play)
		return
	}
	d.whole(r.Context(), s, w, play)
}

// play is a chosen response.
type play struct {
	conv     Conversation
	ruleName string
	turn     Turn
	key      string
	stream   bool
	cut      bool
	answer   answer
	offer    offer
}

// decide authenticates the request and finds its response in the script.
func (s *Server) decide(r *http.Request, body []byte, d dialect) (play, error) {
	if !s.authorized(r) {
		return play{}, apiError{Status: http.StatusUnauthorized, Message: "invalid x-api-key"}
	}
	req, err := d.read(r, body)
	if err != nil {
		return play{}, fmt.Errorf("decode the request body: %w", err)
	}
	conv, err := req.conversation()
	if err != nil {
		return play{}, err
	}
	p := play{conv: conv, stream: req.Stream, offer: req.offer}
	rl, turn, err := choose(s.script(), &p.conv)
	if err != nil {
		return p, err
	}
	p.ruleName = rl.Name
	p.turn, err = rl.render(turn, p.conv)
	if err != nil {
		return p, fmt.Errorf("simmodel: rule %s, turn %d: %w", rl.Name, p.conv.Turn, err)
	}
	p.key = fmt.Sprintf("%s/%d/%s", rl.Name, p.conv.Turn, req.digest())
	p.answer = s.build(p, req)
	p.cut = p.turn.Cut > 0 && s.strike(p, "cut")
	return p, nil
}

// count adds one request to the totals.
func (s *Server) count(rec Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Requests++
	if rec.Usage != (Usage{}) {
		s.total.Answers++
		s.total.Usage = s.total.Usage.add(rec.Usage)
	}
}

// nextID returns a new ID in the API's format, unique within the server.
func (s *Server) nextID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	return fmt.Sprintf("%s_sim%08d", prefix, s.seq)
}
