package boltkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/state/kv"
)

// While one update occupies the writer, others queue up; one commit must serve them all.
func TestUpdatesShareCommits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		before := lastCommit(t, db)
		var group sync.WaitGroup
		update := func(key string, while func()) {
			group.Go(func() {
				err := db.Update(context.Background(), func(tx kv.Tx) error {
					while()
					return tx.Put(key, nil)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		update("first", func() {
			for i := range 10 {
				update(fmt.Sprintf("other/%d", i), func() {})
			}
			synctest.Wait() // until all others wait for the writer
		})
		group.Wait()
		if took := lastCommit(t, db) - before; took != 1 {
			t.Errorf("got %d commits for 11 updates", took)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// keys returns all keys.
func keys(t *testing.T, db *DB) string {
	t.Helper()
	var all []string
	err := db.View(context.Background(), func(r kv.Reader) error {
		pairs, err := r.Range("", "", 0)
		for _, p := range pairs {
			all = append(all, p.Key)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// A closure that panics or exits only in its second run writes nothing, including the writes of its first run.
func TestPanicInSecondRun(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(){"panic": func() { panic("boom") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := Open(filepath.Join(t.TempDir(), "errand.db"), Options{CheckRepeatable: true})
			if err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			group.Go(func() {
				defer func() { _ = recover() }()
				runs := 0
				_ = db.Update(context.Background(), func(tx kv.Tx) error {
					if runs++; runs == 2 {
						end()
					}
					return tx.Put("half", nil)
				})
				t.Error("got a return from the update, want a panic or exit")
			})
			group.Wait()
			if err := db.Update(context.Background(), func(tx kv.Tx) error { return tx.Put("next", nil) }); err != nil {
				t.Error(err)
			}
			if got := keys(t, db); got != "next" {
				t.Errorf("got keys %q", got)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// While it is uncertain whether the readable state is durable, no update gets a result that depends on it: neither that
// a key exists nor the reason for a refusal.
func TestUncertainStateIsNotReported(t *testing.T) {
	t.Parallel()
	db, err := Open(filepath.Join(t.TempDir(), "errand.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(refusal error) error {
		return db.Update(t.Context(), func(tx kv.Tx) error {
			if _, err := tx.Get("key"); !errors.Is(err, kv.ErrNotFound) {
				return errors.Join(err, refusal)
			}
			return tx.Put("key", nil)
		})
	}
	if err := put(nil); err != nil {
		t.Fatal(err)
	}
	whole := db.file
	db.unsure, db.file = true, nil // as after a failed sync, on a disk that still fails
	refusal := errors.New("it is there already")
	for _, r := range []error{nil, refusal} {
		if err := put(r); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("got error %v, want that of the disk", err)
		}
	}
	db.file = whole
	if err := put(refusal); !errors.Is(err, refusal) {
		t.Errorf("got error %v, want the refusal", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// lastCommit returns the number of the last commit.
func lastCommit(t *testing.T, db *DB) int {
	t.Helper()
	id := 0
	if err := db.bolt.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }); err != nil {
		t.Fatal(err)
	}
	return id
}

// A waiting process opens the file that Compact has since replaced.
func TestReplacedFileIsRecognized(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !stillAt(path, file) {
		t.Error("stillAt: got false for the same file, want true")
	}
	if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if stillAt(path, file) {
		t.Error("stillAt: got true for a replaced file, want false")
	}
	if err := tryLock(file, path, unix.LOCK_EX); !errors.Is(err, ErrLocked) {
		t.Errorf("the lock of a replaced file: got error %v, want ErrLocked", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if stillAt(path, file) {
		t.Error("stillAt: got true for a removed file, want false")
	}
}
