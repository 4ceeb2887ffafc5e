package simmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/clock"
)

// geminiAnswer is a response or a part of one.
type geminiAnswer struct {
	Candidates []geminiCandidate `json:"candidates"`
	Usage      map[string]int    `json:"usageMetadata,omitempty"`
	Model      string            `json:"modelVersion"`
	ID         string            `json:"responseId"`
}

type geminiCandidate struct {
	Content geminiContent `json:"content"`
	Finish  string        `json:"finishReason,omitempty"`
	Index   int           `json:"index"`
}

// piece returns a response with these parts.
func (p play) piece(parts ...geminiPart) geminiAnswer {
	return geminiAnswer{
		Candidates: []geminiCandidate{{Content: geminiContent{Role: "model", Parts: parts}}},
		Model:      p.answer.Model, ID: p.answer.ID,
	}
}

// finished adds the finish reason and the usage. The API does not report cache writes.
func (a geminiAnswer) finished(of answer) geminiAnswer {
	a.Candidates[0].Finish = "STOP"
	if of.Stop != nil {
		switch *of.Stop {
		case "max_tokens":
			a.Candidates[0].Finish = "MAX_TOKENS"
		case "refusal":
			a.Candidates[0].Finish = "SAFETY"
		default:
			if *of.Stop == strings.ToUpper(*of.Stop) { // one of the API's own reasons, of which it has more
				a.Candidates[0].Finish = *of.Stop
			}
		}
	}
	prompt := of.Usage.Input + of.Usage.CacheRead + of.Usage.CacheWrite
	a.Usage = map[string]int{
		"promptTokenCount": prompt, "cachedContentTokenCount": of.Usage.CacheRead,
		"candidatesTokenCount": of.Usage.Output, "totalTokenCount": prompt + of.Usage.Output,
	}
	return a
}

// part returns a block in the API's format.
func (o offer) part(b block) geminiPart {
	switch b.Type {
	case "thinking":
		return geminiPart{Text: b.Thinking, Thought: true}
	case "tool_use":
		var input map[string]any
		_ = json.Unmarshal(b.Input, &input) // it was written by build
		name, args := o.function(b.Name, input)
		return geminiPart{Call: &geminiCall{Name: name, Args: encode(args)}}
	}
	return geminiPart{Text: b.Text}
}

// function translates a call from the names in scripts to those of the client. Names that the client offers, and
// unknown ones, are kept.
func (o offer) function(name string, input map[string]any) (string, map[string]any) {
	if o.tools[name] {
		return name, input
	}
	if rest, ok := strings.CutPrefix(name, "mcp__"); ok {
		return "mcp_" + strings.Replace(rest, "__", "_", 1), input
	}
	switch name {
	case "Bash":
		return "run_shell_command", map[string]any{"command": input["command"]}
	case "Write":
		return "write_file", map[string]any{"file_path": input["file_path"], "content": input["content"]}
	case "Edit":
		return "replace", map[string]any{
			"file_path": input["file_path"], "old_string": input["old_string"], "new_string": input["new_string"], "instruction": "Replace it.",
		}
	case "Read":
		return "read_file", map[string]any{"file_path": input["file_path"]}
	}
	return name, input
}

func (geminiAPI) whole(ctx context.Context, s *Server, w http.ResponseWriter, p play) {
	var parts []geminiPart
	for _, b := range p.answer.Content {
		parts = append(parts, p.offer.part(b))
	}
	s.writeWhole(ctx, w, p, p.piece(parts...).finished(p.answer))
}

// stream sends a response in parts, each a complete response object; the last has the finish reason.
func (geminiAPI) stream(ctx context.Context, s *Server, w http.ResponseWriter, p play) {
	st := s.newStream(ctx, w, p)
	for _, b := range p.answer.Content {
		part := p.offer.part(b)
		if part.Call != nil {
			st.bare(p.piece(part))
			continue
		}
		for chunk := range chunks(part.Text) {
			st.bare(p.piece(geminiPart{Text: chunk, Thought: part.Thought}))
		}
	}
	if p.cut {
		abort(w) // the response was shorter than the place of the cut
	}
	st.write(p.piece(geminiPart{Text: ""}).finished(p.answer))
}

// bare sends an unnamed event with a part; it is paced, and may be cut off.
func (s *stream) bare(data any) {
	if s.cutAfter >= 0 && s.deltas >= s.cutAfter {
		s.fallSilent()
		abort(s.w)
	}
	s.deltas++
	if s.pace != nil && clock.Sleep(s.ctx, s.pace(chunkWords)) != nil {
		s.gone = true
	}
	s.write(data)
}

// write sends an unnamed event.
func (s *stream) write(data any) {
	if s.gone {
		return
	}
	body, err := json.Marshal(data)
	if err == nil {
		_, err = fmt.Fprintf(s.w, "data: %s\r\n\r\n", body)
	}
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.gone = err != nil || s.ctx.Err() != nil
}

// geminiStatus returns Google's name of a status.
func geminiStatus(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "INVALID_ARGUMENT"
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusServiceUnavailable, 529:
		return "UNAVAILABLE"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= http.StatusInternalServerError {
		return "INTERNAL"
	}
	return "FAILED_PRECONDITION"
}

// fail sends an error in the API's format.
func (geminiAPI) fail(w http.ResponseWriter, e apiError, id string) {
	for k, v := range e.Header {
		w.Header().Set(k, v)
	}
	if e.RetryAfter != 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	if e.Message == "" {
		e.Message = defaultMessage(e.Status)
	}
	w.Header().Set("X-Request-Id", id)
	body := map[string]any{"code": e.Status, "message": e.Message, "status": geminiStatus(e.Status)}
	if e.RetryAfter != 0 {
		body["details"] = []map[string]any{{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(e.RetryAfter) + "s"}}
	}
	writeJSON(w, e.Status, map[string]any{"error": body})
}
