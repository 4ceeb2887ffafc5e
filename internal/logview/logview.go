// Package logview prints the transcripts of a task's runs as text, or as JSON for programs.
//
// It only reads the files in errand's data folder, so it works while errand runs, afterwards, and on a copy. The
// content comes from VMs: control characters are removed, and long texts are truncated in the output.
//
// Start here: [Show].
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

// Level is the importance of an event.
type Level int

// The levels, in increasing order.
const (
	Debug Level = iota // output of tools, reasoning, tokens
	Info               // text and actions of the agent
	Warn               // retries, remarks of the runner, failed tools
	Error              // failed runs
)

// Levels returns the names of the levels.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// ParseLevel parses debug, info, warn or error.
func ParseLevel(s string) (Level, error) {
	for i, name := range Levels() {
		if s == name {
			return Level(i), nil
		}
	}
	return 0, fmt.Errorf("level %q: write debug, info, warn or error", s)
}

// Query selects the entries to print.
type Query struct {
	// Dir is errand's data folder.
	Dir string
	// Task is OWNER/REPO#N, with the name of the repository when the run began; case is ignored.
	Task string
	// Run is the number of one run; 0 selects all.
	Run int
	// Since excludes older entries.
	Since time.Time
	// Level excludes entries below it.
	Level Level
	// Events prints each event as a line of JSON.
	Events bool
	// Follow continues, including runs that start later, until the task has ended, or the run if Run selects one, or ctx ends.
	Follow bool
	// Notes is where Follow says that it waits or why it ends; may be nil.
	Notes io.Writer
	// Every is the polling interval while following. Default 500 ms.
	Every time.Duration
}

// ErrNone means that a task has no transcripts.
var ErrNone = errors.New("there is no transcript of this task")

// maxLine bounds one record of a transcript in bytes; a longer one is replaced by a remark.
const maxLine = 64 << 20

// Show prints the entries that the query selects. With Follow it returns nil when ctx ends.
func Show(ctx context.Context, w io.Writer, q Query) error {
	if q.Every <= 0 {
		q.Every = 500 * time.Millisecond
	}
	v := view{q: q, out: w, files: map[string]*file{}}
	if q.Follow {
		return v.follow(ctx)
	}
	if err := v.poll(); err != nil {
		return err
	}
	if err := v.checkRun(); err != nil {
		return err
	}
	if len(v.files) == 0 {
		return fmt.Errorf("%w: %s (looked in %s)", ErrNone, q.Task, v.dir())
	}
	return nil
}

// checkRun returns an error that names the runs of the task if the query selects one that is not among them.
func (v *view) checkRun() error {
	if len(v.files) > 0 || len(v.unselected) == 0 {
		return nil
	}
	names := make([]string, len(v.unselected))
	for i, f := range v.unselected {
		names[i] = strconv.Itoa(f.seq)
	}
	return fmt.Errorf("%s has no run %d; its runs are: %s", v.q.Task, v.q.Run, strings.Join(names, ", "))
}

// view is the state of one call of Show.
type view struct {
	q     Query
	out   io.Writer
	files map[string]*file // of the task, by path
	other map[string]bool

	unselected []*file  // the task's runs that the query does not select, by number
	lives      []string // the names of the task's summaries, one for each life; known if a file of the task is
}

// file is one run's transcript and the position up to which it was printed.
type file struct {
	path     string
	seq      int
	head     runlog.Header
	read     int64
	started  bool        // its beginning was printed
	info     os.FileInfo // of the file that was read, to detect that a shortened one has replaced it
	last     int64       // number of the last line
	end      runlog.End  // the newest end
	ended    bool        // an end was read
	lastText string      // the newest printed text of the agent
}

// resume moves in to the position to continue at. After the transcript was shortened, that is after the header; entries
// that were printed before are recognized by number.
func (f *file) resume(in *os.File) error {
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("read a transcript: %w", err)
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

// alreadyShown reports whether an entry was printed before the transcript was shortened, and records it.
func (f *file) alreadyShown(e runlog.Entry) bool {
	switch {
	case e.Dropped != nil:
		return e.Dropped.Last <= f.last
	case e.Line != nil && e.Line.Seq > 0:
		old := e.Line.Seq <= f.last
		f.last = max(f.last, e.Line.Seq)
		return old
	case e.End != nil:
		old := f.end.SameOutcome(*e.End)
		f.end, f.ended = *e.End, true
		return old
	}
	return false
}

func (v *view) dir() string { return filepath.Join(v.q.Dir, "transcripts") }

// poll prints the entries that were added since the last call.
func (v *view) poll() error {
	entries, err := os.ReadDir(v.dir())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is not a data folder of errand", ErrNone, v.q.Dir)
	}
	if err != nil {
		return fmt.Errorf("list transcripts: %w", err)
	}
	for _, e := range entries {
		if err := v.addFile(e.Name()); err != nil {
			return err
		}
	}
	list := make([]*file, 0, len(v.files))
	for _, f := range v.files {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *file) int { return cmp.Or(a.head.Started.Compare(b.head.Started), a.seq-b.seq) })
	v.lives = summariesAmong(entries, slices.Concat(v.unselected, list))
	for _, f := range list {
		if err := v.show(f); err != nil {
			return err
		}
	}
	return nil
}

// addFile adds a file if it is a transcript of the task.
func (v *view) addFile(name string) error {
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
		return nil // it was just pruned
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
		if strings.EqualFold(f.head.Task, v.q.Task) {
			v.unselected = append(v.unselected, f)
			slices.SortFunc(v.unselected, func(a, b *file) int { return a.seq - b.seq })
		}
		return nil
	}
	v.files[path] = f
	return nil
}

// describeRun returns a short description of a run.
func describeRun(h runlog.Header) string {
	parts := []string{strings.ReplaceAll(h.Step, "_", " ")}
	for _, s := range []string{h.Agent, h.Model} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if n := len(h.Withheld); n > 0 {
		parts = append(parts, fmt.Sprintf("withheld: %d", n))
	}
	return strings.Join(parts, ", ")
}

// show prints the entries that were added to a transcript.
func (v *view) show(f *file) error {
	in, err := os.Open(f.path)
	if err != nil {
		return nil // pruned
	}
	defer func() { _ = in.Close() }()
	if err := f.resume(in); err != nil {
		return err
	}
	if !f.started && !v.q.Events && !f.head.Started.Before(v.q.Since) {
		if err := v.print(f.head.Started, f.seq, "began: %s", describeRun(f.head)); err != nil {
			return err
		}
	}
	f.started = true
	r := bufio.NewReaderSize(io.LimitReader(in, maxLine), 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil { // the rest is being written, or was truncated by a crash
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
		if f.alreadyShown(e) {
			continue
		}
		if err := v.printEntry(f, e); err != nil {
			return err
		}
	}
}
