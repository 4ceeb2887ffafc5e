package secretscan

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	ahocorasick "github.com/BobuSumisu/aho-corasick"
)

// MinKnown is the length in bytes below which a known value is not looked for.
const MinKnown = 8

// knownHead is how many bytes of a known form the trie has: a trie takes two kilobytes for each, and a private
// key has tens of thousands in all its forms. The rest of a form is compared where its head was found.
const knownHead = 24

// knownPart is how many bytes of a known form tell it at the border of a text that was cut.
const knownPart = 12

// knownSet finds literal values, as they are and as they look in common encodings.
type knownSet struct {
	trie  *ahocorasick.Trie // nil when there is nothing to look for
	tails [][]string        // by pattern of the trie: what may follow it, "" if nothing has to
	// firsts and lasts are the forms by their first and last bytes, longest the length of the longest.
	firsts, lasts map[string][]string
	longest       int
}

func newKnownSet(values []string) knownSet {
	var forms []string
	for _, value := range values {
		value = strings.TrimSpace(value)
		if len(value) < MinKnown {
			continue
		}
		forms = append(forms, encodings(value)...)
	}
	if len(forms) == 0 {
		return knownSet{}
	}
	slices.Sort(forms)
	var heads []string
	var tails [][]string
	for _, form := range slices.Compact(forms) {
		head, tail := form[:min(len(form), knownHead)], form[min(len(form), knownHead):]
		if n := len(heads); n > 0 && heads[n-1] == head { // sorted: those of one head come one after the other
			tails[n-1] = append(tails[n-1], tail)
			continue
		}
		heads, tails = append(heads, head), append(tails, []string{tail})
	}
	k := knownSet{trie: ahocorasick.NewTrieBuilder().AddStrings(heads).Build(), tails: tails, firsts: map[string][]string{}, lasts: map[string][]string{}}
	for _, form := range slices.Compact(forms) {
		if len(form) > knownPart {
			first, last := form[:knownPart], form[len(form)-knownPart:]
			k.firsts[first], k.lasts[last] = append(k.firsts[first], form), append(k.lasts[last], form)
			k.longest = max(k.longest, len(form))
		}
	}
	return k
}

// findCut finds what a text begins or ends with if it was cut out of a longer one within a known value.
func (k knownSet) findCut(text string) []Finding {
	var found []Finding
	for end := min(len(text), k.longest-1); end >= knownPart; end-- {
		if slices.ContainsFunc(k.lasts[text[end-knownPart:end]], func(form string) bool { return strings.HasSuffix(form, text[:end]) }) {
			found = append(found, Finding{Rule: RuleKnown, Start: 0, End: end})
			break
		}
	}
	for start := max(0, len(text)-k.longest+1); start <= len(text)-knownPart; start++ {
		if slices.ContainsFunc(k.firsts[text[start:start+knownPart]], func(form string) bool { return strings.HasPrefix(form, text[start:]) }) {
			return append(found, Finding{Rule: RuleKnown, Start: start, End: len(text)})
		}
	}
	return found
}

// encodings returns the value and the forms in which it could be smuggled or logged: JSON and URL
// escapes, hex, base64 at each of the three alignments, and for a multi-line value (a PEM key) its
// long lines one by one.
func encodings(value string) []string {
	forms := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	forms = append(forms, url.QueryEscape(value), url.PathEscape(value))
	if quoted, err := json.Marshal(value); err == nil {
		forms = append(forms, string(quoted[1:len(quoted)-1]))
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for pad := range 3 {
			forms = append(forms, base64Middle(enc, value, pad))
		}
	}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			if len(line) >= 2*MinKnown && !strings.HasPrefix(line, "-----") {
				forms = append(forms, line)
			}
		}
	}
	return slices.DeleteFunc(forms, func(f string) bool { return len(f) < MinKnown })
}

// base64Middle encodes value as it looks when pad bytes stand before it, without the first and
// last characters that depend on the neighbours.
func base64Middle(enc *base64.Encoding, value string, pad int) string {
	whole := enc.EncodeToString(append(make([]byte, pad), value...))
	first := []int{0, 2, 3}[pad]
	end := len(whole)
	if (len(value)+pad)%3 != 0 {
		end--
	}
	if first >= end {
		return ""
	}
	return whole[first:end]
}

func (k knownSet) find(text string) []Finding {
	if k.trie == nil {
		return nil
	}
	var found []Finding
	for _, m := range k.trie.MatchString(text) {
		start := int(m.Pos())
		end := start + len(m.Match())
		for _, tail := range k.tails[m.Pattern()] {
			if strings.HasPrefix(text[end:], tail) {
				found = append(found, Finding{Rule: RuleKnown, Start: start, End: end + len(tail)})
			}
		}
	}
	return found
}
