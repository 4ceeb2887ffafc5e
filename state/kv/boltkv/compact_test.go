package boltkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// TestCompactWhileInUse: a compaction leaves nothing in the file that was deleted or replaced, loses no update, and fails no read, with
// writers and readers at work.
func TestCompactWhileInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	db := open(t, path, boltkv.Options{})
	const deleted, replaced = "a sentence that was deleted", "a sentence that was replaced"
	set := func(key, value string) {
		if err := db.Update(t.Context(), func(tx kv.Tx) error { return tx.Put(key, []byte(value)) }); err != nil {
			t.Error(err)
		}
	}
	grow(t, db, 50)
	set("secret", deleted)
	set("text", replaced)
	set("text", "another text")
	if err := remove(db, "secret"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !bytes.Contains(data, []byte(deleted)) {
		t.Fatalf("got no deleted sentence in a free page before the compaction, error %v: this test shows nothing", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	written := make([]int, 3)
	for w := range written {
		work.Go(func() {
			for ctx.Err() == nil {
				set(fmt.Sprintf("writer/%d/%06d", w, written[w]), "x")
				written[w]++
			}
		})
	}
	work.Go(func() {
		for ctx.Err() == nil {
			if err := db.View(t.Context(), func(r kv.Reader) error { _, err := r.Get("text"); return err }); err != nil {
				t.Errorf("read during a compaction: %v", err)
				return
			}
		}
	})
	for range 5 {
		before, after, err := db.Compact(t.Context())
		if err != nil || after == 0 || before == 0 {
			t.Errorf("got a compaction from %d to %d bytes, error %v", before, after, err)
		}
	}
	stop()
	work.Wait()
	want := keys(t, db)
	for w, n := range written {
		if got := strings.Count(want, fmt.Sprintf("writer/%d/", w)); got != n {
			t.Errorf("got %d keys of writer %d, want %d", got, w, n)
		}
	}
	data, err := os.ReadFile(path)
	for _, text := range []string{deleted, replaced} {
		if err != nil || bytes.Contains(data, []byte(text)) {
			t.Errorf("got %q in the file after a compaction, error %v", text, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := keys(t, open(t, path, boltkv.Options{})); got != want {
		t.Error("got other contents after opening the compacted file again")
	}
}

// TestCompactRefused: a closed database is not compacted, and neither is one whose caller has gone.
func TestCompactRefused(t *testing.T) {
	t.Parallel()
	db := open(t, filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := db.Compact(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: got error %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Compact(t.Context()); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("after Close: got error %v, want ErrClosed", err)
	}
}

// TestOpenRemovesIncompleteCopies: the copy of a compaction whose process died may contain texts that are deleted later.
func TestOpenRemovesIncompleteCopies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "errand.db")
	if err := os.WriteFile(path+".compact", []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, boltkv.Options{})
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("got leftover files %v, want none", left)
	}
}

// churnAndCompact stores keys before and after the file is compacted, and reports each one stored.
func churnAndCompact(t *testing.T, dir string) {
	t.Helper()
	db := open(t, filepath.Join(dir, "data", "errand.db"), boltkv.Options{})
	for i := range 3 {
		key := fmt.Sprintf("key/%d", i)
		patiently(t, func() error { return put(db, key) })
		disktest.Say(key)
	}
	disktest.Say("-key/0")
	patiently(t, func() error { return remove(db, "key/0") })
	disktest.Say("-compacting")
	patiently(t, func() error { _, _, err := db.Compact(context.Background()); return err })
	disktest.Say("-compacted")
	patiently(t, func() error { return put(db, "key/3") })
	disktest.Say("key/3")
}

// holdsCompacted is holds for churnAndCompact: after a reported compaction the old file does not come back.
func holdsCompacted(t *testing.T, dir string, said []string) {
	t.Helper()
	holds(t, dir, said)
	if !slices.Contains(said, "-compacted") {
		return
	}
	data, err := os.ReadFile(filepath.Join(dir, "data", "errand.db"))
	if err != nil || strings.Contains(string(data), strings.Repeat("key/0", 100)) {
		t.Errorf("got a file with a deleted value after a reported compaction, error %v", err)
	}
}

// A power failure during compaction leaves the old or the new database, and what is stored afterwards is not lost with it.
func TestPowerFailureDuringCompaction(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{Play: churnAndCompact, Check: holdsCompacted})
}

// Each call that writes, syncs or renames fails in turn while the file is compacted. Nothing that was stored is lost, and the compaction
// can be repeated.
func TestFailingCallsDuringCompaction(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]disktest.Kind{"a sync": disktest.Sync, "a write": disktest.Write, "a rename": disktest.Rename} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := 0; ; n++ {
				calls := 0
				disktest.Run(t, disktest.Disk{
					Play: churnAndCompact, Check: holdsCompacted,
					Fail: func(c disktest.Call, said []string) syscall.Errno {
						if len(said) == 0 || said[len(said)-1] != "-compacting" || c.Kind != kind {
							return 0
						}
						if calls++; calls == n+1 {
							return syscall.EIO
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
