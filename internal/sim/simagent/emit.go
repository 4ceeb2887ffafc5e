package simagent

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// emitter prints the run's events, one JSON object per line, or only the result in the other formats.
type emitter struct {
	mu      sync.Mutex
	w       io.Writer
	format  string
	session string
}

// event is one line; type, uuid and session are added.
type event map[string]any

// emit prints a line in the stream format. It ignores a closed stdout.
func (e *emitter) emit(kind string, ev event) {
	if e.format == "stream-json" {
		e.print(kind, ev)
	}
}

func (e *emitter) print(kind string, ev event) {
	ev["type"], ev["uuid"], ev["session_id"] = kind, newID(), e.session
	line, err := json.Marshal(ev)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.w.Write(append(line, '\n'))
}

// assistant prints one content block of the model's response.
func (e *emitter) assistant(r *reply, b block, failure string) {
	ev := event{
		"message": event{
			"id": r.ID, "type": "message", "role": "assistant", "model": r.Model, "content": []block{b},
			"stop_reason": nil, "stop_sequence": nil, "usage": r.first,
		},
		"parent_tool_use_id": nil,
		"request_id":         r.requestID,
	}
	if failure != "" {
		ev["error"] = failure
	}
	e.emit("assistant", ev)
}

// toolResult prints a tool's result.
func (e *emitter) toolResult(b block, detail any) {
	e.emit("user", event{
		"message":            message{Role: "user", Content: []block{b}},
		"parent_tool_use_id": nil,
		"tool_use_result":    detail,
	})
}

// ending is the outcome of a run.
type ending struct {
	subtype    string
	isError    bool
	status     int
	turns      int
	text       string
	stop       string
	reason     string
	errors     []string
	structured json.RawMessage
	exit       int
}

// result prints the last line of a run in the output format.
func (e *emitter) result(end ending, b bill, denials []denial) {
	if e.format == "text" {
		fmt.Fprintln(e.w, end.text)
		return
	}
	if denials == nil {
		denials = []denial{}
	}
	ev := event{
		"subtype": end.subtype, "is_error": end.isError, "api_error_status": orNull(end.status), "num_turns": end.turns,
		"stop_reason": orNull(end.stop), "total_cost_usd": b.usd(), "usage": b.sum(), "modelUsage": b.perModel(),
		"permission_denials": denials, "duration_ms": b.millis(), "duration_api_ms": b.apiMillis(),
	}
	if end.subtype == "success" {
		ev["result"] = end.text
	}
	if end.reason != "" {
		ev["terminal_reason"] = end.reason
	}
	if len(end.errors) > 0 {
		ev["errors"] = end.errors
	}
	if end.structured != nil {
		ev["structured_output"] = end.structured
	}
	e.print("result", ev)
}

// orNull returns nil for a zero value, which JSON writes as null.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
