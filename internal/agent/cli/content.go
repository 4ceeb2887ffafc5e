package cli

import (
	"encoding/json"
	"strings"
)

// ContentBlocks parses a content field: a string or a list of blocks. Anything else yields nil.
func ContentBlocks(raw json.RawMessage) []ContentBlock {
	if text := JSONString(raw); text != "" {
		return []ContentBlock{{Type: "text", Text: text}}
	}
	var list []ContentBlock
	if json.Unmarshal(raw, &list) != nil {
		// One block of an unexpected form must not hide the others.
		var each []json.RawMessage
		if json.Unmarshal(raw, &each) != nil {
			return nil
		}
		list = nil
		for _, one := range each {
			var b ContentBlock
			if json.Unmarshal(one, &b) == nil {
				list = append(list, b)
			}
		}
	}
	return list
}

// ContentText joins the texts of a tool's result and inserts the types of other blocks.
func ContentText(raw json.RawMessage) string {
	var texts []string
	for _, b := range ContentBlocks(raw) {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		} else {
			texts = append(texts, "["+b.Type+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// ContentBlock is one content block.
type ContentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}
