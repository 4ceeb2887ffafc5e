package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// heartbeat is the interval of the records that tell a follower that the run is alive.
const heartbeat = 5 * time.Second

// Follow writes to out the records that runlog.Reader reads: the run's lines with a number greater than from as they
// arrive, a heartbeat every 5 s, and finally the run's exit. If the supervisor has died without writing an exit, Follow
// kills the leftover processes and reports the cause "lost".
func Follow(ctx context.Context, root Root, id string, from int64, out io.Writer) error {
	if err := checkKnown(root, id); err != nil {
		return err
	}
	f := &follower{dir: root.RunDir(id), root: root, id: id, out: json.NewEncoder(out)}
	f.lines = &tailReader{path: filepath.Join(f.dir, logFile), from: from}
	defer f.lines.close()
	if err := f.follow(ctx); err != nil {
		return fmt.Errorf("follow run %s: %w", id, err)
	}
	return nil
}

func checkKnown(root Root, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	if !exists(filepath.Join(root.RunDir(id), specFile)) {
		return fmt.Errorf("run %s: %w", id, ErrUnknownRun)
	}
	return nil
}

type follower struct {
	root  Root
	id    string
	dir   string
	lines *tailReader
	out   *json.Encoder
}

func (f *follower) follow(ctx context.Context) error {
	poll := time.NewTicker(pollPause)
	defer poll.Stop()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for rounds := 0; ; rounds++ {
		// Read the exit before the lines: once it exists, no line follows.
		exit, err := readExit(f.dir)
		if err != nil {
			return err
		}
		if exit == nil && rounds%20 == 0 {
			if exit, err = finishLost(f.root, f.id); err != nil {
				return err
			}
		}
		if err := f.print(); err != nil {
			return err
		}
		if exit != nil {
			return f.out.Encode(runlog.Record{Exit: exit})
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
			if err := f.out.Encode(runlog.Record{Alive: true}); err != nil {
				return fmt.Errorf("write heartbeat: %w", err)
			}
		case <-poll.C:
		}
	}
}

// print writes the lines that are available now.
func (f *follower) print() error {
	for {
		line, err := f.lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.out.Encode(runlog.Record{Line: line}); err != nil {
			return fmt.Errorf("write line: %w", err)
		}
	}
}

// readExit returns the run's exit, or nil if it has not ended.
func readExit(dir string) (*runlog.Exit, error) {
	var exit runlog.Exit
	err := readJSON(filepath.Join(dir, exitFile), &exit)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &exit, nil
}

// tailReader reads the complete lines of a growing file.
type tailReader struct {
	path string
	from int64

	file  *os.File
	lines *lineReader
}

// next returns the next line, or io.EOF if there is none yet.
func (t *tailReader) next() (*runlog.Line, error) {
	if t.file == nil {
		f, err := os.Open(t.path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, io.EOF
		}
		if err != nil {
			return nil, fmt.Errorf("open log: %w", err)
		}
		t.file, t.lines = f, newLineReader(f, t.from)
	}
	return t.lines.next()
}

func (t *tailReader) close() {
	if t.file != nil {
		_ = t.file.Close()
	}
}

// lineReader decodes log lines. It keeps an incomplete line at the end of the file until the rest arrives, and skips a
// corrupt line, such as after a power cut.
type lineReader struct {
	reader *bufio.Reader
	from   int64
	part   []byte
}

func newLineReader(r io.Reader, from int64) *lineReader {
	return &lineReader{reader: bufio.NewReaderSize(r, 256<<10), from: from}
}

func (l *lineReader) next() (*runlog.Line, error) {
	for {
		part, err := l.reader.ReadBytes('\n')
		l.part = append(l.part, part...)
		if err != nil {
			return nil, err
		}
		var line runlog.Line
		err = json.Unmarshal(l.part, &line)
		l.part = l.part[:0]
		if err == nil && line.Seq > l.from {
			l.from = line.Seq
			return &line, nil
		}
	}
}
