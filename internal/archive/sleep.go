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

// Errors about sleep archives on which a caller decides. All of them arrive wrapped.
var (
	// ErrNoSleep: there is no archive of this name (any more).
	ErrNoSleep = errors.New("there is no such sleep archive")
	// ErrSleepDamaged: the file is not what was saved. It will not get better.
	ErrSleepDamaged = errors.New("the sleep archive is damaged")
)

// Where sleep archives lie, and how their names end.
const (
	sleeps   = "sleeps"
	sleepExt = ".tar.zst"
)

// Sleep is a VM's work as it lies on disk, readable by its owner only.
type Sleep struct {
	// Ref finds it again. It begins with the task's name and depends on the content, so that a newer
	// archive of the task never replaces one that is still needed.
	Ref string `json:"ref"`
	// Bytes is its size on disk; SHA256 is of the file and has to be given to open it.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	// Saved is when it was written, by the clock of the file system.
	Saved time.Time `json:"saved"`
	// Manifest tells what is in it. Sleeps does not fill it in.
	Manifest pack.Manifest `json:"manifest,omitzero"`
}

// SaveSleep stores what fill writes as a sleep archive of a task, whose name may have letters, digits,
// dots, dashes and underscores. Before the archive gets its name it has been read back to its end and is
// on disk: the digest is that of what was written, the manifest the one that fill
// returned. After an error nothing is left of it. The same content saved again is the same archive.
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
	s := Sleep{Bytes: to.n, SHA256: to.digest(), Manifest: m}
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

// verifySleep reads a file back from disk.
func verifySleep(f *os.File, s Sleep) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	from := &counter{to: io.Discard, hash: sha256.New()}
	tee := io.TeeReader(f, from)
	m, err := pack.Verify(tee, max(s.Manifest.Bytes(), 1))
	if err != nil {
		return fmt.Errorf("read back what was written: %w", err)
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return fmt.Errorf("read back what was written: %w", err)
	}
	if from.n != s.Bytes || from.digest() != s.SHA256 || !reflect.DeepEqual(m, s.Manifest) {
		return fmt.Errorf("read back what was written: it is something else: %w", ErrSleepDamaged)
	}
	return nil
}

// placeSleep gives a file its name, durably.
func (d *Dir) placeSleep(f *os.File, ref string) error {
	path, err := d.file(sleeps, ref, sleepExt)
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return durable.Place(f, path)
}

// OpenSleep opens a sleep archive at its beginning, after it has been read once to compare its
// digest. The errors are ErrNoSleep and ErrSleepDamaged.
func (d *Dir) OpenSleep(ref, digest string) (*os.File, error) {
	path, err := d.file(sleeps, ref, sleepExt)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open sleep archive %s: %w", ref, ErrNoSleep)
	}
	if err != nil {
		return nil, fmt.Errorf("open sleep archive: %w", err)
	}
	from := &counter{to: io.Discard, hash: sha256.New()}
	_, err = io.Copy(from, f)
	if err == nil && from.digest() != digest {
		err = ErrSleepDamaged
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open sleep archive %s: %w", ref, err), f.Close())
	}
	return f, nil
}

// DeleteSleep removes a sleep archive. One that is not there is no error.
func (d *Dir) DeleteSleep(ref string) error {
	path, err := d.file(sleeps, ref, sleepExt)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete sleep archive: %w", err)
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("delete sleep archive: %w", err)
	}
	return nil
}

// Sleeps lists all sleep archives with their sizes and ages, the oldest first, without opening any:
// SHA256 and Manifest are empty. It is how archives that no task knows of are found.
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
			continue // one that is being written, or was deleted just now
		}
		list = append(list, Sleep{Ref: ref, Bytes: info.Size(), Saved: info.ModTime()})
	}
	slices.SortFunc(list, func(a, b Sleep) int { return cmp.Or(a.Saved.Compare(b.Saved), cmp.Compare(a.Ref, b.Ref)) })
	return list, nil
}

// counter counts and digests what is written to it.
type counter struct {
	to   io.Writer
	hash hash.Hash
	n    int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	_, _ = c.hash.Write(b[:n])
	c.n += int64(n)
	return n, err
}

func (c *counter) digest() string { return hex.EncodeToString(c.hash.Sum(nil)) }
