package simagent

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/tmaxmax/go-sse"
)

// reply is the received part of the model's response.
type reply struct {
	ID        string
	Model     string
	content   []block
	stop      string
	first     usage // from message_start
	usage     usage
	requestID string
	broken    bool // the stream ended early
}

// hasCall reports whether a complete tool call was received.
func (r *reply) hasCall() bool {
	for _, b := range r.content {
		if b.Type == "tool_use" {
			return true
		}
	}
	return false
}

// text returns the response's last text block.
func (r *reply) text() string {
	var last string
	for _, b := range r.content {
		if b.Type == "text" {
			last = b.Text
		}
	}
	return last
}

// wireMessage is a message as the API sends it.
type wireMessage struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Content []block `json:"content"`
	Stop    string  `json:"stop_reason"`
	Usage   usage   `json:"usage"`
}

// readWhole reads an unstreamed response.
func (r *reply) readWhole(body io.Reader) error {
	var m wireMessage
	if err := json.NewDecoder(body).Decode(&m); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	r.ID, r.Model, r.content, r.stop, r.first, r.usage = m.ID, m.Model, m.Content, m.Stop, m.Usage, m.Usage
	return nil
}

// wireEvent is the union of the stream's events.
type wireEvent struct {
	Type    string      `json:"type"`
	Message wireMessage `json:"message"`
	Block   block       `json:"content_block"`
	Delta   struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Partial   string `json:"partial_json"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// readStream reads events until the message's end. Any other end of the stream sets broken.
func (r *reply) readStream(body io.Reader, h hooks) {
	r.broken = true
	var open block
	var input []byte
	for ev, err := range sse.Read(io.LimitReader(body, maxReply), &sse.ReadConfig{MaxEventSize: maxEvent}) {
		var e wireEvent
		if err != nil || json.Unmarshal([]byte(ev.Data), &e) != nil || e.Type == "error" {
			return
		}
		if h.partial != nil {
			h.partial(json.RawMessage(ev.Data))
		}
		switch e.Type {
		case "message_start":
			r.ID, r.Model, r.first, r.usage = e.Message.ID, e.Message.Model, e.Message.Usage, e.Message.Usage
		case "content_block_start":
			open, input = e.Block, nil
		case "content_block_delta":
			open.Text += e.Delta.Text
			open.Thinking += e.Delta.Thinking
			open.Signature += e.Delta.Signature
			input = append(input, e.Delta.Partial...)
		case "content_block_stop":
			r.closeBlock(open, input, h)
		case "message_delta":
			r.stop = e.Delta.Stop
			r.usage.Output = e.Usage.Output
		case "message_stop":
			r.broken = false
			return
		}
	}
}

// closeBlock adds a finished block to the response.
func (r *reply) closeBlock(b block, input []byte, h hooks) {
	if b.Type == "tool_use" {
		b.Input = json.RawMessage("{}")
		if json.Valid(input) {
			b.Input = input
		}
	}
	r.content = append(r.content, b)
	h.block(r, b)
}
