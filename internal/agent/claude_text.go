package agent

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// blocks parses a content field: a string or a list of blocks. Anything else yields nil.
func blocks(raw json.RawMessage) []claudeBlock {
	if text := jsonText(raw); text != "" {
		return []claudeBlock{{Type: "text", Text: text}}
	}
	var list []claudeBlock
	if json.Unmarshal(raw, &list) != nil {
		// One block of an unexpected form must not hide the others.
		var each []json.RawMessage
		if json.Unmarshal(raw, &each) != nil {
			return nil
		}
		list = nil
		for _, one := range each {
			var b claudeBlock
			if json.Unmarshal(one, &b) == nil {
				list = append(list, b)
			}
		}
	}
	return list
}

// contentText joins the texts of a tool's result and inserts the types of other blocks.
func contentText(raw json.RawMessage) string {
	var texts []string
	for _, b := range blocks(raw) {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		} else {
			texts = append(texts, "["+b.Type+"]")
		}
	}
	return strings.Join(texts, "\n")
}

// jsonText returns the string that raw encodes, or "" if it is not a string.
func jsonText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// cutText returns at most limit bytes of valid UTF-8.
func cutText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

func clamp(v, low, high float64) float64 { return min(max(v, low), high) }
