package bench

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// The events of the simulated model API's stream, which is endless or has a number of them.
const (
	streamHead = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-sonnet-5\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
	streamTail = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n\n"
)

// Requests to the simulated model API.
const (
	once    = "once" // ends with the first event; an answer that arrives with its end is booked before it is forwarded
	endless = "long"
	hang    = "hang" // stays open until released
)

// longMB is the size of a long stream.
const longMB = 64

// answer serves the API.
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

// ending returns the end of a request for one of these streams.
func ending(what string) string { return `,"metadata":{"user_id":"` + what + `"}}` }

// conversation is a request as an agent sends it during its work: with the complete conversation of 100 kB, which the
// gateway searches for the model and for forbidden parts.
func conversation(what string) string {
	said := strings.Repeat(`{"role":"user","content":"func \"main\" is\n\tat {line: 7}"},`, 100_000/55)
	return `{"messages":[` + strings.TrimSuffix(said, ",") + `],"stream":true,"model":"claude-sonnet-5"` + ending(what)
}
