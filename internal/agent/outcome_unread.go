package agent

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Unread tells what it can of an errand block that ParseOutcome refuses: which conclusion stands in it, and the
// words of its question and title. The kind is empty if it cannot be told. Block is the last one as it was written.
func Unread(text string) (o Outcome, block string) {
	block, _, _ = cutBlock(text)
	if m := outcomeWord.FindStringSubmatch(block); m != nil {
		if kind := OutcomeKind(strings.ToLower(m[1])); slices.Contains(OutcomeKinds(), kind) {
			o.Kind = kind
		}
	}
	o.Question, o.Title = unreadField(block, "question"), unreadField(block, "title")
	return o, block
}

var (
	outcomeWord = regexp.MustCompile(`(?i)["'“”]?\boutcome\b["'“”]?\s*[:=]\s*["'“”]?\s*([a-z_]+)`)
	nextField   = regexp.MustCompile(`["'“”]?\s*,\s*["'“”]?(?:outcome|question|title|summary|changes|files|estimate|approaches|threads)["'“”]?\s*:`)
)

// unreadField returns what stands behind a field's name, up to the next field or the block's end: the quotes in
// it may be what makes the block unreadable.
func unreadField(block, name string) string {
	at := regexp.MustCompile(`(?i)["'“”]?\b` + name + `\b["'“”]?\s*:\s*["'“”]?`).FindStringIndex(block)
	if at == nil {
		return ""
	}
	rest := block[at[1]:]
	if next := nextField.FindStringIndex(rest); next != nil {
		rest = rest[:next[0]]
	}
	rest = strings.TrimRight(rest, " \t\r\n}")
	rest = strings.TrimRight(strings.TrimSuffix(rest, ","), "\"'“” \t\r\n")
	return strings.TrimSpace(unescape(rest))
}

// unescape resolves the escapes of a JSON string where all of them are right.
func unescape(s string) string {
	var out string
	quoted := `"` + strings.NewReplacer("\n", `\n`, "\r", "", "\t", `\t`).Replace(loneQuote.ReplaceAllString(s, `$1\"`)) + `"`
	if json.Unmarshal([]byte(quoted), &out) != nil {
		return s
	}
	return out
}

// loneQuote is a quote that is not escaped, with what stands before it.
var loneQuote = regexp.MustCompile(`(^|[^\\])"`)
