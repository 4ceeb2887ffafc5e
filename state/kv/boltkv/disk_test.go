package boltkv_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// put stores a key unless it exists, like a webhook: the second time nothing is written.
func put(db kv.DB, key string) error {
	return db.Update(context.Background(), func(tx kv.Tx) error {
		if _, err := tx.Get(key); !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		return tx.Put(key, []byte(strings.Repeat(key, 1000)))
	})
}

// remove deletes a key, so that its pages are reused.
func remove(db kv.DB, key string) error {
	return db.Update(context.Background(), func(tx kv.Tx) error { return tx.Delete(key) })
}

// patiently repeats a function until it succeeds.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	var err error
	for range 100 {
		if err = do(); err == nil {
			return
		}
	}
	t.Fatalf("got no recovery of the store: %v", err)
}

// The numbers of keys stored on failing disks, in all tests and in heavy tests.
const (
	few  = 4
	many = 10
)

// churn stores many keys and reports each one stored. It deletes older ones, after reporting that.
func churn(rounds int) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) { churnFor(t, dir, rounds) }
}

func churnFor(t *testing.T, dir string, rounds int) {
	t.Helper()
	db := open(t, filepath.Join(dir, "data", "errand.db"), boltkv.Options{})
	for i := range rounds {
		key := fmt.Sprintf("key/%d", i)
		patiently(t, func() error { return put(db, key) })
		disktest.Say(key)
		if i >= 2 {
			disktest.Say("-" + fmt.Sprintf("key/%d", i-2))
			patiently(t, func() error { return remove(db, fmt.Sprintf("key/%d", i-2)) })
		}
	}
}

// holds checks that a file is a sound database that contains every reported key.
func holds(t *testing.T, dir string, said []string) {
	t.Helper()
	if len(said) == 0 {
		return // a missing file is correct if nothing was stored
	}
	db, err := bbolt.Open(filepath.Join(dir, "data", "errand.db"), 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second, PreLoadFreelist: true})
	if err != nil {
		t.Errorf("open after the power failure: %v", err)
		return
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("got a damaged file: %v", err)
		}
		want := map[string]bool{}
		for _, key := range said {
			gone, removed := strings.CutPrefix(key, "-")
			want[gone] = !removed
		}
		for key, is := range want {
			if got := string(tx.Bucket([]byte("kv")).Get([]byte(key))); is && got != strings.Repeat(key, 1000) {
				t.Errorf("%s: got %d bytes, want the stored value", key, len(got))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// All data that was reported as stored is there after a power failure at any moment.
func TestStoredDataSurvivesPowerFailure(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{Play: churn(few), Check: holds})
}

// Like TestStoredDataSurvivesPowerFailure, with more writes.
func TestHeavyStoredDataSurvivesPowerFailure(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	disktest.Run(t, disktest.Disk{Play: churn(many), Check: holds})
}

// Each system call fails in turn, or two in a row. An update whose commit did not reach the disk returns an error, and
// one that succeeded is stored, even if the next sync succeeds.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	failingCalls(t, few)
}

// Like TestFailingCalls, with more writes.
func TestHeavyFailingCalls(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	failingCalls(t, many)
}

func failingCalls(t *testing.T, rounds int) {
	t.Helper()
	for name, test := range map[string]struct {
		kind  disktest.Kind
		errno syscall.Errno
		row   int
	}{
		"a sync":             {disktest.Sync, syscall.EIO, 1},
		"two syncs in a row": {disktest.Sync, syscall.EIO, 2},
		"a write":            {disktest.Write, syscall.EIO, 1},
		"no room":            {disktest.Write, syscall.ENOSPC, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				calls := 0
				disktest.Run(t, disktest.Disk{
					Play: churn(rounds), Check: holds,
					Fail: func(c disktest.Call, said []string) syscall.Errno {
						if len(said) == 0 || c.Path != "data/errand.db" || c.Kind != test.kind {
							return 0
						}
						if calls++; calls > n && calls <= n+test.row {
							return test.errno
						}
						return 0
					},
				})
				if calls <= n {
					break
				}
			}
		})
	}
}

// On a full disk updates fail with the reason and stored data stays readable. When there is room again the open
// database works.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "errand.db")
		db := open(t, path, boltkv.Options{})
		if err := put(db, "before"); err != nil {
			t.Fatal(err)
		}
		free := disktest.Fill(t, dir, 32<<10)
		var stored []string
		failed := 0
		for i := range 30 {
			key := fmt.Sprintf("key/%d", i)
			err := db.Update(context.Background(), func(tx kv.Tx) error { return tx.Put(key, []byte(strings.Repeat(key, 2000))) })
			switch {
			case err == nil:
				stored = append(stored, key)
			case !errors.Is(err, syscall.ENOSPC):
				t.Fatalf("got error %v, want no space", err)
			default:
				failed++
			}
			if got := keys(t, db); strings.Contains(got, key+":") != (err == nil) {
				t.Fatalf("put %s: got error %v and contents %s", key, err, got)
			}
		}
		if failed == 0 {
			t.Fatal("got no full disk, want writes to fail")
		}
		var backup strings.Builder
		if err := db.Backup(t.Context(), nil, &backup); err != nil || backup.Len() == 0 {
			t.Errorf("back up with a full disk: got error %v", err)
		}
		free()
		if err := put(db, "after"); err != nil {
			t.Fatalf("with room again: got error %v", err)
		}
		want := keys(t, db)
		for _, key := range append(stored, "before", "after") {
			if !strings.Contains(want, key+":") {
				t.Errorf("%s: got no value, want the stored one", key)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, open(t, path, boltkv.Options{})); got != want {
			t.Errorf("reopened: got %s, want %s", got, want)
		}
	})
}

// If there is no room for a new or a compacted database, no file is left that causes trouble later.
func TestNoRoomToBegin(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "data", "errand.db")
		for _, left := range []int{0, 4 << 10, 12 << 10, 20 << 10} {
			free := disktest.Fill(t, dir, left)
			if db, err := boltkv.Open(path, boltkv.Options{}); err == nil {
				t.Errorf("got a database with %d bytes of room (close: %v), want an error", left, db.Close())
			} else if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got error %v, want no space", err)
			}
			free()
		}
		db := open(t, path, boltkv.Options{})
		grow(t, db, 60)
		want := keys(t, db)
		free := disktest.Fill(t, dir, 40<<10)
		if _, _, err := db.Compact(t.Context()); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("compact without room: got error %v, want no space", err)
		}
		if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
			t.Errorf("got leftover files %v, want none", left)
		}
		free()
		if got := keys(t, db); got != want {
			t.Error("got a changed database after compacting without room, want it unchanged")
		}
		if _, _, err := db.Compact(t.Context()); err != nil || keys(t, db) != want {
			t.Errorf("compact with room again: got error %v, or a changed database", err)
		}
	})
}

// A process that starts after a failed sync does not depend on data that only the kernel has.
func TestOpenSyncsEarlierCommits(t *testing.T) {
	t.Parallel()
	syncs := 0
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			path := filepath.Join(dir, "data", "errand.db")
			db := open(t, path, boltkv.Options{})
			if err := put(db, "key/0"); err != nil {
				t.Fatal(err)
			}
			disktest.Say("key/0")
			count := func() error {
				return db.Update(context.Background(), func(tx kv.Tx) error { return tx.Put("count", nil) })
			}
			for range 6 { // until the only free pages are those of the commit before
				if err := count(); err != nil {
					t.Fatal(err)
				}
			}
			disktest.Say("-broken")
			if err := count(); err == nil {
				t.Fatal("got a successful update, want a disk error")
			}
			_ = db.Close()
			disktest.Say("-mended")
			db = open(t, path, boltkv.Options{})
			if err := put(db, "key/4"); err != nil {
				t.Fatal(err)
			}
			disktest.Say("key/4")
		},
		Fail: func(c disktest.Call, said []string) syscall.Errno {
			if len(said) != 2 || c.Kind != disktest.Sync {
				return 0
			}
			if syncs++; syncs == 1 {
				return 0 // the sync of the data succeeds; the sync of the meta page fails
			}
			return syscall.EIO
		},
		Check: holds,
	})
}

// Callers that wait for a key are notified even if the write became durable only after the update had failed.
func TestLateCommitNotifiesWaiters(t *testing.T) {
	t.Parallel()
	syncs := 0
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			db := open(t, filepath.Join(dir, "errand.db"), boltkv.Options{})
			if err := put(db, "key/0"); err != nil {
				t.Fatal(err)
			}
			woken := db.Notify(t.Context(), "job/")
			disktest.Say("broken")
			if err := put(db, "job/1"); err == nil {
				t.Fatal("got a successful update, want a disk error")
			}
			disktest.Say("mended")
			if err := put(db, "key/1"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-woken:
			default:
				t.Error("got no notification of a stored job, want one")
			}
		},
		Fail: func(c disktest.Call, said []string) syscall.Errno {
			if len(said) != 1 || c.Kind != disktest.Sync {
				return 0
			}
			if syncs++; syncs == 1 {
				return 0
			}
			return syscall.EIO
		},
	})
}
