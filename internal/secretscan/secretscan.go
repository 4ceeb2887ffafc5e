// Package secretscan finds secrets in text: values that we know, and what the gitleaks pattern
// library knows how to recognise.
//
// It serves two masters: internal/pushgate, which refuses commits that add a secret, and
// internal/trust, which blanks secrets in everything that leaves us. It uses gitleaks' rules but
// not its detector: that one reports lines instead of byte ranges, obeys a "gitleaks:allow" remark
// that the author of the text may have written, and is too slow for every line of a log.
//
// It decides nothing and prints nothing; a Finding holds positions, never the secret. Start
// reading at LoadPatterns and Scanner.
package secretscan

import (
	"slices"
	"sort"
	"strings"
)

// Finding is one secret's place in a text.
type Finding struct {
	// Rule names what was recognised: a rule of the pattern library, or RuleKnown.
	Rule string
	// Start and End are the secret's byte range in the text, End exclusive.
	Start, End int
}

// RuleKnown is the rule of a finding that equals one of the known values, in some encoding.
const RuleKnown = "known-value"

// Known reports whether the finding is one of the values that the scanner was told.
func (f Finding) Known() bool { return f.Rule == RuleKnown }

// Line returns the 1-based number of the line on which the finding starts in text.
func (f Finding) Line(text string) int { return 1 + strings.Count(text[:f.Start], "\n") }

// Scanner finds known values and library patterns. It changes by Learn only, and is safe for concurrent use.
type Scanner struct {
	patterns *Patterns
	known    knownSet
	learned  learned
}

// New makes a scanner over loaded patterns and the given known values. Values shorter than
// MinKnown bytes are left out, because they would match ordinary words. It is cheap: call it per
// task if tasks have values of their own. A nil patterns means known values only.
func New(patterns *Patterns, known ...string) *Scanner {
	return &Scanner{patterns: patterns, known: newKnownSet(known)}
}

// Find returns the secrets in text, ordered by position and without overlap: where two overlap,
// the range is their union and the rule is that of the first, a known value before a pattern.
func (s *Scanner) Find(text string) []Finding { return s.FindIn("", text) }

// FindIn is Find for the content of a file: some patterns apply to, or leave out, certain paths
// (such as lock files). Known values are found whatever the path.
func (s *Scanner) FindIn(path, text string) []Finding {
	found := append(s.known.find(text), s.learned.find(text)...)
	if s.patterns != nil && !isBinary(text) {
		found = append(found, s.patterns.find(path, text)...)
	}
	return merge(found)
}

// FindCut is Find for a text that may have been cut out of a longer one: at its beginning and end a part of a known
// value counts, at its end also a part of a token that its first letters tell, and of a private key the lines that
// are there.
func (s *Scanner) FindCut(text string) []Finding {
	found := append(s.Find(text), s.known.findCut(text)...)
	found = append(found, s.learned.findCut(text)...)
	if s.patterns != nil && !isBinary(text) {
		for _, r := range s.patterns.cut {
			if slices.ContainsFunc(r.keywords, func(word string) bool { return strings.Contains(text, word) }) {
				found = append(found, s.patterns.findRule(r.rule, "", text)...)
			}
		}
	}
	return merge(found)
}

// isBinary uses git's own rule: a NUL in the first 8000 bytes. Patterns mean nothing there.
func isBinary(text string) bool {
	if len(text) > 8000 {
		text = text[:8000]
	}
	return strings.IndexByte(text, 0) >= 0
}

// merge orders findings and joins those that overlap.
func merge(found []Finding) []Finding {
	if len(found) < 2 {
		return found
	}
	sort.SliceStable(found, func(i, j int) bool {
		a, b := found[i], found[j]
		switch {
		case a.Start != b.Start:
			return a.Start < b.Start
		case a.Known() != b.Known():
			return a.Known()
		}
		return a.End > b.End
	})
	out := found[:1]
	for _, f := range found[1:] {
		last := &out[len(out)-1]
		if f.Start >= last.End {
			out = append(out, f)
			continue
		}
		last.End = max(last.End, f.End)
		if f.Known() {
			last.Rule = RuleKnown
		}
	}
	return out
}
