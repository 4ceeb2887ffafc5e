package agent

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// RecoverOutcome recovers the conclusion, question and title from an errand block that [ParseOutcome] refuses. The kind is
// empty if it cannot be recovered. block is the last block as written.
func RecoverOutcome(text string) (o Outcome, block string) {
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

// unreadField returns the text after a field's name, up to the next field or the end of the block. Quotes in it may be
// the reason why the block is invalid.
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

// unescape resolves the escapes of a JSON string if all of them are valid.
func unescape(s string) string {
	var out string
	quoted := `"` + strings.NewReplacer("\n", `\n`, "\r", "", "\t", `\t`).Replace(loneQuote.ReplaceAllString(s, `$1\"`)) + `"`
	if json.Unmarshal([]byte(quoted), &out) != nil {
		return s
	}
	return out
}

// loneQuote matches an unescaped quote and the character before it.
var loneQuote = regexp.MustCompile(`(^|[^\\])"`)
