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

// MinKnown is the minimum length of a known value in bytes. Shorter values are ignored.
const MinKnown = 8

// knownHead is the number of bytes of a known form that are put into the trie. A trie takes two kilobytes for each
// byte, and a private key has tens of thousands of bytes in all its forms, so the rest of a form is compared only where
// its head was found.
const knownHead = 24

// knownPart is the minimum number of bytes of a known form that count at the edge of a truncated text.
const knownPart = 12

// knownSet finds literal values in plain and in common encodings.
type knownSet struct {
	trie  *ahocorasick.Trie // nil if there are no values
	tails [][]string        // by pattern of the trie: the possible remainders, "" if the head is the whole form
	// firsts and lasts index the forms by their first and last knownPart bytes; longest is the length of the longest
	// form.
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
		forms = append(forms, encodedForms(value)...)
	}
	if len(forms) == 0 {
		return knownSet{}
	}
	slices.Sort(forms)
	var heads []string
	var tails [][]string
	for _, form := range slices.Compact(forms) {
		head, tail := form[:min(len(form), knownHead)], form[min(len(form), knownHead):]
		if n := len(heads); n > 0 && heads[n-1] == head { // forms are sorted, so those with the same head are adjacent
			tails[n-1] = append(tails[n-1], tail)
			continue
		}
		heads, tails = append(heads, head), append(tails, []string{tail})
	}
	k := knownSet{
		trie:   ahocorasick.NewTrieBuilder().AddStrings(heads).Build(),
		tails:  tails,
		firsts: map[string][]string{},
		lasts:  map[string][]string{},
	}
	for _, form := range slices.Compact(forms) {
		if len(form) > knownPart {
			first, last := form[:knownPart], form[len(form)-knownPart:]
			k.firsts[first], k.lasts[last] = append(k.firsts[first], form), append(k.lasts[last], form)
			k.longest = max(k.longest, len(form))
		}
	}
	return k
}

// findCut finds the parts of known values at the beginning and end of a truncated text.
func (k knownSet) findCut(text string) []Finding {
	var found []Finding
	for end := min(len(text), k.longest-1); end >= knownPart; end-- {
		if slices.ContainsFunc(k.lasts[text[end-knownPart:end]], func(form string) bool { return strings.HasSuffix(form, text[:end]) }) {
			found = append(found, Finding{Rule: RuleKnown, Start: 0, End: end})
			break
		}
	}
	for start := max(0, len(text)-k.longest+1); start <= len(text)-knownPart; start++ {
		continues := func(form string) bool { return strings.HasPrefix(form, text[start:]) }
		if slices.ContainsFunc(k.firsts[text[start:start+knownPart]], continues) {
			return append(found, Finding{Rule: RuleKnown, Start: start, End: len(text)})
		}
	}
	return found
}

// encodedForms returns the value and the forms in which it could be smuggled or logged: JSON and URL escapes, hex,
// base64 at each of the three alignments, and, for a multi-line value such as a PEM key, each of its long lines.
func encodedForms(value string) []string {
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

// base64Middle encodes value as if pad bytes preceded it, without the first and last characters, which depend on the
// neighboring bytes.
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
