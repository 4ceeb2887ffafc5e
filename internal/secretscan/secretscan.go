// Package secretscan finds secrets in text: known values in common encodings, and the forms that the gitleaks pattern
// library recognizes.
//
// Two packages use it: internal/pushgate refuses commits that add a secret, and internal/trust redacts secrets in
// everything that errand publishes or logs. It uses gitleaks' rules but not its detector, which reports lines instead
// of byte ranges, honors a "gitleaks:allow" remark that the author of the text may have written, and is too slow for
// every line of a log.
//
// The package only reports. A [Finding] holds positions, never the secret.
//
// Start here: [LoadPatterns], then [New] and [Scanner.Find].
package secretscan

import (
	"slices"
	"sort"
	"strings"
)

// Finding is the place of one secret in a text.
type Finding struct {
	// Rule is the id of the matching rule of the pattern library, or [RuleKnown].
	Rule string
	// Start and End are the secret's byte range in the text, End exclusive.
	Start, End int
}

// RuleKnown is the rule of a finding that equals a known value in some encoding.
const RuleKnown = "known-value"

// Known reports whether the finding is one of the scanner's known values.
func (f Finding) Known() bool { return f.Rule == RuleKnown }

// Line returns the 1-based number of the line on which the finding starts in text.
func (f Finding) Line(text string) int { return 1 + strings.Count(text[:f.Start], "\n") }

// Scanner finds known values and library patterns. Only [Scanner.Learn] changes it; it is safe for concurrent use.
type Scanner struct {
	patterns *Patterns
	known    knownSet
	learned  learned
}

// New returns a scanner for the given patterns and known values. Values shorter than [MinKnown] bytes are ignored,
// because they would match ordinary words. New is cheap enough to be called per task. With nil patterns the scanner
// finds known values only.
func New(patterns *Patterns, known ...string) *Scanner {
	return &Scanner{patterns: patterns, known: newKnownSet(known)}
}

// Find returns the secrets in text, ordered by position and without overlap. Overlapping findings are joined; the
// joined finding has the rule of the first one, or [RuleKnown] if any is a known value.
func (s *Scanner) Find(text string) []Finding { return s.FindIn("", text) }

// FindIn is [Scanner.Find] for the content of a file: some patterns apply to certain paths only, or exempt paths such
// as lock files. Known values are found in every path.
func (s *Scanner) FindIn(path, text string) []Finding {
	found := append(s.known.find(text), s.learned.find(text)...)
	if s.patterns != nil && !isBinary(text) {
		found = append(found, s.patterns.find(path, text)...)
	}
	return joinOverlapping(found)
}

// FindCut is [Scanner.Find] for a text that may have been truncated. It also reports a part of a known value at the
// beginning or end, the beginning of a token with a recognizable prefix at the end, and the remaining lines of a
// private key.
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
	return joinOverlapping(found)
}

// isBinary uses git's own rule: a NUL in the first 8000 bytes. Patterns are meaningless in binary data.
func isBinary(text string) bool {
	if len(text) > 8000 {
		text = text[:8000]
	}
	return strings.IndexByte(text, 0) >= 0
}

// joinOverlapping sorts findings and joins those that overlap.
func joinOverlapping(found []Finding) []Finding {
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
