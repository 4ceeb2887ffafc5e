package modelapi

import (
	"encoding/json"
)

// A choice is the part of an answer in an event of OpenAI's chat completions.
type choice struct {
	Delta json.RawMessage `json:"delta"`
}

// A candidate is the part of an answer in an event of Gemini's stream.
type candidate struct {
	Content struct {
		Parts []struct {
			Text string `json:"text"`
			Call struct {
				Args json.RawMessage `json:"args"`
			} `json:"functionCall"`
		} `json:"parts"`
	} `json:"content"`
	Finish string `json:"finishReason"`
}

// textBytes returns the approximate length of the answer's text in an event.
func (s *payload) textBytes() (n int64) {
	if len(s.Delta) > 0 && s.Type != "message_delta" {
		n += deltaBytes(s.Delta)
	}
	for _, c := range s.Choices {
		n += chatDeltaBytes(c.Delta)
	}
	for _, c := range s.Candidates {
		for _, p := range c.Content.Parts {
			n += int64(len(p.Text) + len(p.Call.Args))
		}
	}
	return n
}

// deltaBytes returns the approximate length of the text in a delta.
func deltaBytes(delta json.RawMessage) int64 {
	var text string
	if json.Unmarshal(delta, &text) == nil {
		return int64(len(text)) // OpenAI
	}
	var d struct {
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
		Partial  string `json:"partial_json"`
	}
	if json.Unmarshal(delta, &d) != nil {
		return 0
	}
	return int64(len(d.Text) + len(d.Thinking) + len(d.Partial))
}

// chatDeltaBytes returns the length of all strings in the delta of a chat, because servers use various keys for
// reasoning.
func chatDeltaBytes(delta json.RawMessage) int64 {
	if len(delta) == 0 {
		return 0
	}
	var all any
	if json.Unmarshal(delta, &all) != nil {
		return 0
	}
	return stringBytes(all)
}

// stringBytes adds up the lengths of the strings in a value, except roles, IDs and types.
func stringBytes(v any) (n int64) {
	switch v := v.(type) {
	case string:
		return int64(len(v))
	case []any:
		for _, e := range v {
			n += stringBytes(e)
		}
	case map[string]any:
		for key, e := range v {
			if key != "role" && key != "id" && key != "type" {
				n += stringBytes(e)
			}
		}
	}
	return n
}
