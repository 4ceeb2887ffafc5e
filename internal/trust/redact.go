package trust

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/secretscan"
)

// Redactor blanks secrets in what leaves us: comments, logs, transcripts, pages. It knows the
// values that it was given, in common encodings, and the pattern library. It changes by Learn only, and
// is safe for concurrent use.
type Redactor struct {
	patterns *secretscan.Patterns
	known    []string
	scanner  *secretscan.Scanner
}

// NewRedactor makes a redactor. Known values shorter than secretscan.MinKnown bytes are not looked
// for. Without patterns only known values are.
func NewRedactor(patterns *secretscan.Patterns, known ...string) *Redactor {
	known = slices.Clone(known)
	return &Redactor{patterns: patterns, known: known, scanner: secretscan.New(patterns, known...)}
}

// Learn has the redactor blank further values from now on, such as tokens that were renewed. What With returned
// before does not learn them.
func (r *Redactor) Learn(values ...string) { r.scanner.Learn(values...) }

// With returns a redactor that knows further values, such as a token made for one task.
func (r *Redactor) With(values ...string) *Redactor {
	return NewRedactor(r.patterns, slices.Concat(r.known, values)...)
}

// redactPasses bounds how often the result is looked at again, which matters only if a known value
// occurs in the words that stand for a secret.
const redactPasses = 3

// Redact returns text with "[redacted: RULE]" in place of each secret, and how many there were. A
// text without secrets comes back as it is, without a copy. Whoever cuts a text redacts it first; where that was done
// elsewhere, what is left of a secret at the cut is blanked, as far as it can be told.
func (r *Redactor) Redact(text string) (string, int) {
	total := 0
	for range redactPasses {
		found := r.scanner.FindCut(text)
		if len(found) == 0 {
			break
		}
		if total == 0 {
			total = len(found)
		}
		text = replaceFindings(text, found)
	}
	return text, total
}

func replaceFindings(text string, found []secretscan.Finding) string {
	var out strings.Builder
	at := 0
	for _, f := range found {
		out.WriteString(text[at:f.Start])
		fmt.Fprintf(&out, "[redacted: %s]", f.Rule)
		at = f.End
	}
	out.WriteString(text[at:])
	return out.String()
}

// Lines redacts a stream line by line. Besides Redact it blanks private keys whose lines come one
// at a time. It is for one goroutine.
type Lines struct {
	redactor *Redactor
	keyLines int // lines of an open private key so far, 0 outside one
}

// maxKeyLines is how long a private key may be before we take its beginning for a mistake.
const maxKeyLines = 200

// Lines starts a stream.
func (r *Redactor) Lines() *Lines { return &Lines{redactor: r} }

// Line returns the next line, given without its line end, with its secrets blanked. A line of JSON is read by itself:
// what it holds of a key has no line ends, and it has to stay JSON.
func (l *Lines) Line(line string) string {
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		clean, _ := l.redactor.Redact(line)
		return clean
	}
	const mark = "[redacted: private-key-block]"
	if l.keyLines > 0 {
		l.keyLines++
		if at := strings.Index(line, "-----END "); at >= 0 || l.keyLines > maxKeyLines {
			l.keyLines = 0
		}
		return mark
	}
	if at := strings.LastIndex(line, "-----BEGIN "); at >= 0 && strings.Contains(line[at:], "PRIVATE KEY") && !strings.Contains(line[at:], "-----END ") {
		l.keyLines = 1
		clean, _ := l.redactor.Redact(line[:at])
		return clean + mark
	}
	clean, _ := l.redactor.Redact(line)
	return clean
}
