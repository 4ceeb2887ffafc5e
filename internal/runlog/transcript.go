package runlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

// ShownLength is the number of characters of one text that are shown in logs, comments and pages. Files contain the
// whole text.
const ShownLength = 2000

// Cut shortens a text to at most limit characters and appends the number of dropped ones.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	count := utf8.RuneCountInString(text)
	if count <= limit {
		return text
	}
	end := 0
	for range max(limit, 0) {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return fmt.Sprintf("%s… (%d more)", text[:end], count-max(limit, 0))
}

// Header is the first record of a transcript: the input of the agent. The caller must have redacted the prompts.
type Header struct {
	Version int       `json:"version"`
	Run     string    `json:"run"`
	Task    string    `json:"task"`
	Step    string    `json:"step,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Started time.Time `json:"started"`
	System  string    `json:"system"`
	User    string    `json:"user"`
	// Withheld lists the context that the agent was not shown, one sentence each.
	Withheld []string `json:"withheld,omitempty"`
}

// transcriptVersion is the version of the file format.
const transcriptVersion = 1

// Entry is one record of a transcript after its header: a raw line with the events that the adapter derived from it,
// the end of the run, or the number of dropped records.
type Entry struct {
	Line    *Line    `json:"line,omitempty"`
	Events  []Event  `json:"events,omitempty"`
	End     *End     `json:"end,omitempty"`
	Dropped *Dropped `json:"dropped,omitempty"`
}

// Transcript writes one run's transcript as JSON lines. It is not safe for concurrent use; the owner of the file is
// responsible for durability.
type Transcript struct {
	w io.Writer
}

// NewTranscript starts a transcript with its header, whose Version it sets.
func NewTranscript(w io.Writer, h Header) (*Transcript, error) {
	h.Version = transcriptVersion
	t := &Transcript{w: w}
	if err := json.NewEncoder(w).Encode(h); err != nil {
		return nil, fmt.Errorf("write transcript header: %w", err)
	}
	return t, nil
}

// ContinueTranscript continues a transcript whose header is already written, for example after a restart. It starts a
// new line, because the last one may be incomplete.
func ContinueTranscript(w io.Writer) (*Transcript, error) {
	if _, err := io.WriteString(w, "\n"); err != nil {
		return nil, fmt.Errorf("continue transcript: %w", err)
	}
	return &Transcript{w: w}, nil
}

// Add appends one entry. After an error, such as on a full disk, it may be called again.
func (t *Transcript) Add(e Entry) error {
	if err := json.NewEncoder(t.w).Encode(e); err != nil { // a new encoder each time, because an encoder keeps its error
		return fmt.Errorf("write transcript: %w", err)
	}
	return nil
}

// ReadTranscript reads a transcript and calls entry for each of its entries, in order. It skips an entry that was
// truncated by a crash. An error of entry stops the reading and is returned.
func ReadTranscript(r io.Reader, entry func(Entry) error) (Header, error) {
	var h Header
	reader := bufio.NewReader(r)
	first, err := reader.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return h, fmt.Errorf("read transcript header: %w", err)
	}
	if err := json.Unmarshal(first, &h); err != nil {
		return h, fmt.Errorf("read transcript header: %w", err)
	}
	if h.Version != transcriptVersion {
		return h, fmt.Errorf("read transcript header: version %d is unknown", h.Version)
	}
	for {
		data, err := reader.ReadBytes('\n')
		var e Entry
		if json.Unmarshal(data, &e) == nil {
			if err := entry(e); err != nil {
				return h, err
			}
		}
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return h, fmt.Errorf("read transcript: %w", err)
		}
	}
}
