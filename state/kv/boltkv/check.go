package boltkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const (
	checkWait = 2 * time.Second // for the lock of a file
	checkPage = 256             // keys that Check reads in a transaction
)

// Check reads all keys and values of the file, and returns the first problem. The database stays in use meanwhile: Check holds
// only short transactions, because the writer waits for readers when the file outgrows its mapping. It does not use bbolt's own
// check, which is unsafe beside a writer, so it does not notice lost or doubly used free pages.
func (d *DB) Check(ctx context.Context) error {
	var last []byte
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := guarded(func() error {
			return d.view(func(tx *bbolt.Tx) (err error) {
				if err := complete(tx, d.file); err != nil {
					return err
				}
				last, more, err = readKeys(tx, last)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads the next keys after one, with their values, and returns the last of them and whether there may be more.
func readKeys(tx *bbolt.Tx, last []byte) (_ []byte, more bool, err error) {
	bucket := tx.Bucket([]byte(bucketName))
	if bucket == nil {
		return nil, false, fmt.Errorf("the bucket %s is missing", bucketName)
	}
	cursor := bucket.Cursor()
	k, v := cursor.Seek(last)
	if last != nil && bytes.Equal(k, last) {
		k, v = cursor.Next()
	}
	for range checkPage {
		if k == nil {
			return last, false, nil
		}
		if last != nil && bytes.Compare(k, last) <= 0 {
			return nil, false, fmt.Errorf("the keys %q and %q are not in order", last, k)
		}
		last = bytes.Clone(k)
		_ = bytes.Clone(v) // a page that cannot be read is a fault
		k, v = cursor.Next()
	}
	return last, true, nil
}

// CheckFile verifies the structure of a file that no process has open, and returns the first problem. It changes nothing. The error
// is ErrLocked if a process has it open. If ctx ends first, the check ends later, in the background: bbolt cannot interrupt it.
func CheckFile(ctx context.Context, path string) error {
	result := make(chan error, 1)
	go func() { result <- guarded(func() error { return checkFile(path) }) }()
	select {
	case err := <-result:
		return errors.Join(err, ctx.Err())
	case <-ctx.Done():
		return ctx.Err()
	}
}

func checkFile(path string) (err error) {
	var file *os.File
	bolt, err := bbolt.Open(path, fileMode, &bbolt.Options{
		ReadOnly: true, Timeout: checkWait,
		OpenFile: func(name string, flag int, mode os.FileMode) (f *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return ErrLocked
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bolt.Close()) }()
	return bolt.View(func(tx *bbolt.Tx) error {
		if err := complete(tx, file); err != nil {
			return err
		}
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = err // the rest is read, because bbolt's goroutine uses the transaction
			}
		}
		return first
	})
}

// complete returns an error if the file is shorter than its own header says. Reading behind its end would end the process.
func complete(tx *bbolt.Tx, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < tx.Size() {
		return fmt.Errorf("the file is truncated: it has %d bytes instead of %d", info.Size(), tx.Size())
	}
	return nil
}

// guarded calls fn. It returns bbolt's panics about damaged pages, and faults of the file's mapping, as errors.
func guarded(fn func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("read a page: %v", problem)
		}
	}()
	return fn()
}
