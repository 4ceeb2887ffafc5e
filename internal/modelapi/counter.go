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

// maxBody bounds what of an answer that is not streamed is kept for counting, and the length of one event
// of a stream. OpenAI's last event repeats the whole answer.
const maxBody = 32 << 20

// bytesPerToken is the rough size of a token, for what a cut stream did not live to count.
const bytesPerToken = 4

// Counter counts what one answer used, while somebody else reads it: everything that is read has to be
// written to it, in order. It never fails and never blocks for longer than it takes to look at the bytes;
// what it does not understand counts as nothing. It is not for use by several goroutines at once.
type Counter struct {
	stream *io.PipeWriter // of a streamed answer
	done   chan struct{}  // closed when the stream is counted
	body   bytes.Buffer   // of any other

	requestBytes int64 // bytes of the request, for what an answer does not live to say of its input

	mu        sync.Mutex // of what follows: the stream is read while Running is asked
	usage     Usage
	counted   bool
	final     bool  // the stream has said what it used in the end
	failed    bool  // it has said that it is none
	textBytes int64 // bytes of the answer in a stream
	ending    Ending
}

// NewCounter counts an answer of this content type to a request of so many bytes, 0 if that is not known.
// Close must be called, even after an error.
func NewCounter(contentType string, asked int64) *Counter {
	c := &Counter{requestBytes: max(asked, 0)}
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "text/event-stream" {
		return c
	}
	var r *io.PipeReader
	r, c.stream = io.Pipe()
	c.done = make(chan struct{})
	go c.read(r) // ends with Close
	return c
}

// Write takes the next bytes of the answer.
func (c *Counter) Write(p []byte) (int, error) {
	if c.stream != nil {
		return c.stream.Write(p) // the reader never closes its end before Close
	}
	if room := maxBody - c.body.Len(); room > 0 {
		c.body.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}

// Close ends the answer, whole or cut, and returns what it used. Ok is false if nothing of it said so. What an answer
// that was cut did not live to say is estimated: its output from what had come, its input from the request.
func (c *Counter) Close() (u Usage, ok bool) {
	if c.stream == nil {
		c.countBody()
		return c.usage, c.counted
	}
	_ = c.stream.Close() // cannot fail: a pipe
	<-c.done
	u = c.estimated()
	if !c.final && !c.failed && u.tokens() == 0 {
		u.Input = c.requestTokens()
	}
	return u, c.counted || u.tokens() > 0 || c.textBytes > 0
}

// countBody counts an answer that is no stream. One that was cut, or comes from a server that does not count, is estimated.
func (c *Counter) countBody() {
	var s payload
	switch body := c.body.Bytes(); {
	case json.Unmarshal(body, &s) == nil:
		c.counted, c.failed = c.usage.update(&s), s.isError()
	case json.Valid(body):
		c.countList()
	}
	if c.final = c.counted; c.counted || c.failed || c.requestBytes == 0 {
		return
	}
	c.counted, c.usage.Input, c.usage.Output = true, c.requestTokens(), int64(c.body.Len())/bytesPerToken
}

// requestTokens is about how long the request is.
func (c *Counter) requestTokens() int64 {
	if c.requestBytes == 0 {
		return 0
	}
	return max(c.requestBytes/bytesPerToken, 1)
}

// Streams reports whether the answer is a stream of events, of which Running says something before the end.
func (c *Counter) Streams() bool { return c.stream != nil }

// Current returns what a streamed answer has used so far, estimated where it does not say so before its end;
// nothing of any other. It may be called by others while the answer is written, and never waits for it.
func (c *Counter) Current() Usage {
	if c.stream == nil {
		return Usage{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.estimated()
}

// Final reports whether a streamed answer has said what it used in the end, or that it is none. It may be called by others
// while the answer is written.
func (c *Counter) Final() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.final || c.failed
}

// estimated fills in what a stream has not said. What its end says is what the provider bills, however long
// the answer looks.
func (c *Counter) estimated() Usage {
	u := c.usage
	if c.final {
		return u
	}
	if estimate := c.textBytes / bytesPerToken; u.Output < estimate/2 {
		u.Output = estimate
	}
	if c.textBytes > 0 && u.Input+u.CacheRead+u.CacheWrite == 0 && !c.counted {
		u.Input = c.requestTokens()
	}
	return u
}

// countList reads an answer that is a list of events: Gemini's stream without alt=sse.
func (c *Counter) countList() {
	var list []payload
	if json.Unmarshal(c.body.Bytes(), &list) != nil {
		return
	}
	for i := range list {
		c.counted = c.usage.update(&list[i]) || c.counted
	}
}

// read takes a stream apart until it ends, or until an event is longer than any should be: the rest is
// then let pass.
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

func (c *Counter) countEvent(data string) {
	if !strings.HasPrefix(data, "{") {
		return // a heartbeat, or OpenAI's [DONE]
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
	c.ending = max(c.ending, s.ending())
}
