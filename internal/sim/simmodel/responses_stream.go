package simmodel

import (
	"context"
	"net/http"
)

func (responsesAPI) whole(ctx context.Context, s *Server, w http.ResponseWriter, p play) {
	s.writeWhole(ctx, w, p, responses(p, s.cfg.Now().Unix()))
}

// eventStream numbers the events of a response, as the API does.
type eventStream struct {
	stream
	number int
}

func (s *eventStream) event(kind string, data map[string]any) { s.emit(s.send, kind, data) }

// part sends an event that counts as a piece of the response: it is paced, and may be cut off.
func (s *eventStream) part(kind string, data map[string]any) { s.emit(s.piece, kind, data) }

func (s *eventStream) emit(send func(string, map[string]any), kind string, data map[string]any) {
	data["sequence_number"] = s.number
	s.number++
	send(kind, data)
}

func (responsesAPI) stream(ctx context.Context, s *Server, w http.ResponseWriter, p play) {
	st := eventStream{stream: s.newStream(ctx, w, p)}
	whole := responses(p, s.cfg.Now().Unix())
	begun := whole
	begun.Status, begun.Output, begun.Usage, begun.Incomplete = "in_progress", []outputItem{}, nil, nil
	st.event("response.created", map[string]any{"response": begun})
	st.event("response.in_progress", map[string]any{"response": begun})
	for i, it := range whole.Output {
		st.item(i, it)
	}
	if p.cut {
		abort(w) // the response was shorter than the place of the cut
	}
	st.event("response."+whole.Status, map[string]any{"response": whole})
}

// item sends one item: its start, its pieces, and the complete item.
func (s *eventStream) item(index int, it outputItem) {
	empty, none := it, ""
	switch {
	case it.Type == "reasoning":
		empty.Summary = []map[string]any{}
	case it.Type == "message":
		empty.Content, empty.Status = []map[string]any{}, "in_progress"
	case it.Arguments != nil:
		empty.Arguments, empty.Status = &none, "in_progress"
	case it.Input != nil:
		empty.Input, empty.Status = &none, "in_progress"
	}
	at := func(more map[string]any) map[string]any {
		more["output_index"], more["item_id"] = index, it.ID
		return more
	}
	s.event("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	switch {
	case it.Type == "reasoning":
		s.event("response.reasoning_summary_part.added", at(map[string]any{"summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}}))
		s.texts("response.reasoning_summary_text", "text", it.text, func(m map[string]any) map[string]any {
			m["summary_index"] = 0
			return at(m)
		})
	case it.Type == "message":
		s.words(it, at)
	case it.Arguments != nil:
		s.texts("response.function_call_arguments", "arguments", *it.Arguments, at)
	case it.Input != nil:
		s.texts("response.custom_tool_call_input", "input", *it.Input, at)
	}
	s.event("response.output_item.done", map[string]any{"output_index": index, "item": it})
}

// words sends the content of a message.
func (s *eventStream) words(it outputItem, at func(map[string]any) map[string]any) {
	field := "text"
	if it.part == "refusal" {
		field = "refusal"
	}
	inPart := func(m map[string]any) map[string]any {
		m["content_index"] = 0
		return at(m)
	}
	s.event("response.content_part.added", inPart(map[string]any{"part": map[string]any{"type": it.part, field: ""}}))
	s.texts("response."+it.part, field, it.text, inPart)
	s.event("response.content_part.done", inPart(map[string]any{"part": map[string]any{"type": it.part, field: it.text}}))
}

// texts sends a text in pieces, and then the complete text.
func (s *eventStream) texts(kind, field, text string, at func(map[string]any) map[string]any) {
	for chunk := range chunks(text) {
		s.part(kind+".delta", at(map[string]any{"delta": chunk}))
	}
	s.event(kind+".done", at(map[string]any{field: text}))
}

// failedStream sends a stream with an error.
func failedStream(w http.ResponseWriter, body openAIError, id string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	st := eventStream{stream: stream{ctx: context.Background(), w: w, cutAfter: -1}}
	response := map[string]any{"id": id, "object": "response", "status": "in_progress", "output": []any{}}
	st.event("response.created", map[string]any{"response": response})
	st.event("response.failed", map[string]any{"response": map[string]any{
		"id": id, "object": "response", "status": "failed", "output": []any{}, "error": body,
	}})
}
