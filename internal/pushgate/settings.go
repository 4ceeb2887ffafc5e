package pushgate

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Settings are one side's settings of the gate, the operator's or a repository's. The operator's are the ceiling:
// a repository can lower limits, protect more, and give up exceptions that the operator makes.
type Settings struct {
	// SecretsAllowedIn holds globs (with ** and {a,b}) of paths in which what looks like a secret does not count,
	// such as made-up keys in test data. Known values count everywhere. A repository's nil is the operator's list.
	SecretsAllowedIn []string
	// MaxPaths is the most paths that may differ; 0 is the operator's, and his DefaultMaxPaths.
	MaxPaths int
	// MaxBytes is the most bytes of new content; 0 is the operator's, and his DefaultMaxBytes.
	MaxBytes int64
	// Protected holds globs of paths that may not be changed.
	Protected []string
	// Unprotected holds globs of paths that may be changed although the operator or DefaultProtected protects
	// them. A repository's nil is the operator's list.
	Unprotected []string
}

// CheckGlobs returns an error that names the first glob that is not valid. Judge refuses every change while a
// policy holds one.
func CheckGlobs(globs []string) error {
	for _, glob := range globs {
		switch {
		case strings.HasPrefix(glob, "!"):
			return fmt.Errorf("glob %q begins with an exclamation mark; exceptions are written in gate.unprotected", glob)
		case glob == "" || !doublestar.ValidatePattern(glob):
			return fmt.Errorf("glob %q is not valid", glob)
		}
	}
	return nil
}

// matchesExactly reports whether a glob matches the path as it is written: an exception is made for no look-alike.
func matchesExactly(globs []string, path string) bool {
	for _, glob := range globs {
		if ok, err := doublestar.Match(glob, path); err == nil && ok {
			return true
		}
	}
	return false
}

// A suggestion is a change of settings that would let something pass.
type suggestion struct {
	key, value string // value in YAML
	operator   bool   // whose settings
}

// orSet continues a remedy with suggestions, all of which are needed.
func orSet(remedy string, needed ...suggestion) string {
	var parts []string
	for _, n := range needed {
		if n.operator {
			parts = append(parts, fmt.Sprintf("errand's operator can set `gate: {%s: %s}`", n.key, n.value))
			continue
		}
		parts = append(parts, fmt.Sprintf("`.errand.yml` of the default branch can say `gate: {%s: %s}`", n.key, n.value))
	}
	if len(parts) == 0 {
		return remedy
	}
	return remedy + "; or " + strings.Join(parts, ", and ") + ", then comment `retry`"
}

// maxSuggested is how long a list may be that a refusal suggests: a comment shows so much of it.
const maxSuggested = 160

// listOf writes a list in YAML, on one line; false if it is too long or cannot stand in a comment as it is.
func listOf(globs []string) (string, bool) {
	quoted := make([]string, 0, len(globs))
	for _, glob := range globs {
		if !utf8.ValidString(glob) || strings.ContainsFunc(glob, func(r rune) bool { return !unicode.IsPrint(r) || r == '`' }) {
			return "", false
		}
		text, err := json.Marshal(glob) // strings always encode; a YAML text may be written like this
		if err != nil {
			return "", false
		}
		quoted = append(quoted, string(text))
	}
	out := "[" + strings.Join(quoted, ", ") + "]"
	return out, len(out) <= maxSuggested
}

// globFor returns the glob that matches the path alone.
func globFor(path string) string {
	var b strings.Builder
	for _, r := range path {
		if strings.ContainsRune(`*?[]{}\!`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}
