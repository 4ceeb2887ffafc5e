package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"
)

// Keys of log fields.
const (
	logOp           = "op"
	logInstallation = "installation"
	logMethod       = "method"
	logPath         = "path"
	logStatus       = "status"
	logUntil        = "until"
	logDeprecation  = "deprecation"
	logSunset       = "sunset"
)

// VersionHeader is the header in which an Enterprise Server names its version.
const VersionHeader = "X-GitHub-Enterprise-Version"

const (
	maxResponse = 64 << 20 // bytes of one response
)

// transport is below all clients, so it also sees the requests for tokens. It is safe for concurrent use.
type transport struct {
	base    http.RoundTripper
	now     func() time.Time
	timeout time.Duration // of one attempt, including the response's body
	backoff time.Duration // before the first retry
	graphql string        // path of the GraphQL API
	hosts   []string      // to which credentials may be sent
	token   string        // X-GitHub-Stateless-S2S-Token for new tokens, or empty
	redact  func(string) string
	limits  *rateLimits
	log     zerolog.Logger
	metrics func(Request)
	calls   *requestCounter
	version atomic.Pointer[string] // of the Enterprise Server, as in its latest answer; nil for github.com

	write, data RateLimit
	mu          sync.Mutex
	queues      map[queueKey]*writeQueue
	sunset      map[string]bool // operations whose deprecation was logged
}

func newTransport(cfg Config) (*transport, error) {
	v4, err := url.Parse(cfg.V4APIURL)
	if err != nil {
		return nil, fmt.Errorf("parse GraphQL address: %w", err)
	}
	v3, err := url.Parse(cfg.V3APIURL)
	if err != nil {
		return nil, fmt.Errorf("parse REST address: %w", err)
	}
	return &transport{
		base:    cfg.Transport,
		now:     cfg.Now,
		timeout: cfg.Timeout,
		backoff: cfg.Backoff,
		graphql: v4.Path,
		hosts:   []string{v3.Host, v4.Host},
		token:   cfg.StatelessTokens,
		redact:  cfg.Redact,
		limits:  newRateLimits(cfg.Now, cfg.SecondaryWait),
		log:     cfg.Log,
		metrics: cfg.Metrics,
		calls:   newRequestCounter(),
		write:   cfg.Writes,
		data:    cfg.Data,
		queues:  map[queueKey]*writeQueue{},
		sunset:  map[string]bool{},
	}, nil
}

var _ http.RoundTripper = (*transport)(nil)

// RoundTrip checks the rate limits, waits for its turn, sends the request, and retries it if that is safe. The body of
// the response is complete. It returns a *LimitError for a rate limit, and ErrRenamed for a write that was redirected.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	op := operationOf(req, t.now)
	forToken := strings.HasSuffix(req.URL.Path, "/access_tokens")
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	if body, err = t.redactBody(req, op, body); err != nil {
		return nil, err
	}
	if t.token != "" && forToken {
		req = req.Clone(req.Context())
		req.Header.Set("X-GitHub-Stateless-S2S-Token", t.token)
	}
	if l := t.limits.check(op.installation, t.apiOf(req)); l != nil {
		return nil, l
	}
	if !forToken {
		if err := t.waitForTurn(req.Context(), op); err != nil {
			return nil, err
		}
	}
	once := op.kind == kindWrite && !forToken
	try := func() (*http.Response, error) {
		resp, err := t.attempt(req, body, op, forToken)
		return resp, t.classifyForRetry(req.Context(), once, resp, err)
	}
	tries := uint(readTries)
	if once {
		tries = 1
	}
	resp, err := backoff.Retry(req.Context(), try, backoff.WithMaxTries(tries), backoff.WithBackOff(t.newBackOff()))
	var busy *busyError
	if errors.As(err, &busy) {
		return busy.resp, nil // the client turns the last response into an error
	}
	var permanent *backoff.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Unwrap()
	}
	return resp, err
}

func (t *transport) apiOf(req *http.Request) api {
	if req.URL.Path == t.graphql {
		return apiGraphQL
	}
	return apiREST
}

// attempt sends the request once and reads the whole response.
func (t *transport) attempt(req *http.Request, body []byte, op *Operation, forToken bool) (*http.Response, error) {
	a := t.apiOf(req)
	if l := t.limits.check(op.installation, a); l != nil {
		return nil, l
	}
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	if !forToken {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { op.sent.Store(true) }})
	}
	out := req.Clone(ctx)
	if !slices.Contains(t.hosts, out.URL.Host) { // after a redirection, for which the clients above add the token again
		out.Header.Del("Authorization")
	}
	if body != nil {
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody()
		out.ContentLength = int64(len(body))
	}
	start := time.Now()
	t.calls.add(PurposeOf(req.Context()))
	resp, content, err := t.send(out)
	stats := Request{Op: op.name, Method: req.Method, Installation: op.installation, Took: time.Since(start), API: string(a), Remaining: -1}
	defer func() { t.metrics(stats) }()
	if err != nil {
		return nil, err
	}
	resp.Request = req
	stats.Status = resp.StatusCode
	if n, err := strconv.Atoi(resp.Header.Get("X-RateLimit-Remaining")); err == nil {
		stats.Remaining = n
	}
	if v := resp.Header.Get(VersionHeader); v != "" {
		t.version.Store(&v)
	}
	t.warnOfSunset(op, resp)
	if l := t.limits.update(op.installation, a, resp, content); l != nil {
		stats.Limited = l.Kind
		t.log.Warn().Str(logOp, op.description).Int64(logInstallation, op.installation).Time(logUntil, l.Until).
			Msg(string(l.Kind) + " rate limit of GitHub")
		return nil, l
	}
	if s := resp.StatusCode; req.Method != http.MethodGet && s >= 301 && s <= 303 {
		return nil, fmt.Errorf("%w: %s %s was redirected", ErrRenamed, req.Method, req.URL.Path)
	}
	return resp, nil
}

// send does one round trip and reads the body of the response into memory.
func (t *transport) send(req *http.Request) (*http.Response, []byte, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read GitHub's response: %w", err)
	}
	if len(content) > maxResponse {
		return nil, nil, fmt.Errorf("GitHub's response is larger than %d bytes", maxResponse)
	}
	resp.Body = io.NopCloser(bytes.NewReader(content))
	return resp, content, nil
}

// readBody reads the request's body, so that it can be sent more than once. It returns nil if there is none.
func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer req.Body.Close()
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, fmt.Errorf("read request: %w", err)
	}
	return body, nil
}
