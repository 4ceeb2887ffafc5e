package archive

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runner/pack"
)

// Errors about sleep archives for callers to distinguish. All of them are returned wrapped.
var (
	// ErrNoArchive: there is no archive with this name, or it was deleted.
	ErrNoArchive = errors.New("there is no such sleep archive")
	// ErrDamaged: the file differs from the saved one. A retry does not help.
	ErrDamaged = errors.New("the sleep archive is damaged")
)

// The folder of sleep archives, and the suffix of their names.
const (
	sleeps   = "sleeps"
	sleepExt = ".tar.zst"
)

// Sleep is the saved work of a VM on disk, readable by its owner only.
type Sleep struct {
	// Ref identifies the archive. It begins with the task's name and depends on the content, so that a newer archive of
	// the task never replaces one that is still needed.
	Ref string `json:"ref"`
	// Bytes is the size on disk; SHA256 is that of the file and is required to open it.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	// Saved is the time of writing, by the clock of the file system.
	Saved time.Time `json:"saved"`
	// Manifest describes the content. Sleeps leaves it empty.
	Manifest pack.Manifest `json:"manifest,omitzero"`
}

// SaveSleep stores the output of fill as a sleep archive of a task, whose name may contain letters, digits, dots,
// dashes and underscores. Before the archive gets its name, it is synced, read back completely and compared with the
// digest of the written data and the manifest that fill returned. After an error no file remains. Saving the same
// content again yields the same archive.
func (d *Dir) SaveSleep(task string, fill func(io.Writer) (pack.Manifest, error)) (Sleep, error) {
	if _, err := d.file(sleeps, task, sleepExt); err != nil {
		return Sleep{}, err
	}
	f, err := os.CreateTemp(filepath.Join(d.path, sleeps), durable.TempPrefix+"*") // 0600
	if err != nil {
		return Sleep{}, fmt.Errorf("save the sleep archive: %w", err)
	}
	s, err := d.fillSleep(f, task, fill)
	if err != nil {
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	} else {
		err = d.placeSleep(f, s.Ref)
	}
	if err != nil {
		return Sleep{}, fmt.Errorf("save the sleep archive of %s: %w", task, err)
	}
	return s, nil
}

func (d *Dir) fillSleep(f *os.File, task string, fill func(io.Writer) (pack.Manifest, error)) (Sleep, error) {
	to := &counter{to: f, hash: sha256.New()}
	m, err := fill(to)
	if err != nil {
		return Sleep{}, err
	}
	s := Sleep{Bytes: to.written, SHA256: to.digest(), Manifest: m}
	s.Ref = task + "-" + s.SHA256[:16]
	if _, err := d.file(sleeps, s.Ref, sleepExt); err != nil {
		return Sleep{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return Sleep{}, err
	}
	s.Saved = info.ModTime()
	return s, verifySleep(f, s)
}

// verifySleep reads a file back from disk and verifies it.
func verifySleep(f *os.File, s Sleep) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from := &counter{to: io.Discard, hash: sha256.New()}
	tee := io.TeeReader(f, from)
	m, err := pack.Verify(tee, max(s.Manifest.Bytes(), 1))
	if err != nil {
		return fmt.Errorf("read the archive back: %w", err)
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return fmt.Errorf("read the archive back: %w", err)
	}
	if from.written != s.Bytes || from.digest() != s.SHA256 || !reflect.DeepEqual(m, s.Manifest) {
		return fmt.Errorf("read the archive back: it differs: %w", ErrDamaged)
	}
	return nil
}

// placeSleep durably gives a file its name.
func (d *Dir) placeSleep(f *os.File, ref string) error {
	path, err := d.file(sleeps, ref, sleepExt)
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return durable.Place(f, path)
}

// OpenSleep opens a sleep archive at its beginning, after comparing its digest. The error matches ErrNoArchive or
// ErrDamaged if that is the cause.
func (d *Dir) OpenSleep(ref, digest string) (*os.File, error) {
	path, err := d.file(sleeps, ref, sleepExt)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open sleep archive %s: %w", ref, ErrNoArchive)
	}
	if err != nil {
		return nil, fmt.Errorf("open sleep archive: %w", err)
	}
	from := &counter{to: io.Discard, hash: sha256.New()}
	_, err = io.Copy(from, f)
	if err == nil && from.digest() != digest {
		err = ErrDamaged
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open sleep archive %s: %w", ref, err), f.Close())
	}
	return f, nil
}

// DeleteSleep removes a sleep archive. A missing archive is not an error.
func (d *Dir) DeleteSleep(ref string) error {
	path, err := d.file(sleeps, ref, sleepExt)
	if err != nil {
		return err
	}
	if err := d.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete sleep archive: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("delete sleep archive: %w", err)
	}
	return nil
}

// Sleeps lists all sleep archives with their sizes and times, oldest first, without opening them: SHA256 and Manifest
// are empty. It serves to find archives that belong to no task.
func (d *Dir) Sleeps() ([]Sleep, error) {
	entries, err := os.ReadDir(filepath.Join(d.path, sleeps))
	if err != nil {
		return nil, fmt.Errorf("list sleep archives: %w", err)
	}
	var list []Sleep
	for _, e := range entries {
		ref, ok := strings.CutSuffix(e.Name(), sleepExt)
		info, err := e.Info()
		if !ok || err != nil || !name.MatchString(ref) {
			continue // it is being written, or was just deleted
		}
		list = append(list, Sleep{Ref: ref, Bytes: info.Size(), Saved: info.ModTime()})
	}
	slices.SortFunc(list, func(a, b Sleep) int { return cmp.Or(a.Saved.Compare(b.Saved), cmp.Compare(a.Ref, b.Ref)) })
	return list, nil
}

// counter counts and hashes the data written to it.
type counter struct {
	to      io.Writer
	hash    hash.Hash
	written int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	_, _ = c.hash.Write(b[:n])
	c.written += int64(n)
	return n, err
}

func (c *counter) digest() string { return hex.EncodeToString(c.hash.Sum(nil)) }
