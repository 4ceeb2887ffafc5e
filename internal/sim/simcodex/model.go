package simcodex

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/errand-bot/errand/internal/clock"
)

// Limits of the client.
const (
	maxRefusal  = 1 << 20
	maxEvent    = 64 << 20
	callTimeout = time.Hour // a stream may be silent for minutes; only a run's limits are shorter
	firstWait   = 200 * time.Millisecond
)

// model is a client of the model's API.
type model struct {
	a                 *agent
	url, key, keyName string
	tries             int // retries
	scale             float64
	schema            json.RawMessage
	http              *http.Client
}

// newModel reads the model's address from the settings.
func newModel(a *agent) (*model, error) {
	provider := "model_providers." + a.opt.text("model_provider") + "."
	m := &model{a: a, url: a.opt.text(provider+"base_url") + "/responses", keyName: a.opt.text(provider + "env_key"), tries: a.opt.number(provider+"stream_max_retries", 5), scale: 1}
	if m.key = a.getenv(m.keyName); m.key == "" {
		return nil, fmt.Errorf("missing environment variable: `%s`", m.keyName)
	}
	if f, err := strconv.ParseFloat(a.getenv("SIMAGENT_RETRY_SCALE"), 64); err == nil && f >= 0 {
		m.scale = f
	}
	m.http = &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}
	var err error
	m.schema, err = loadSchema(a.opt.schema)
	return m, err
}

// answer is the model's response.
type answer struct {
	Output     []item            `json:"output"`
	Usage      usage             `json:"usage"`
	Incomplete map[string]string `json:"incomplete_details"`
	Error      *apiError         `json:"error"`
}

type apiError struct {
	Type     string `json:"type"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	ResetsIn int    `json:"resets_in_seconds"`
}

// failure explains a failed request in Codex's wording.
type failure struct {
	words string
	again bool          // a retry may succeed
	after time.Duration // earliest retry according to the API
}

func (f *failure) Error() string { return f.words }

// ask sends the conversation until it gets a complete response.
func (m *model) ask(ctx context.Context, items []item) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	wait := firstWait
	for n := 1; ; n++ {
		got, err := m.once(ctx, items)
		var f *failure
		if ctx.Err() != nil || !errors.As(err, &f) || !f.again || n > m.tries {
			return got, err
		}
		m.a.emit(map[string]any{"type": "error", "message": fmt.Sprintf("Reconnecting... %d/%d (%s)", n, m.tries, f.words)})
		if err := clock.Sleep(ctx, time.Duration(float64(max(wait, f.after))*m.scale)); err != nil {
			return nil, err
		}
		wait *= 2
	}
}

// once sends one request and reads its response.
func (m *model) once(ctx context.Context, items []item) (*answer, error) {
	if said := m.a.opt.text("developer_instructions"); said != "" {
		items = append([]item{{Type: "message", Role: "developer", Content: content("input_text", said)}}, items...)
	}
	body := map[string]any{
		"model": m.a.opt.model, "instructions": "You are a coding agent.", "input": items, "stream": true, "store": false,
		"tools": []any{map[string]any{"type": "function", "name": "exec_command", "parameters": map[string]any{"type": "object", "properties": map[string]any{"cmd": map[string]string{"type": "string"}}}}},
	}
	if m.schema != nil {
		body["text"] = map[string]any{"format": map[string]any{"type": "json_schema", "name": "codex_output_schema", "strict": true, "schema": m.schema}}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Authorization", "Bearer "+m.key)
	req.Header.Set("User-Agent", "codex_exec/"+Version)
	req.Header.Set("Session-Id", m.a.thread.id)
	res, err := m.http.Do(req)
	if err != nil {
		return nil, &failure{words: fmt.Sprintf("stream disconnected before completion: error sending request for url (%s)", m.url), again: true}
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, m.refused(res)
	}
	return readStream(res.Body)
}

// readStream reads events until the response is complete. It ignores deltas, because the last event contains
// everything.
func readStream(body io.Reader) (*answer, error) {
	for ev, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			break
		}
		var event struct {
			Response answer `json:"response"`
		}
		if !strings.HasPrefix(ev.Type, "response.") || json.Unmarshal([]byte(ev.Data), &event) != nil {
			continue
		}
		switch ev.Type {
		case "response.completed":
			return &event.Response, nil
		case "response.incomplete":
			return nil, &failure{words: "stream disconnected before completion: Incomplete response returned, reason: " + event.Response.Incomplete["reason"]}
		case "response.failed":
			return nil, failed(event.Response.Error)
		}
	}
	return nil, &failure{words: "stream disconnected before completion: stream closed before response.completed", again: true}
}

// failed converts an error in the stream.
func failed(e *apiError) *failure {
	switch {
	case e == nil:
		return &failure{words: "stream disconnected before completion: response.failed event received", again: true}
	case e.Code == "context_length_exceeded":
		return &failure{words: "Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying."}
	}
	return &failure{words: "stream disconnected before completion: " + e.Message, again: true}
}

// refused converts a response with a status other than 200.
func (m *model) refused(res *http.Response) *failure {
	data, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal)) // as much as was received
	var said struct {
		Error apiError `json:"error"`
	}
	message := strings.TrimSpace(string(data))
	if json.Unmarshal(data, &said) == nil && said.Error.Message != "" {
		message = said.Error.Message
	}
	status := fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode))
	f := &failure{words: fmt.Sprintf("unexpected status %s: %s, url: %s", status, message, m.url)}
	switch code := res.StatusCode; {
	case code == http.StatusBadRequest:
		f.words = string(data)
	case code == http.StatusTooManyRequests:
		m.limited(f, res, said.Error, status)
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		f.again = true
	case code >= http.StatusInternalServerError:
		f.words, f.again = "exceeded retry limit, last status: "+status, true
	}
	return f
}

// limited describes a rate limit or usage limit.
func (m *model) limited(f *failure, res *http.Response, e apiError, status string) {
	f.words = "exceeded retry limit, last status: " + status
	switch {
	case e.Type == "usage_limit_reached":
		ends := m.a.now().UTC().Add(time.Duration(e.ResetsIn) * time.Second)
		f.words = fmt.Sprintf("You’ve hit your usage limit. Upgrade, or try again at %s.", ends.Format("3:04 PM"))
	case e.Type == "insufficient_quota":
		f.words = "Quota exceeded. Check your plan and billing details."
	default:
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && n >= 0 {
			f.after, f.again = time.Duration(n)*time.Second, true
		}
	}
}
