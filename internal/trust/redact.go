package trust

import (
	"bytes"
	"fmt"
	"io"
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
// text without secrets comes back as it is, without a copy.
func (r *Redactor) Redact(text string) (string, int) {
	total := 0
	for range redactPasses {
		found := r.scanner.Find(text)
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

// Line returns the next line, given without its line end, with its secrets blanked.
func (l *Lines) Line(line string) string {
	const mark = "[redacted: private-key-block]"
	if l.keyLines > 0 {
		l.keyLines++
		if at := strings.Index(line, "-----END "); at >= 0 || l.keyLines > maxKeyLines {
			l.keyLines = 0
		}
		return mark
	}
	clean, _ := l.redactor.Redact(line)
	at := strings.Index(clean, "-----BEGIN ")
	if at >= 0 && strings.Contains(clean[at:], "PRIVATE KEY") && !strings.Contains(clean[at:], "-----END ") {
		l.keyLines = 1
		return clean[:at] + mark
	}
	return clean
}

// Writer returns a writer that redacts whole lines before it passes them on to w. Close passes on
// what is left of the last line; it does not close w. It is for one goroutine.
func (r *Redactor) Writer(w io.Writer) io.WriteCloser {
	return &lineWriter{lines: r.Lines(), out: w}
}

// A line that grows beyond maxLine is passed on in parts; keepBack of it stay, so that no secret is
// cut in two unseen.
const (
	maxLine  = 64 << 10
	keepBack = 8 << 10
)

type lineWriter struct {
	lines *Lines
	out   io.Writer
	rest  []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	var out bytes.Buffer
	for {
		end := bytes.IndexByte(w.rest, '\n')
		if end < 0 {
			break
		}
		out.WriteString(w.lines.Line(string(w.rest[:end])))
		out.WriteByte('\n')
		w.rest = w.rest[end+1:]
	}
	if len(w.rest) > maxLine {
		cut := w.cut(string(w.rest))
		out.WriteString(w.lines.Line(string(w.rest[:cut])))
		w.rest = w.rest[cut:]
	}
	w.rest = bytes.Clone(w.rest)
	if _, err := w.out.Write(out.Bytes()); err != nil {
		return 0, fmt.Errorf("write redacted output: %w", err)
	}
	return len(p), nil
}

// cut chooses where to part a long line: not within a secret.
func (w *lineWriter) cut(line string) int {
	at := len(line) - keepBack
	for _, f := range w.lines.redactor.scanner.Find(line) {
		if f.Start < at && at < f.End {
			return f.End
		}
	}
	return at
}

func (w *lineWriter) Close() error {
	if len(w.rest) == 0 {
		return nil
	}
	_, err := io.WriteString(w.out, w.lines.Line(string(w.rest)))
	w.rest = nil
	if err != nil {
		return fmt.Errorf("write redacted output: %w", err)
	}
	return nil
}
