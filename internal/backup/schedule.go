package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/remote"
)

// A Schedule makes a backup into a folder regularly, and deletes older ones.
type Schedule struct {
	Folder string
	Data   string        // the data folder
	Every  time.Duration // between two backups
	Keep   int           // how many backups stay
	// Info describes a backup that is made now, and Make writes it.
	Info func() Info
	Make func(ctx context.Context, w io.Writer) error
	// Made is called with the time of the newest backup: at first, and after each; it may be nil.
	Made func(at time.Time)
	Now  func() time.Time
	Log  zerolog.Logger

	mu      sync.Mutex
	failure error
	failed  time.Time // of the failure
}

// Failure returns why the last backup failed, or nil.
func (s *Schedule) Failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// FailedSince reports whether a backup failed after the newest one, which a person may have made, with its time in whole seconds.
func (s *Schedule) FailedSince(newest time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil && newest.Before(s.failed.Truncate(time.Second))
}

func (s *Schedule) setFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.failed = err, s.Now()
}

// retryAfter is how long after a failure another backup is tried.
const retryAfter = 15 * time.Minute

// ErrInside is the error for a folder that cannot hold backups at any time.
var ErrInside = errors.New("the folder for backups has to be outside of the data folder")

// deadAfter is how long after the last write a file that a backup left behind is deleted.
const deadAfter = time.Hour

// Check returns why errand's user cannot make backups into the folder, or nil.
func (s *Schedule) Check(user int) error {
	info, err := os.Stat(s.Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist; create it for errand's user: `sudo install -d -m 0700 -o %d %s`", s.Folder, user, remote.Quote(s.Folder))
	case err != nil:
		return fmt.Errorf("look at the folder for backups: %w", err)
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", s.Folder)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s can be used by other users, and backups contain errand's keys: `chmod 0700 %s`", s.Folder, remote.Quote(s.Folder))
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != user {
		return fmt.Errorf("%s belongs to user %d, and not to errand's: `sudo chown %d %s`", s.Folder, st.Uid, user, remote.Quote(s.Folder))
	}
	if err := unix.Access(s.Folder, unix.W_OK); err != nil && os.Geteuid() == user {
		return fmt.Errorf("errand cannot write into %s: %w; mount its file system writable, list it in ReadWritePaths of the systemd unit, or restart errand if the folder is newer than its start", s.Folder, err)
	}
	inside, err := IsInside(s.Data, s.Folder)
	if err == nil && inside {
		err = fmt.Errorf("%s is inside the data folder: if that is lost, so are the backups; name another folder (%w)", s.Folder, ErrInside)
	}
	return err
}

// IsInside reports whether a folder is the data folder or below it.
func IsInside(data, folder string) (bool, error) {
	var err error
	for _, path := range []*string{&folder, &data} {
		if *path, err = filepath.Abs(*path); err == nil {
			*path, err = filepath.EvalSymlinks(*path)
		}
		if err != nil {
			return false, fmt.Errorf("look whether the folder for backups is in the data folder: %w", err)
		}
	}
	way, err := filepath.Rel(data, folder)
	return err == nil && way != ".." && !strings.HasPrefix(way, "../"), nil
}

// Owner returns the owner of the data folder, or this process's user if there is none. That is errand's user if another one looks, such as root.
func (s *Schedule) Owner() int {
	if info, err := os.Stat(s.Data); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			return int(st.Uid)
		}
	}
	return os.Geteuid()
}

// Run makes backups until ctx ends. A failure is logged, and tried again; nothing is deleted then.
func (s *Schedule) Run(ctx context.Context) error {
	var failed time.Time
	for {
		due := failed
		if at, err := s.Newest(); err == nil && !at.IsZero() {
			if s.Made != nil {
				s.Made(at)
			}
			if next := at.Add(s.Every); next.After(due) {
				due = next
			}
		}
		if clock.Sleep(ctx, max(0, due.Sub(s.Now()))) != nil {
			return nil
		}
		name, got, err := s.once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			failed = s.Now().Add(min(retryAfter, s.Every))
			s.setFailure(err)
			s.Log.Error().Err(err).Str("folder", s.Folder).Time("retry", failed).Msg("failed to make a scheduled backup")
		default:
			failed = time.Time{}
			s.setFailure(nil)
			s.Log.Info().Str("file", name).Int("files", got.Files).Msg("made a scheduled backup")
		}
	}
}

// once makes a backup and deletes those that are no longer kept.
func (s *Schedule) once(ctx context.Context) (path string, got Contents, err error) {
	if err := s.Check(os.Geteuid()); err != nil {
		return "", Contents{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(s.Every, time.Hour))
	defer cancel()
	if err := s.removeLeft(); err != nil { // before, since it may fill the disk
		return "", Contents{}, err
	}
	path = filepath.Join(s.Folder, s.Info().FileName())
	if got, err = Save(ctx, path, s.Make); err != nil {
		return "", Contents{}, err
	}
	if err := s.prune(path); err != nil {
		s.Log.Error().Err(err).Str("folder", s.Folder).Msg("failed to delete older backups")
	}
	return path, got, nil
}

// removeLeft deletes what backups left behind that did not come to their end.
func (s *Schedule) removeLeft() error {
	left, err := filepath.Glob(filepath.Join(escapeGlob(s.Folder), durable.TempPrefix+"*"))
	errs := []error{err}
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && s.Now().Sub(info.ModTime()) > deadAfter {
			errs = append(errs, os.Remove(path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete what an earlier backup left behind: %w", err)
	}
	return nil
}

// prune deletes older backups than those that are kept. The new one stays, and so do those from the future, which a wrong clock has made.
func (s *Schedule) prune(newest string) error {
	list, err := s.list()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(n named) bool { return n.at.After(s.Now()) })
	var errs []error
	for _, old := range list[min(s.Keep, len(list)):] {
		if path := filepath.Join(s.Folder, old.name); path != newest {
			errs = append(errs, os.Remove(path))
		}
	}
	return errors.Join(errs...)
}

// A named is a backup in the folder.
type named struct {
	name string
	at   time.Time // by its name
}

// list returns the backups of this deployment in the folder, by their names, the newest first.
func (s *Schedule) list() (list []named, err error) {
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	info := s.Info()
	for _, e := range entries {
		digits := strings.TrimSuffix(e.Name(), nameEnd)
		at, err := time.Parse(nameTime, digits[max(0, len(digits)-len(nameTime)):])
		if info.At = at; err == nil && e.Type().IsRegular() && e.Name() == info.FileName() {
			list = append(list, named{e.Name(), at})
		}
	}
	slices.SortFunc(list, func(a, b named) int { return b.at.Compare(a.at) })
	return list, nil
}

// Newest returns the time of the newest backup in the folder, zero if there is none. One from the future was made by a clock that was
// wrong, and does not count.
func (s *Schedule) Newest() (time.Time, error) {
	list, err := s.list()
	i := slices.IndexFunc(list, func(n named) bool { return !n.at.After(s.Now()) })
	if err != nil || i < 0 {
		return time.Time{}, err
	}
	return list[i].at, nil
}
