package modelapi

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"strings"
	"sync"

	"github.com/tmaxmax/go-sse"
)

// maxBody limits how much of an answer that is not streamed is kept for counting, and the length of one event of a
// stream. OpenAI's last event repeats the whole answer.
const maxBody = 32 << 20

// bytesPerToken is the assumed size of a token, for answers that do not report their usage.
const bytesPerToken = 4

// A Counter counts the usage of one answer while it is read: everything that is read must be written to the counter, in
// order. It never fails and blocks only for as long as parsing takes; anything it does not understand is not counted.
// Only Current and Final may be called concurrently.
type Counter struct {
	stream *io.PipeWriter // of a streamed answer
	done   chan struct{}  // closed when the stream is counted
	body   bytes.Buffer   // of an answer that is not streamed

	requestTokens int64 // estimated length of the request, for answers that do not report their input

	mu        sync.Mutex // protects the following fields: the stream is counted concurrently
	usage     Usage
	counted   bool
	final     bool  // the stream has reported the usage of the whole answer
	failed    bool  // it has reported an error instead of an answer
	textBytes int64 // length of the answer's text in a stream
	ending    Ending
}

// NewCounter returns a counter for an answer of this content type to a request of about requestTokens tokens, 0 if unknown.
// Close must be called, even after an error.
func NewCounter(contentType string, requestTokens int64) *Counter {
	c := &Counter{requestTokens: max(requestTokens, 0)}
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "text/event-stream" {
		return c
	}
	var r *io.PipeReader
	r, c.stream = io.Pipe()
	c.done = make(chan struct{})
	go c.read(r) // ends with Close
	return c
}

// Write counts the next bytes of the answer.
func (c *Counter) Write(p []byte) (int, error) {
	if c.stream != nil {
		return c.stream.Write(p) // the reader does not close its end before Close
	}
	if room := maxBody - c.body.Len(); room > 0 {
		c.body.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// Close ends the answer, complete or not, and returns its usage. Ok is false if the answer contains nothing about it.
// The usage of an incomplete answer is estimated: the output by the received length, the input by the request.
func (c *Counter) Close() (u Usage, ok bool) {
	if c.stream == nil {
		c.countBody()
		return c.usage, c.counted
	}
	_ = c.stream.Close() // a pipe: cannot fail
	<-c.done
	u = c.withEstimates()
	if !c.final && !c.failed && u.total() == 0 {
		u.Input = c.requestTokens
	}
	return u, c.counted || u.total() > 0 || c.textBytes > 0
}

// countBody counts an answer that is not streamed. It estimates an incomplete one and those of servers that do not
// report usage.
func (c *Counter) countBody() {
	var s payload
	switch body := c.body.Bytes(); {
	case json.Unmarshal(body, &s) == nil:
		c.counted, c.failed = c.usage.update(&s), s.isError()
	case json.Valid(body):
		c.countList()
	}
	if c.final = c.counted; c.counted || c.failed || c.requestTokens == 0 {
		return
	}
	c.counted, c.usage.Input, c.usage.Output = true, c.requestTokens, int64(c.body.Len())/bytesPerToken
}

// Streams reports whether the answer is a stream of events, so that Current returns usage before its end.
func (c *Counter) Streams() bool { return c.stream != nil }

// Current returns the usage of a streamed answer so far, estimated if it was not reported yet, and nothing for any
// other answer. It may be called concurrently with Write, and does not wait for it.
func (c *Counter) Current() Usage {
	if c.stream == nil {
		return Usage{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withEstimates()
}

// Final reports whether the answer has reported the usage of the whole answer, or an error: then nothing is estimated.
// It may be called concurrently with Write.
func (c *Counter) Final() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.final || c.failed
}

// withEstimates returns the usage with estimates for counts that were not reported. The provider bills the usage that
// it reports at the end of an answer, so that is not estimated.
func (c *Counter) withEstimates() Usage {
	u := c.usage
	if c.final {
		return u
	}
	if estimate := c.textBytes / bytesPerToken; u.Output < estimate/2 {
		u.Output = estimate
	}
	if c.textBytes > 0 && u.Input+u.CacheRead+u.CacheWrite == 0 && !c.counted {
		u.Input = c.requestTokens
	}
	return u
}

// countList counts an answer that is a list of events: Gemini's stream without alt=sse.
func (c *Counter) countList() {
	var list []payload
	if json.Unmarshal(c.body.Bytes(), &list) != nil {
		return
	}
	for i := range list {
		c.counted = c.usage.update(&list[i]) || c.counted
	}
}

// read counts the events of a stream until it ends. After an event that is longer than maxBody, the rest is not
// counted.
func (c *Counter) read(r *io.PipeReader) {
	defer close(c.done)
	for e, err := range sse.Read(r, &sse.ReadConfig{MaxEventSize: maxBody}) {
		if err != nil {
			break
		}
		c.countEvent(e.Data)
	}
	_, _ = io.Copy(io.Discard, r) // ends with Close; a pipe has no other error
}

// countEvent counts one event of a stream.
func (c *Counter) countEvent(data string) {
	if !strings.HasPrefix(data, "{") {
		return // a heartbeat or OpenAI's [DONE]
	}
	var s payload
	if json.Unmarshal([]byte(data), &s) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counted = c.usage.update(&s) || c.counted
	c.final = c.final || s.isFinal()
	c.failed = c.failed || s.isError()
	c.textBytes += s.textBytes()
	c.ending = max(c.ending, s.geminiEnding())
}
