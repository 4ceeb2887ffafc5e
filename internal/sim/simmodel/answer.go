package simmodel

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// Usage counts tokens by the API's four kinds; input excludes both kinds of cached tokens.
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

func (u Usage) add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// block is one content block of a response, in the wire format of an unstreamed message.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// answer is a complete message of the model.
type answer struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Model   string  `json:"model"`
	Content []block `json:"content"`
	Stop    *string `json:"stop_reason"`
	StopSeq *string `json:"stop_sequence"`
	Usage   Usage   `json:"usage"`
}

// build creates the message of a rendered turn.
func (s *Server) build(p play, req request) answer {
	a := answer{ID: s.nextID("msg"), Type: "message", Role: "assistant", Model: req.Model, Content: []block{}}
	if p.turn.Thinking != "" {
		a.Content = append(a.Content, block{Type: "thinking", Thinking: p.turn.Thinking, Signature: "c2ltbW9kZWw="})
	}
	if p.turn.Text != "" {
		a.Content = append(a.Content, block{Type: "text", Text: p.turn.Text})
	}
	stop := "end_turn"
	for _, c := range p.turn.calls() {
		stop = "tool_use"
		c = offered(c, p.conv.Tools)
		input := []byte("{}")
		if len(c.Input) > 0 {
			// A script is YAML or Go values of JSON's kinds; a value without a JSON form becomes {}.
			if b, err := json.Marshal(c.Input); err == nil {
				input = b
			}
		}
		a.Content = append(a.Content, block{Type: "tool_use", ID: s.nextID("toolu"), Name: c.Name, Input: input})
	}
	if p.turn.Stop != "" {
		stop = p.turn.Stop
	}
	a.Stop = &stop
	a.Usage = req.usage(a.Content)
	return a
}

// calls returns the turn's tool calls in order.
func (t Turn) calls() []Call {
	var calls []Call
	for _, c := range t.Bash {
		calls = append(calls, Call{Name: "Bash", Input: map[string]any{"command": c}})
	}
	return append(calls, t.Tools...)
}

// usage counts four bytes as a token: content of the previous request is read from the cache, the message before the
// last is written to it, and the last is plain input. The Responses API does not report cache writes; there they are
// input.
func (r request) usage(content []block) Usage {
	sizes := make([]int, 0, len(r.Messages)+1)
	sizes = append(sizes, len(r.System))
	for _, m := range r.Messages {
		sizes = append(sizes, len(m.Content))
	}
	var u Usage
	last := len(sizes) - 1
	for i, n := range sizes {
		switch {
		case i == last:
			u.Input += n/4 + 1
		case i == last-1 && r.offer.tools == nil:
			u.CacheWrite += n / 4
		case i == last-1:
			u.Input += n / 4
		default:
			u.CacheRead += n / 4
		}
	}
	for _, b := range content {
		u.Output += (len(b.Text)+len(b.Thinking)+len(b.Name)+len(b.Input))/4 + 1
	}
	return u
}

// apiError is an error in the API's format, returned by decide and hold.
type apiError struct {
	Status     int
	Message    string
	RetryAfter int
	Header     map[string]string
	// Stream: a stream was requested.
	Stream bool
}

func (e apiError) Error() string { return e.Message }

// kind returns the API's name for the status.
func (e apiError) kind() string {
	switch e.Status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if e.Status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// writeError sends an error response.
func writeError(w http.ResponseWriter, e apiError, id string) {
	for k, v := range e.Header {
		w.Header().Set(k, v)
	}
	if e.RetryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Message == "" {
		e.Message = defaultMessage(e.Status)
	}
	w.Header().Set("Request-Id", id)
	writeJSON(w, e.Status, map[string]any{
		"type":       "error",
		"error":      map[string]string{"type": e.kind(), "message": e.Message},
		"request_id": id,
	})
}

func defaultMessage(status int) string {
	if status == 529 {
		return "Overloaded"
	}
	return http.StatusText(status)
}

// writeJSON sends one JSON value. A client that has disconnected is not an error.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
