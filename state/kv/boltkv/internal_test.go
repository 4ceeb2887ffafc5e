package boltkv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
