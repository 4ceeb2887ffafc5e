package simmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// responsesAPI is OpenAI's Responses API as used by coding agents: they keep the conversation and send all of it with
// every request.
type responsesAPI struct{}

var _ dialect = responsesAPI{}

// offer describes the tools and format that a request of the Responses API allows.
type offer struct {
	tools  map[string]bool
	schema bool // the response must be JSON of a schema
}

// responsesRequest is the part of a request that the server uses.
type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Tools        []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`
	Text struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"text"`
}

// inputItem is one item of the conversation: a message, a tool call, or a tool's output.
type inputItem struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"call_id"`
	Name    string          `json:"name"`
	Output  json.RawMessage `json:"output"`
}

func (responsesAPI) read(_ *http.Request, body []byte) (request, error) {
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return request{}, err
	}
	items, err := inputItems(in.Input)
	if err != nil {
		return request{}, err
	}
	req := request{Model: in.Model, Stream: in.Stream, offer: offer{tools: map[string]bool{}, schema: in.Text.Format.Type == "json_schema"}}
	for _, t := range in.Tools {
		name := t.Name
		if name == "" {
			name = t.Type
		}
		req.offer.tools[name] = true
		req.Tools = append(req.Tools, struct {
			Name string `json:"name"`
		}{name})
	}
	c := converter{system: []string{in.Instructions}}
	for _, it := range items {
		c.item(it)
	}
	c.close()
	req.System, req.Messages = quote(strings.TrimSpace(strings.Join(c.system, "\n"))), c.messages
	return req, nil
}

// inputItems reads the input: a string, or a list of items.
func inputItems(raw json.RawMessage) ([]inputItem, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []inputItem{{Role: "user", Content: raw}}, nil
	}
	var items []inputItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("input is neither a string nor a list of items: %w", err)
	}
	if len(items) == 0 {
		return nil, errors.New("input: at least one item is required")
	}
	return items, nil
}

// converter converts items to messages. The text and calls of one response become one assistant message; calls and
// their outputs are matched by ID.
type converter struct {
	system   []string
	messages []message
	answer   string // response that open belongs to, "" while its ID is unknown
	open     []map[string]any
}

// close ends the current response.
func (c *converter) close() {
	if len(c.open) > 0 {
		c.messages = append(c.messages, message{Role: "assistant", Content: encode(c.open)})
	}
	c.open, c.answer = nil, ""
}

func (c *converter) item(it inputItem) {
	switch {
	case it.Type == "" || it.Type == "message":
		c.message(it)
	case it.Type == "reasoning":
	case strings.HasSuffix(it.Type, "_output"):
		c.close()
		c.messages = append(c.messages, message{Role: "user", Content: encode([]map[string]any{toolOutput(it)})})
	case strings.HasSuffix(it.Type, "_call"):
		answer, _, _ := strings.Cut(strings.TrimPrefix(it.CallID, callPrefix), "_")
		if c.answer != "" && c.answer != answer {
			c.close()
		}
		c.answer = answer
		c.open = append(c.open, map[string]any{"type": "tool_use", "id": it.CallID, "name": it.Name})
	}
}

func (c *converter) message(it inputItem) {
	text := itemText(it.Content)
	switch {
	case it.Role == "assistant":
		if c.answer != "" {
			c.close() // text precedes calls
		}
		c.open = append(c.open, map[string]any{"type": "text", "text": text})
	case it.Role == "user" && !addedByClient(text):
		c.close()
		c.messages = append(c.messages, message{Role: "user", Content: quote(text)})
	default:
		c.system = append(c.system, text)
	}
}

// addedByClient reports whether a user message is an automatic addition by the client.
func addedByClient(text string) bool {
	text = strings.TrimSpace(text)
	for _, tag := range []string{"<environment_context>", "<user_instructions>", "<turn_aborted>", "<skill", "# AGENTS.md instructions"} {
		if strings.HasPrefix(text, tag) {
			return true
		}
	}
	return false
}

// itemText joins the texts of a content field: a string, or a list of parts.
func itemText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var list []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	var texts []string
	for _, p := range list {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// commandHead matches the text that the agent's shell tool adds before a command's output.
var commandHead = regexp.MustCompile(`(?s)\A(?:[^\n]*\n){0,6}?Process exited with code (\d+)\n.*?Output:\n`)

// toolOutput returns a tool's output in the Messages API's format. A failed command looks as it does there, so that one
// script works for both.
func toolOutput(it inputItem) map[string]any {
	text, failed := itemText(it.Output), false
	if m := commandHead.FindStringSubmatch(text); m != nil {
		text = text[len(m[0]):]
		if failed = m[1] != "0"; failed {
			text = "Exit code " + m[1] + "\n" + text
		}
	}
	return map[string]any{"type": "tool_result", "tool_use_id": it.CallID, "content": text, "is_error": failed}
}

func quote(text string) json.RawMessage { return encode(text) }

// encode encodes a value that is known to have a JSON form.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
