package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// maxLog bounds a task's file; when it is full it becomes the older one of two.
const maxLog = 1 << 20

// Log keeps what became of requests, in a file for each task. It is safe for concurrent use.
type Log struct {
	dir string
	mu  sync.Mutex
}

var taskName = regexp.MustCompile(`^[0-9]+-[0-9]+$`)

// OpenLog makes the folder of a Log.
func OpenLog(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of requests: %w", err)
	}
	return &Log{dir: dir}, nil
}

func (l *Log) path(task string) (string, error) {
	if !taskName.MatchString(task) {
		return "", fmt.Errorf("log of task %q: want REPOSITORY_ID-ISSUE_NUMBER", task)
	}
	return filepath.Join(l.dir, task+".jsonl"), nil
}

// Add writes one request of a task, named as REPOSITORY_ID-ISSUE_NUMBER. Long texts are cut to maxText. It is not synced: a
// crash of the host may lose the last requests.
func (l *Log) Add(task string, r Request) error {
	path, err := l.path(task)
	if err != nil {
		return err
	}
	for _, text := range []*string{&r.Method, &r.Host, &r.Port, &r.Reason} {
		*text = cut(*text)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("log a request: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := os.Stat(path); err == nil && info.Size() >= maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return fmt.Errorf("log a request: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log a request: %w", err)
	}
	n, err := f.Write(append(line, '\n'))
	if err != nil && n > 0 {
		err = errors.Join(err, dropEnd(f, int64(n))) // else the next line would be lost with this one
	}
	return errors.Join(err, f.Close())
}

// maxText bounds each text of a request in bytes: what a VM asks for may be as long as a header. No name of a host is longer.
const maxText = 512

// cut returns the beginning of a text that is too long.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// dropEnd takes the last bytes of a file away.
func dropEnd(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate(info.Size() - n)
}

// Last returns the newest requests of a task, oldest first, and how many there are in all.
func (l *Log) Last(task string, n int) (list []Request, all int, err error) {
	path, err := l.path(task)
	if err != nil {
		return nil, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{path + ".old", path} {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, fmt.Errorf("read the requests of a task: %w", err)
		}
		for line := range bytes.Lines(data) {
			var r Request
			if json.Unmarshal(line, &r) != nil {
				continue // the host died while it was written
			}
			all++
			if list = append(list, r); len(list) > 2*n {
				list = append(list[:0], list[len(list)-n:]...)
			}
		}
	}
	return list[max(0, len(list)-n):], all, nil
}

// Prune deletes the logs of tasks that nothing was added to since a time.
func (l *Log) Prune(before time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("prune the logs of requests: %w", err)
	}
	var errs []error
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue
		}
		errs = append(errs, os.Remove(filepath.Join(l.dir, e.Name())))
	}
	return errors.Join(errs...)
}
