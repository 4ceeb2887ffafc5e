package boltkv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// put stores a key unless it is there, as a webhook is stored: the second time it need not be written.
func put(db kv.DB, key string) error {
	return db.Update(context.Background(), func(tx kv.Tx) error {
		if _, err := tx.Get(key); !errors.Is(err, kv.ErrNotFound) {
			return err
		}
		return tx.Put(key, []byte(strings.Repeat(key, 1000)))
	})
}

// remove deletes a key, so that its pages are used again.
func remove(db kv.DB, key string) error {
	return db.Update(context.Background(), func(tx kv.Tx) error { return tx.Delete(key) })
}

// patiently does something until it succeeds.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	var err error
	for range 100 {
		if err = do(); err == nil {
			return
		}
	}
	t.Fatalf("the store never recovers: %v", err)
}

// How many keys are stored where the disk fails, in all tests and in long ones.
const (
	few  = 4
	many = 10
)

// churn stores many keys and says each one that is stored; older ones it deletes, and says so before.
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

// holds checks that a file is a sound database and has every key that was said.
func holds(t *testing.T, dir string, said []string) {
	t.Helper()
	if len(said) == 0 {
		return // there need not be a file
	}
	db, err := bbolt.Open(filepath.Join(dir, "data", "errand.db"), 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second, PreLoadFreelist: true})
	if err != nil {
		t.Errorf("open what the power cut left: %v", err)
		return
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		for err := range tx.Check() {
			t.Errorf("the file is damaged: %v", err)
		}
		want := map[string]bool{}
		for _, key := range said {
			gone, removed := strings.CutPrefix(key, "-")
			want[gone] = !removed
		}
		for key, is := range want {
			if got := string(tx.Bucket([]byte("kv")).Get([]byte(key))); is && got != strings.Repeat(key, 1000) {
				t.Errorf("%s was stored and has %d bytes", key, len(got))
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestPowerCut: whatever was reported as stored is there after the power fails at any moment.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{Play: churn(few), Check: holds})
}

// TestHeavyPowerCut is TestPowerCut of a store that is written to more often.
func TestHeavyPowerCut(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	disktest.Run(t, disktest.Disk{Play: churn(many), Check: holds})
}

// TestFailingCalls has one call after the other fail, or two in a row: an update whose commit has not reached the disk is reported as
// failed, and one that is reported as stored is stored, although the next sync is told that all is well.
func TestFailingCalls(t *testing.T) {
	t.Parallel()
	failingCalls(t, few)
}

// TestHeavyFailingCalls is TestFailingCalls of a store that is written to more often.
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

// TestFullDisk: on a disk without room updates fail and say why, what was stored stays readable, and when there is room again the
// same open database goes on.
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
				t.Fatalf("the error does not say that there is no room: %v", err)
			default:
				failed++
			}
			if got := keys(t, db); strings.Contains(got, key+":") != (err == nil) {
				t.Fatalf("%s was stored with %v, and there is %s", key, err, got)
			}
		}
		if failed == 0 {
			t.Fatal("the disk does not get full")
		}
		var backup strings.Builder
		if err := db.Backup(t.Context(), &backup); err != nil || backup.Len() == 0 {
			t.Errorf("back up with a full disk: %v", err)
		}
		free()
		if err := put(db, "after"); err != nil {
			t.Fatalf("with room again: %v", err)
		}
		want := keys(t, db)
		for _, key := range append(stored, "before", "after") {
			if !strings.Contains(want, key+":") {
				t.Errorf("%s is lost", key)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if got := keys(t, open(t, path, boltkv.Options{})); got != want {
			t.Errorf("opened again there is %s, want %s", got, want)
		}
	})
}

// TestNoRoomToBegin: where there is no room for a new database, or for one that is compacted, nothing is left that is in the way later.
func TestNoRoomToBegin(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		path := filepath.Join(dir, "data", "errand.db")
		for _, left := range []int{0, 4 << 10, 12 << 10, 20 << 10} {
			free := disktest.Fill(t, dir, left)
			if db, err := boltkv.Open(path, boltkv.Options{}); err == nil {
				t.Errorf("opened with %d bytes of room: %v", left, db.Close())
			} else if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("got error %v, want no space", err)
			}
			free()
		}
		db := open(t, path, boltkv.Options{})
		grow(t, db, 60)
		want := keys(t, db)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		free := disktest.Fill(t, dir, 40<<10)
		if _, _, err := boltkv.Compact(path); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("compact without room: got error %v", err)
		}
		free()
		if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		if got := keys(t, open(t, path, boltkv.Options{})); got != want {
			t.Error("compacting without room has changed the database")
		}
	})
}

// TestCompactedWithoutPower: whenever the power fails while a database is compacted, it is the old one or the new one.
func TestCompactedWithoutPower(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			path := filepath.Join(dir, "data", "errand.db")
			db := open(t, path, boltkv.Options{})
			for i := range 3 {
				if err := put(db, fmt.Sprintf("key/%d", i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(remove(db, "key/0"), db.Close()); err != nil {
				t.Fatal(err)
			}
			disktest.Say("key/1")
			disktest.Say("key/2")
			if _, _, err := boltkv.Compact(path); err != nil {
				t.Fatal(err)
			}
			disktest.Say("compacted")
		},
		Check: func(t *testing.T, dir string, said []string) {
			compacted := slices.Contains(said, "compacted")
			if compacted {
				said = said[:2]
			}
			holds(t, dir, said)
			if info, err := os.Stat(filepath.Join(dir, "data", "errand.db")); compacted && (err != nil || info.Size() > 1<<20) {
				t.Errorf("it is reported as compacted, and the power cut brings the old one back: %v", err)
			}
		},
	})
}

// TestSyncedAtOpen: a process that was started after a sync had failed does not build on what only the kernel remembers.
func TestSyncedAtOpen(t *testing.T) {
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
				t.Fatal("it is not broken")
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
				return 0 // that of the data: the one of what makes it valid fails
			}
			return syscall.EIO
		},
		Check: holds,
	})
}

// TestLateWake: who waits for a key is told of it also when the disk took it only after the update had failed.
func TestLateWake(t *testing.T) {
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
				t.Fatal("it is not broken")
			}
			disktest.Say("mended")
			if err := put(db, "key/1"); err != nil {
				t.Fatal(err)
			}
			select {
			case <-woken:
			default:
				t.Error("there is a job, and nobody knows")
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
