package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/state/kv"
)

// compactTxBytes is the number of bytes that Compact copies per transaction.
const compactTxBytes = 4 << 20

// Usage has the sizes of a file and of its free pages. Later writes reuse free bytes; only Compact shrinks the file.
type Usage struct {
	FileBytes int64
	FreeBytes int64
}

// Usage returns the current sizes.
func (d *DB) Usage(ctx context.Context) (Usage, error) {
	if err := ctx.Err(); err != nil {
		return Usage{}, err
	}
	var u Usage
	err := d.bolt.View(func(tx *bbolt.Tx) error {
		u = Usage{FileBytes: tx.Size(), FreeBytes: int64(d.bolt.Stats().FreeAlloc)}
		return nil
	})
	return u, closedError(err)
}

// Backup writes a consistent copy of the file to w while the database stays in use. Open can open the copy. It calls begun, if not
// nil, when it is decided which updates the copy contains; its error ends the backup. Backup holds a transaction until it returns,
// so w must be fast: the writer waits for it when the file outgrows its mapping.
func (d *DB) Backup(ctx context.Context, begun func() error, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	untilDone := writerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return w.Write(p)
	})
	err := d.bolt.View(func(tx *bbolt.Tx) error {
		if begun != nil {
			if err := begun(); err != nil {
				return err
			}
		}
		_, err := tx.WriteTo(untilDone)
		return err
	})
	if err = closedError(err); err != nil && !errors.Is(err, kv.ErrClosed) {
		return fmt.Errorf("back up store: %w", err)
	}
	return err
}

// Lock locks the file at path, which is created if it does not exist, as Open does, without reading it: it may be damaged. The
// error is ErrLocked if a process has it open. release ends the lock.
func Lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, errors.Join(ErrLocked, f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock the store: %w", err), f.Close())
	}
	return f.Close, nil
}

// IsOpen reports whether a process has the file at path open, as Open does. It changes nothing; a file that does not exist is not open.
func IsOpen(path string) (open bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("look for the lock of the store: %w", err)
	}
	return false, nil
}

// Compact rewrites the closed file at path without its free pages and returns its sizes before and after. It replaces
// the old file only when the new one is complete and synced, so a crash leaves one of the two. If the file is open it
// returns ErrLocked.
func Compact(path string) (before, after int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, fmt.Errorf("compact store: %w", err)
	}
	source, _, err := openFile(path, defaultWait)
	if err != nil {
		return 0, 0, fmt.Errorf("compact store %s: %w", path, err)
	}
	target := path + ".compact"
	after, err = compactInto(target, source)
	if err == nil {
		// The lock on the old file is kept until the new file has replaced it.
		err = os.Rename(target, path)
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(path))
	}
	if err = errors.Join(err, source.Close()); err != nil {
		_ = os.Remove(target) // an incomplete copy is useless
		return 0, 0, fmt.Errorf("compact store %s: %w", path, err)
	}
	return info.Size(), after, nil
}

func compactInto(path string, source *bbolt.DB) (int64, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	target, err := bbolt.Open(path, fileMode, &bbolt.Options{Timeout: defaultWait})
	if err != nil {
		return 0, err
	}
	err = bbolt.Compact(target, source, compactTxBytes)
	if err == nil {
		err = target.Sync()
	}
	if err = errors.Join(err, target.Close()); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// writerFunc implements io.Writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
