package cli

import (
	"encoding/json"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/runlog"
)

// JSONString returns the string that raw encodes, or "" if it is not a string.
func JSONString(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// Truncate returns at most limit bytes of valid UTF-8.
func Truncate(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// Clamp returns v, or the bound that it exceeds.
func Clamp(v, low, high float64) float64 { return min(max(v, low), high) }

// Tokens clamps an untrusted token count.
func Tokens(v float64) int64 {
	if math.IsNaN(v) {
		return 0
	}
	return int64(Clamp(v, 0, 1e12))
}

// LastLine returns the last non-empty line.
func LastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// Limits on the texts in an event, in bytes.
const (
	maxEventText = 16 << 10
	maxOwnText   = 256 << 10
)

// Notice returns an event with a truncated text.
func Notice(text string) runlog.Event {
	return runlog.Event{Kind: runlog.KindNotice, Text: Truncate(text, maxEventText)}
}

// MaxAnswer bounds the final answer in bytes; the runner keeps as much of a line.
const MaxAnswer = 4 << 20

// EventText truncates a text to the size of an event's texts.
func EventText(s string) string { return Truncate(s, maxEventText) }

// OwnText truncates a text of the agent to the size of its own words in an event.
func OwnText(s string) string { return Truncate(s, maxOwnText) }

// Usage returns untrusted token counts as a usage.
func Usage(input, output, cacheRead, cacheWrite float64) runlog.Usage {
	return runlog.Usage{Input: Tokens(input), Output: Tokens(output), CacheRead: Tokens(cacheRead), CacheWrite: Tokens(cacheWrite)}
}
