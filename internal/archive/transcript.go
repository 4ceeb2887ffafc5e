package archive

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runlog"
)

// WithTranscripts returns the folder with a limit on the size of each transcript in bytes; 0 means none. A transcript
// beyond it loses its oldest records, and records how many.
func (d *Dir) WithTranscripts(most int64) *Dir {
	other := *d
	other.maxTranscript = most
	return &other
}

// WithLines returns the folder with a redactor for the lines of a transcript. A new one is created for each stream,
// because it may track a secret that spans several lines.
func (d *Dir) WithLines(lines func() func(line string) string) *Dir {
	other := *d
	other.lines = lines
	return &other
}

// BeginTranscript writes the header of a run's transcript. It does nothing if the transcript exists.
func (d *Dir) BeginTranscript(run string, h runlog.Header) error {
	path, err := d.file("transcripts", run, ".jsonl")
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	var buf bytes.Buffer
	if _, err := runlog.NewTranscript(&buf, h); err != nil {
		return fmt.Errorf("begin transcript: %w", err)
	}
	return durable.WriteFile(path, buf.Bytes(), 0o600)
}

// Transcript appends to a run's transcript. It ignores lines that it already contains.
type Transcript struct {
	d         *Dir
	path      string
	mu        sync.Mutex
	file      *os.File
	out       *runlog.Transcript
	last      int64       // number of the last line
	end       *runlog.End // the newest end, nil if there is none
	size      int64
	shortenAt int64 // the size at which it is shortened next; 0 means never
	// streams redact the lines of each stream. They are stateful, so each line is passed to them once: cleaned is the
	// result for line cleanedSeq, in case it could not be written at first.
	streams    map[runlog.Stream]func(string) string
	cleanedSeq int64
	cleaned    string
}

// cleanLine redacts a line.
func (t *Transcript) cleanLine(l runlog.Line) string {
	if t.d.lines == nil {
		return t.d.clean(l.Text)
	}
	if t.streams[l.Stream] == nil {
		t.streams[l.Stream] = t.d.lines()
	}
	return t.streams[l.Stream](l.Text)
}

// Transcript opens a run's transcript to append to it.
func (d *Dir) Transcript(run string) (*Transcript, error) {
	path, err := d.file("transcripts", run, ".jsonl")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(path + shortened) // left by a dead process; its source is complete
	t := &Transcript{d: d, path: path, shortenAt: d.maxTranscript, streams: map[runlog.Stream]func(string) string{}}
	if err := t.restoreState(); err != nil {
		return nil, err
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	return t, nil
}

// open opens the file at its end.
func (t *Transcript) open() error {
	f, err := os.OpenFile(t.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	t.file = f
	t.out, err = runlog.ContinueTranscript(countingWriter{t})
	if err != nil {
		return errors.Join(fmt.Errorf("continue transcript: %w", err), f.Close())
	}
	return nil
}

// countingWriter writes to the file and tracks its size.
type countingWriter struct{ t *Transcript }

func (c countingWriter) Write(p []byte) (int, error) {
	n, err := c.t.file.Write(p)
	c.t.size += int64(n)
	return n, err
}

// restoreState finds the last complete line and the end of a transcript, and removes an incomplete record.
func (t *Transcript) restoreState() error {
	f, err := os.OpenFile(t.path, os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open transcript: %w", err)
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return f.Truncate(t.size)
		}
		if err != nil {
			return fmt.Errorf("read transcript: %w", err)
		}
		t.size += int64(len(line))
		var e runlog.Entry
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		if e.Line != nil && e.Line.Seq > t.last {
			t.last = e.Line.Seq
		}
		if e.End != nil {
			t.end = e.End
		}
	}
}

// Add appends a line with its events.
func (t *Transcript) Add(l runlog.Line, events []runlog.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.Seq <= t.last {
		return nil
	}
	if l.Seq != t.cleanedSeq {
		t.cleanedSeq, t.cleaned = l.Seq, t.cleanLine(l)
	}
	l.Text = t.cleaned
	written, err := t.add(runlog.Entry{Line: &l, Events: t.d.cleaned(events)})
	if written {
		t.last = l.Seq
	}
	return err
}

// End appends the outcome of the run. If it is called with different outcomes, the last one counts; repeating the same
// outcome has no effect, so End may be repeated after a crash. When it returns nil, the whole transcript is on disk.
func (t *Transcript) End(e runlog.End) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Message = t.d.clean(e.Message)
	if t.end != nil && t.end.SameOutcome(e) {
		return nil
	}
	if _, err := t.add(runlog.Entry{End: &e}); err != nil {
		return err
	}
	if err := t.file.Sync(); err != nil {
		return fmt.Errorf("sync transcript: %w", err)
	}
	t.end = &e
	return nil
}

// add appends an entry, and shortens the file if it has become too large. An incompletely written entry is removed.
// written reports whether the entry was stored, even if the file could not be shortened.
func (t *Transcript) add(e runlog.Entry) (written bool, err error) {
	before := t.size
	if err := t.out.Add(e); err != nil {
		if t.size > before && t.file.Truncate(before) == nil {
			t.size = before
		}
		return false, fmt.Errorf("append to transcript: %w", err)
	}
	if t.shortenAt == 0 || t.size <= t.shortenAt {
		return true, nil
	}
	return true, t.shorten()
}

// cleaned returns redacted copies of the events. The caller still uses the original ones.
func (d *Dir) cleaned(events []runlog.Event) []runlog.Event {
	events = slices.Clone(events)
	for i := range events {
		e := &events[i]
		for _, text := range []*string{&e.Text, &e.Input, &e.ToolName, &e.ToolID, &e.Session, &e.Model} {
			if *text != "" {
				*text = d.clean(*text)
			}
		}
	}
	return events
}

// Close closes the file.
func (t *Transcript) Close() error { return t.file.Close() }

// OpenTranscript opens a run's transcript for reading, possibly while it grows. A shortened transcript is a new file;
// the opened one then no longer grows.
func (d *Dir) OpenTranscript(run string) (*os.File, error) {
	path, err := d.file("transcripts", run, ".jsonl")
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
