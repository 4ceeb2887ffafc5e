package pushgate

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Settings are the gate settings of the operator or of a repository. The operator's are the ceiling: a repository can
// lower limits, protect more paths, and withdraw the operator's exceptions.
type Settings struct {
	// SecretsAllowedIn holds globs (with ** and {a,b}) of paths in which text that looks like a secret is allowed, such
	// as made-up keys in test data. Known values are refused everywhere. For a repository, nil means the operator's
	// list.
	SecretsAllowedIn []string
	// MaxPaths is the maximum number of changed paths. 0 means the operator's value, and for the operator
	// [DefaultMaxPaths].
	MaxPaths int
	// MaxBytes is the maximum size of new content in bytes. 0 means the operator's value, and for the operator
	// [DefaultMaxBytes].
	MaxBytes int64
	// Protected holds globs of paths that may not be changed.
	Protected []string
	// Unprotected holds globs of paths that may be changed although the operator or [DefaultProtected] protects them.
	// For a repository, nil means the operator's list.
	Unprotected []string
}

// CheckGlobs returns an error with the first invalid glob, or nil. [Judge] refuses every change while a policy contains
// an invalid glob.
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

// matchesExactly reports whether a glob matches the path as written. Exceptions do not extend to look-alikes.
func matchesExactly(globs []string, path string) bool {
	for _, glob := range globs {
		if ok, err := doublestar.Match(glob, path); err == nil && ok {
			return true
		}
	}
	return false
}

// A suggestion is a change of settings that would make a refused change acceptable.
type suggestion struct {
	key, value string // value in YAML
	operator   bool   // whether it is the operator's setting
}

// withSuggestions appends suggestions, all of which are needed, to a remedy.
func withSuggestions(remedy string, needed ...suggestion) string {
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

// maxSuggestedChars bounds the list that a refusal suggests, to fit into a comment.
const maxSuggestedChars = 160

// yamlList formats a list as YAML on one line. ok is false if it is too long or cannot be shown in a comment.
func yamlList(globs []string) (string, bool) {
	quoted := make([]string, 0, len(globs))
	for _, glob := range globs {
		if !utf8.ValidString(glob) || strings.ContainsFunc(glob, func(r rune) bool { return !unicode.IsPrint(r) || r == '`' }) {
			return "", false
		}
		text, err := json.Marshal(glob) // strings always encode, and JSON strings are valid YAML
		if err != nil {
			return "", false
		}
		quoted = append(quoted, string(text))
	}
	out := "[" + strings.Join(quoted, ", ") + "]"
	return out, len(out) <= maxSuggestedChars
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
