package simmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/clock"
)

// chunkWords is the number of words in one delta of a paced stream.
const chunkWords = 3

// messagesAPI is Anthropic's Messages API.
type messagesAPI struct{}

var _ dialect = messagesAPI{}

func (messagesAPI) read(_ *http.Request, body []byte) (req request, err error) {
	return req, json.Unmarshal(body, &req)
}

func (messagesAPI) fail(w http.ResponseWriter, e apiError, id string) { writeError(w, e, id) }

func (messagesAPI) whole(ctx context.Context, s *Server, w http.ResponseWriter, p play) {
	s.writeWhole(ctx, w, p, p.answer)
}

// writeWhole sends an unstreamed response, or its first half if it must be cut.
func (s *Server) writeWhole(ctx context.Context, w http.ResponseWriter, p play, answer any) {
	if s.cfg.Pace > 0 && clock.Sleep(ctx, s.pace(p.answer.Usage.Output)) != nil {
		return
	}
	if !p.cut {
		writeJSON(w, http.StatusOK, answer)
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body[:len(body)/2])
	abort(w)
}

// newStream starts a stream of server-sent events.
func (s *Server) newStream(ctx context.Context, w http.ResponseWriter, p play) stream {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	st := stream{ctx: ctx, w: w, pace: s.pace, cutAfter: -1}
	if p.cut {
		st.cutAfter = p.turn.Cut
		st.silent = p.turn.Silence
	}
	return st
}

// stream sends the response as server-sent events.
func (messagesAPI) stream(ctx context.Context, s *Server, w http.ResponseWriter, p play) {
	st := s.newStream(ctx, w, p)
	start := p.answer
	start.Content, start.Stop = []block{}, nil
	start.Usage.Output = 1
	st.send("message_start", map[string]any{"message": start})
	st.send("ping", map[string]any{})
	for i, b := range p.answer.Content {
		st.block(i, b)
	}
	if p.cut {
		abort(w) // the response was shorter than the place of the cut
	}
	st.send("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": p.answer.Stop, "stop_sequence": nil},
		"usage": p.answer.Usage,
	})
	st.send("message_stop", map[string]any{})
}

// pace returns the duration of a number of words.
func (s *Server) pace(words int) time.Duration {
	if s.cfg.Pace <= 0 {
		return 0
	}
	return time.Duration(float64(words) / s.cfg.Pace * float64(time.Second))
}

// stream writes events until the client disconnects.
type stream struct {
	ctx      context.Context //nolint:containedctx // a stream lives within one request
	w        http.ResponseWriter
	pace     func(words int) time.Duration
	deltas   int
	cutAfter int  // number of deltas after which the connection is closed; -1 never
	silent   bool // instead of closing, send nothing more
	gone     bool
}

// send writes one event; its type is added to the data, as the API does.
func (s *stream) send(event string, data map[string]any) {
	if s.gone {
		return
	}
	data["type"] = event
	body, err := json.Marshal(data)
	if err == nil {
		_, err = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", event, body)
	}
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.gone = err != nil || s.ctx.Err() != nil
}

// block sends one content block in deltas.
func (s *stream) block(index int, b block) {
	start, kind, field, text := b, "text_delta", "text", b.Text
	switch b.Type {
	case "thinking":
		kind, field, text = "thinking_delta", "thinking", b.Thinking
		start.Thinking, start.Signature = "", ""
	case "tool_use":
		kind, field, text = "input_json_delta", "partial_json", string(b.Input)
		start.Input = json.RawMessage("{}")
	}
	start.Text = ""
	s.send("content_block_start", map[string]any{"index": index, "content_block": openBlock(start)})
	for chunk := range chunks(text) {
		s.delta(index, map[string]any{"type": kind, field: chunk})
	}
	if b.Type == "thinking" {
		s.delta(index, map[string]any{"type": "signature_delta", "signature": b.Signature})
	}
	s.send("content_block_stop", map[string]any{"index": index})
}

// delta sends one piece of a block, at the stream's pace, and cuts the connection when required.
func (s *stream) delta(index int, delta map[string]any) {
	s.piece("content_block_delta", map[string]any{"index": index, "delta": delta})
}

// piece sends an event that counts as a piece of the response.
func (s *stream) piece(event string, data map[string]any) {
	if s.cutAfter >= 0 && s.deltas >= s.cutAfter {
		s.fallSilent()
		abort(s.w)
	}
	s.deltas++
	if s.pace != nil && clock.Sleep(s.ctx, s.pace(chunkWords)) != nil {
		s.gone = true
	}
	s.send(event, data)
}

// openBlock returns a block as in content_block_start, with its empty field present.
func openBlock(b block) any {
	switch b.Type {
	case "text":
		return map[string]any{"type": "text", "text": ""}
	case "thinking":
		return map[string]any{"type": "thinking", "thinking": "", "signature": ""}
	}
	return b
}

// chunks yields the text in pieces of a few words, every byte of it once.
func chunks(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for text != "" {
			end := 0
			for range chunkWords {
				next := strings.IndexAny(text[end:], " \n")
				if next < 0 {
					end = len(text)
					break
				}
				end += next + 1
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// abort sends everything written so far and closes the connection without an end.
func abort(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// fallSilent waits until the client has disconnected, or longer than any client waits.
func (s *stream) fallSilent() {
	if !s.silent {
		return
	}
	const longest = time.Hour
	_ = http.NewResponseController(s.w).Flush()
	_ = clock.Sleep(s.ctx, longest)
}
