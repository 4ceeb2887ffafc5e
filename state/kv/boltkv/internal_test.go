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

	"github.com/errand-bot/errand/state/kv"
)

// TestUpdatesShareCommits holds the writer up with one update until others wait: one commit serves
// them all.
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
			synctest.Wait() // until all the others wait for the writer
		})
		group.Wait()
		if took := lastCommit(t, db) - before; took != 1 {
			t.Errorf("11 updates took %d commits", took)
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

// TestPanicInSecondRun: a closure that panics or exits only when it runs again writes nothing, also not what its first run wrote.
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
				t.Error("the update returned")
			})
			group.Wait()
			if err := db.Update(context.Background(), func(tx kv.Tx) error { return tx.Put("next", nil) }); err != nil {
				t.Error(err)
			}
			if got := keys(t, db); got != "next" {
				t.Errorf("keys %q", got)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoAnswerFromUnsureState: while it is not sure that what can be read is durable, nobody is told of it, neither that a
// key is there already nor why an update is refused.
func TestNoAnswerFromUnsureState(t *testing.T) {
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
	db.unsure, db.file = true, nil // as after a sync that failed, on a disk that still fails
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

// TestFileReplacedWhileWaiting opens the file as Compact leaves it to somebody who waited for the
// lock of the old one: the name stands for another file by then.
func TestFileReplacedWhileWaiting(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if !stillAt(path, file) {
		t.Error("the file is taken for another one")
	}
	if err := errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if stillAt(path, file) {
		t.Error("the replaced file is taken for the present one")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if stillAt(path, file) {
		t.Error("the removed file is taken for the present one")
	}
}
