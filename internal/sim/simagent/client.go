package simagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/clock"
)

// Limits of the client.
const (
	maxReply      = 64 << 20
	maxEvent      = 16 << 20
	callTimeout   = time.Hour // a stream may be silent for minutes; only a run's limits are shorter
	warmUpTimeout = 5 * time.Second
	maxObeyed     = 60 * time.Second // a longer retry-after is ignored
)

// retryWaits are the pauses before each retry, measured with the real CLI.
var retryWaits = [...]time.Duration{
	500 * time.Millisecond, time.Second, 2 * time.Second, 4500 * time.Millisecond, 9 * time.Second,
	18 * time.Second, 37 * time.Second, 35 * time.Second, 38 * time.Second, 35 * time.Second,
}

// client is a client of the model's API.
type client struct {
	base, key, token, oauth string
	session                 string
	retries                 int
	scale                   float64
	http                    *http.Client
}

// newClient reads the model's address and credentials from the environment.
func newClient(env environment, session string) (*client, error) {
	c := &client{
		base: "https://api.anthropic.com", key: env.get("ANTHROPIC_API_KEY"), token: env.get("ANTHROPIC_AUTH_TOKEN"),
		oauth: env.get("CLAUDE_CODE_OAUTH_TOKEN"), session: session, retries: len(retryWaits), scale: 1,
	}
	if base := env.get("ANTHROPIC_BASE_URL"); base != "" {
		c.base = strings.TrimRight(base, "/")
	}
	if _, err := url.ParseRequestURI(c.base); err != nil {
		return nil, fmt.Errorf("ANTHROPIC_BASE_URL: %w", err)
	}
	if n, err := strconv.Atoi(env.get("CLAUDE_CODE_MAX_RETRIES")); err == nil && n >= 0 {
		c.retries = n
	}
	if f, err := strconv.ParseFloat(env.get("SIMAGENT_RETRY_SCALE"), 64); err == nil && f >= 0 {
		c.scale = f
	}
	headers := 10 * time.Minute
	if ms, err := strconv.Atoi(env.get("API_TIMEOUT_MS")); err == nil && ms > 0 {
		headers = time.Duration(ms) * time.Millisecond
	}
	c.http = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: headers}}
	return c, nil
}

// loggedIn reports whether there are credentials.
func (c *client) loggedIn() bool { return c.key != "" || c.token != "" || c.oauth != "" }

// keySource returns the name of the credentials' source in the init event.
func (c *client) keySource() string {
	if c.key != "" {
		return "ANTHROPIC_API_KEY"
	}
	return "none"
}

// body is a request's body.
type body struct {
	Model     string            `json:"model"`
	MaxTokens int               `json:"max_tokens"`
	System    []block           `json:"system"`
	Messages  []message         `json:"messages"`
	Tools     []json.RawMessage `json:"tools"`
	Stream    bool              `json:"stream"`
	Metadata  map[string]string `json:"metadata"`
}

// hooks are called while a response arrives.
type hooks struct {
	block   func(r *reply, b block)
	partial func(event json.RawMessage)
	retry   func(attempt int, wait time.Duration, f *failure)
}

// warmUp opens the connection, like the real CLI. It may fail.
func (c *client) warmUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, warmUpTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, c.base+"/", nil)
	if err != nil {
		return
	}
	if res, err := c.http.Do(req); err == nil {
		res.Body.Close()
	}
}

// ask sends the conversation until it gets a response. A stream that breaks is requested again unstreamed, unless it
// contained a complete tool call: then ask returns the partial response with broken set. The error is a *failure or the
// context's.
func (c *client) ask(ctx context.Context, b body, h hooks) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	b.Stream = true
	for attempt := 1; ; attempt++ {
		r, err := c.once(ctx, b, h)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if err == nil && r.broken && !r.hasCall() && b.Stream {
			b.Stream = false
			r, err = c.once(ctx, b, h)
		}
		var f *failure
		if !errors.As(err, &f) {
			return r, err
		}
		if attempt > c.retries || !f.retryable() {
			return r, f
		}
		wait := f.after
		if wait == 0 {
			wait = retryWaits[min(attempt, len(retryWaits))-1]
		}
		wait = time.Duration(float64(wait) * c.scale)
		h.retry(attempt, wait, f)
		if err := clock.Sleep(ctx, wait); err != nil {
			return r, err
		}
	}
}

// once sends one request and reads its response.
func (c *client) once(ctx context.Context, b body, h hooks) (*reply, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/messages?beta=true", bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	c.headers(req.Header)
	res, err := c.http.Do(req)
	if err != nil {
		return nil, &failure{message: "ConnectionRefused", header: http.Header{}}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, readFailure(res)
	}
	r := &reply{requestID: res.Header.Get("Request-Id")}
	if b.Stream {
		r.readStream(res.Body, h)
		return r, nil
	}
	if err := r.readWhole(io.LimitReader(res.Body, maxReply)); err != nil {
		return nil, &failure{message: err.Error(), header: res.Header}
	}
	for _, b := range r.content {
		h.block(r, b)
	}
	return r, nil
}

// headers sets the headers of the real CLI.
func (c *client) headers(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("Anthropic-Version", "2023-06-01")
	h.Set("Anthropic-Beta", "claude-code-20250219")
	h.Set("X-Claude-Code-Session-Id", c.session)
	h.Set("User-Agent", "claude-cli/"+Version+" (external, sdk-cli)")
	h.Set("X-Stainless-Retry-Count", "0")
	if c.key != "" {
		h.Set("X-Api-Key", c.key)
	}
	if bearer := c.token + c.oauth; bearer != "" {
		h.Set("Authorization", "Bearer "+bearer)
	}
}
