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

	"github.com/errand-bot/errand/internal/durable"
)

// maxLog limits a task's file in bytes. A full file replaces the older one of at most two.
const maxLog = 1 << 20

// A Log records requests in files, by task. It is safe for concurrent use.
type Log struct {
	dir string
	mu  sync.Mutex
}

var taskName = regexp.MustCompile(`^[0-9]+-[0-9]+$`)

// OpenLog creates the folder of a [Log].
func OpenLog(dir string) (*Log, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder for request logs: %w", err)
	}
	return &Log{dir: dir}, nil
}

func (l *Log) path(task string) (string, error) {
	if !taskName.MatchString(task) {
		return "", fmt.Errorf("log of task %q: want REPOSITORY_ID-ISSUE_NUMBER", task)
	}
	return filepath.Join(l.dir, task+".jsonl"), nil
}

// Add appends one request of a task, named REPOSITORY_ID-ISSUE_NUMBER. It cuts long texts to maxText. The file is not
// synced: a crash of the host may lose the last requests.
func (l *Log) Add(task string, r Request) error {
	path, err := l.path(task)
	if err != nil {
		return err
	}
	for _, text := range []*string{&r.Method, &r.Host, &r.Port, &r.Path, &r.Reason} {
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
		err = errors.Join(err, truncateBy(f, int64(n))) // remove the partial line, which would also make the next one unreadable
	}
	return errors.Join(err, f.Close())
}

// maxText limits each text of a request in bytes, because a VM can send texts as long as a header. Host names are
// always shorter.
const maxText = 512

// cut shortens a text to maxText.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// truncateBy truncates a file by n bytes.
func truncateBy(f *os.File, n int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate(info.Size() - n)
}

// Last returns the newest n requests of a task, oldest first, and the total number of stored requests.
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
				continue // a partial line: the host crashed while it was written
			}
			all++
			if list = append(list, r); len(list) > 2*n {
				list = append(list[:0], list[len(list)-n:]...)
			}
		}
	}
	return list[max(0, len(list)-n):], all, nil
}

// Delete deletes the log of a task, and returns the number of its files.
func (l *Log) Delete(task string) (removed int, err error) {
	path, err := l.path(task)
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range []string{path, path + ".old"} {
		switch err := os.Remove(name); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, fmt.Errorf("delete the requests of a task: %w", err)
		}
	}
	return removed, durable.SyncDir(l.dir)
}

// Prune deletes the logs of tasks without requests since before.
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
