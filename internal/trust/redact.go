package trust

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/secretscan"
)

// A Redactor replaces secrets in errand's output: comments, logs, transcripts, pages. It finds known values in common
// encodings and the patterns of the library. Only Learn changes it. It is safe for concurrent use.
type Redactor struct {
	scanner *secretscan.Scanner
}

// NewRedactor returns a redactor. It ignores known values shorter than secretscan.MinKnown bytes. Without patterns it
// only finds known values.
func NewRedactor(patterns *secretscan.Patterns, known ...string) *Redactor {
	return &Redactor{scanner: secretscan.New(patterns, known...)}
}

// Learn adds known values, such as renewed tokens.
func (r *Redactor) Learn(values ...string) { r.scanner.Learn(values...) }

// redactPasses limits repeated passes, which are only necessary if a known value occurs in the replacement text.
const redactPasses = 3

// Redact returns text with each secret replaced by "[redacted: RULE]", and the number of secrets. It returns a text
// without secrets unchanged and without a copy. Redact a text before you cut it; of a text cut elsewhere, Redact also
// removes recognizable parts of secrets at the cut.
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

// Lines redacts a stream line by line. In addition to Redact it removes private keys that span lines. It is for a
// single goroutine.
type Lines struct {
	redactor *Redactor
	keyLines int // lines of the current private key so far, 0 outside one
}

// maxKeyLines is the length from which an apparent private key is treated as a false match.
const maxKeyLines = 200

// Lines starts a stream.
func (r *Redactor) Lines() *Lines { return &Lines{redactor: r} }

// Line returns the redacted next line, without line end. A line of JSON is treated separately: a key in it has no line
// ends, and the result must be valid JSON.
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
