package bench

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// What the stand-in for a model's API says: a stream of events, as long as anybody listens or for so many.
const (
	streamHead = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-sonnet-5\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
	streamTail = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n\n"
)

// What the stand-in is asked to do.
const (
	once    = "once" // it ends when the first event has come: what is at once at its end is booked before it is passed on
	endless = "long"
	hang    = "hang" // it stays open until it is released
)

// longMB is how much a long stream has.
const longMB = 64

// answer is the API.
func (w *wire) answer(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, _ = io.WriteString(rw, streamHead)
	_ = http.NewResponseController(rw).Flush()
	switch {
	case bytes.HasSuffix(body, []byte(ending(once))):
		select {
		case <-w.heard:
		case <-r.Context().Done():
		}
	case bytes.HasSuffix(body, []byte(ending(endless))):
		event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"" + strings.Repeat("x", 900) + "\"}}\n\n"
		for n := 0; n < longMB<<20; n += len(event) {
			if _, err := io.WriteString(rw, event); err != nil {
				return
			}
		}
	case bytes.HasSuffix(body, []byte(ending(hang))):
		select {
		case <-w.release:
		case <-r.Context().Done():
		}
	}
	_, _ = io.WriteString(rw, streamTail)
}

// ending is how a request ends that asks for something.
func ending(what string) string { return `,"metadata":{"user_id":"` + what + `"}}` }

// conversation is a request as an agent sends it in the midst of its work: with all that was said, 100 kB of it.
// The gateway looks for the model, and for what is not allowed, in all of it.
func conversation(what string) string {
	said := strings.Repeat(`{"role":"user","content":"func \"main\" is\n\tat {line: 7}"},`, 100_000/55)
	return `{"messages":[` + strings.TrimSuffix(said, ",") + `],"stream":true,"model":"claude-sonnet-5"` + ending(what)
}
