package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/state/kv"
)

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
	err := d.view(func(tx *bbolt.Tx) error {
		u = Usage{FileBytes: tx.Size(), FreeBytes: int64(d.bolt.Stats().FreeAlloc)}
		return nil
	})
	return u, err
}

// Backup writes a consistent copy of the file to w while the database stays in use. Open can open the copy. It calls begun, if not
// nil, when it is decided which updates the copy contains; its error ends the backup. Backup holds a transaction until it returns,
// so w must be fast: the writer waits for it when the file outgrows its mapping, and Compact does.
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
	err := d.view(func(tx *bbolt.Tx) error {
		if begun != nil {
			if err := begun(); err != nil {
				return err
			}
		}
		_, err := tx.WriteTo(untilDone)
		return err
	})
	if err != nil && !errors.Is(err, kv.ErrClosed) {
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
	if err := tryLock(f, path, unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// tryLock locks a file that was opened at path. The error is ErrLocked if a process has it open, or has replaced it since: see stillAt.
func tryLock(f *os.File, path string, how int) error {
	switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrLocked
	case err != nil:
		return fmt.Errorf("lock the store: %w", err)
	case !stillAt(path, f):
		return ErrLocked
	}
	return nil
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
	err = tryLock(f, path, unix.LOCK_SH)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	return false, err
}

// writerFunc implements io.Writer.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
