// Package logview shows the transcripts of a task's runs as lines of text, or as JSON for programs.
//
// It reads the files beneath errand's data folder and nothing else, so that it works beside a running
// errand, after its end, and on a copy. What it shows was reported from VMs: control characters are
// taken out, and long texts are cut, which files are not. Start reading at Show.
package logview

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// Level says how much an event matters.
type Level int

// The levels, the least first.
const (
	Debug Level = iota // what tools gave back, thoughts, tokens
	Info               // what the agent says and does
	Warn               // retries, remarks of the runner, tools that failed
	Error              // an end that is none
)

// ParseLevel reads debug, info, warn or error.
func ParseLevel(s string) (Level, error) {
	for i, name := range []string{"debug", "info", "warn", "error"} {
		if s == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("level %q: write debug, info, warn or error", s)
}

// Query says what to show.
type Query struct {
	// Dir is errand's data folder.
	Dir string
	// Task is OWNER/REPO#N, as the repository was called when the run began; case does not matter.
	Task string
	// Run is the number of one run; 0 shows all.
	Run int
	// Since leaves out what is older.
	Since time.Time
	// Level leaves out what matters less.
	Level Level
	// Events prints each event as a line of JSON.
	Events bool
	// Follow goes on until ctx ends, also with runs that begin later.
	Follow bool
	// Every is the pause between two looks while following. Default 500 ms.
	Every time.Duration
}

// ErrNone says that there is nothing about a task.
var ErrNone = errors.New("there is no transcript of this task")

// maxLine bounds one record of a transcript; a longer one is left out with a remark.
const maxLine = 64 << 20

// Show prints what a query asks for. Following ends without an error when ctx does.
func Show(ctx context.Context, w io.Writer, q Query) error {
	if q.Every <= 0 {
		q.Every = 500 * time.Millisecond
	}
	v := view{q: q, out: w, files: map[string]*file{}}
	for {
		if err := v.look(); err != nil {
			return err
		}
		if !q.Follow {
			if len(v.files) == 0 {
				return fmt.Errorf("%w: %s (looked in %s)", ErrNone, q.Task, v.dir())
			}
			return nil
		}
		timer := time.NewTimer(q.Every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// view is one showing.
type view struct {
	q     Query
	out   io.Writer
	files map[string]*file // of the task, by path; nil for those of others
	other map[string]bool
}

// file is one run's transcript and how far it was shown.
type file struct {
	path string
	seq  int
	head runlog.Header
	read int64
	told bool        // its beginning was shown
	info os.FileInfo // what was read; another one has come into its place when it was shortened
	last int64       // number of the last line that was met
	end  runlog.End  // the newest that was met
	said string      // the newest text of the agent's that was shown
}

// goOn puts in where the showing goes on. After a shortening that is behind the header: what was met
// before is known by its number.
func (f *file) goOn(in *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("look at a transcript: %w", err)
	}
	if f.info != nil && !os.SameFile(f.info, info) {
		first, err := bufio.NewReader(in).ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("read a transcript: %w", err)
		}
		f.read = int64(len(first))
	}
	f.info = info
	if _, err := in.Seek(f.read, io.SeekStart); err != nil {
		return fmt.Errorf("read a transcript: %w", err)
	}
	return nil
}

// met reports whether an entry was shown before the transcript was shortened, and remembers it.
func (f *file) met(e runlog.Entry) bool {
	switch {
	case e.Dropped != nil:
		return e.Dropped.Last <= f.last
	case e.Line != nil && e.Line.Seq > 0:
		old := e.Line.Seq <= f.last
		f.last = max(f.last, e.Line.Seq)
		return old
	case e.End != nil:
		old := f.end.Same(*e.End)
		f.end = *e.End
		return old
	}
	return false
}

func (v *view) dir() string { return filepath.Join(v.q.Dir, "transcripts") }

// look shows what has come since the last look.
func (v *view) look() error {
	entries, err := os.ReadDir(v.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is no data folder of errand", ErrNone, v.q.Dir)
	}
	if err != nil {
		return fmt.Errorf("list transcripts: %w", err)
	}
	for _, e := range entries {
		if err := v.meet(e.Name()); err != nil {
			return err
		}
	}
	list := make([]*file, 0, len(v.files))
	for _, f := range v.files {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *file) int { return cmp.Or(a.head.Started.Compare(b.head.Started), a.seq-b.seq) })
	for _, f := range list {
		if err := v.show(f); err != nil {
			return err
		}
	}
	return nil
}

// meet takes a file in if it is a transcript of the task.
func (v *view) meet(name string) error {
	run, ok := strings.CutSuffix(name, ".jsonl")
	path := filepath.Join(v.dir(), name)
	if !ok || v.files[path] != nil || v.other[path] {
		return nil
	}
	seq, err := strconv.Atoi(run[strings.LastIndexByte(run, '-')+1:])
	if err != nil {
		return nil
	}
	in, err := os.Open(path)
	if err != nil {
		return nil // it was pruned a moment ago
	}
	defer func() { _ = in.Close() }()
	first, err := bufio.NewReader(in).ReadBytes('\n')
	if err != nil {
		return nil // its header is being written
	}
	info, err := in.Stat()
	if err != nil {
		return nil
	}
	f := &file{path: path, seq: seq, read: int64(len(first)), info: info}
	if json.Unmarshal(first, &f.head) != nil || !strings.EqualFold(f.head.Task, v.q.Task) || v.q.Run != 0 && v.q.Run != seq {
		if v.other == nil {
			v.other = map[string]bool{}
		}
		v.other[path] = true
		return nil
	}
	v.files[path] = f
	return nil
}

// began says what a run is.
func began(h runlog.Header) string {
	parts := []string{strings.ReplaceAll(h.Step, "_", " ")}
	for _, s := range []string{h.Agent, h.Model} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if n := len(h.Withheld); n > 0 {
		parts = append(parts, fmt.Sprintf("withheld from it: %d", n))
	}
	return strings.Join(parts, ", ")
}

// show prints what was added to a transcript.
func (v *view) show(f *file) error {
	in, err := os.Open(f.path)
	if err != nil {
		return nil // pruned
	}
	defer func() { _ = in.Close() }()
	if err := f.goOn(in); err != nil {
		return err
	}
	if !f.told && !v.q.Events && !f.head.Started.Before(v.q.Since) {
		if err := v.print(f.head.Started, f.seq, "began: %s", began(f.head)); err != nil {
			return err
		}
	}
	f.told = true
	r := bufio.NewReaderSize(io.LimitReader(in, maxLine), 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil { // the rest is being written, or was cut by a crash
			if len(line) >= maxLine-(64<<10) {
				f.read += int64(len(line))
				return v.print(time.Time{}, f.seq, "a record of more than %d MB is left out", maxLine>>20)
			}
			return nil
		}
		f.read += int64(len(line))
		var e runlog.Entry
		if len(bytes.TrimSpace(line)) == 0 || json.Unmarshal(line, &e) != nil {
			continue
		}
		if f.met(e) {
			continue
		}
		if err := v.entry(f, e); err != nil {
			return err
		}
	}
}
