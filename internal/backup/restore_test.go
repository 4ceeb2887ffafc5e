package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

func restoring(to string) Restoring {
	return Restoring{
		Data: to, App: 7, Deployment: "prod", Now: func() time.Time { return noon },
		Prepare: func(context.Context, string, Info) error { return nil },
	}
}

func restoreInto(t *testing.T, to string, data []byte) {
	t.Helper()
	if _, err := Restore(t.Context(), bytes.NewReader(data), restoring(to)); err != nil {
		t.Fatal(err)
	}
}

// tree lists the files below a folder with their content, but for stores.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || filepath.Base(name) == storeName {
			return err
		}
		text, err := os.ReadFile(path)
		got[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestRestore: the restored folder is that of the backup, for its owner only, with the times of the files.
func TestRestore(t *testing.T) {
	t.Parallel()
	f := newDataFolder(t, t.TempDir())
	data := f.archived(t)
	to := filepath.Join(t.TempDir(), "a", "data")
	done, err := Restore(t.Context(), bytes.NewReader(data), restoring(to))
	if err != nil || done.Files != 4 || done.Before != "" {
		t.Fatalf("got %+v, %v", done, err)
	}
	if got := tree(t, to); len(got) != 3 || got["client_key"] != "a key" || got["sleeps/7-1-a.tar.zst"] != "work" {
		t.Errorf("got %v", got)
	}
	if got := keys(t, to); !slices.Equal(got, []string{"task/1"}) {
		t.Errorf("got keys %v", got)
	}
	for name, mode := range map[string]os.FileMode{"": os.ModeDir | 0o700, "sleeps": os.ModeDir | 0o700, "client_key": 0o600, storeName: 0o600} {
		info, err := os.Stat(filepath.Join(to, name))
		if err != nil || info.Mode() != mode || name == "client_key" && !info.ModTime().Equal(noon) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := Unfinished(to); err != nil {
		t.Error(err)
	}
}

// TestRestoreIsRefused: nothing is changed without --force; with it, the earlier content is kept, and so are sandboxes.
func TestRestoreIsRefused(t *testing.T) {
	t.Parallel()
	data := newDataFolder(t, t.TempDir()).archived(t)
	for name, c := range map[string]struct {
		there   []string
		change  func(*Restoring)
		reasons int
	}{
		"an empty folder":    {},
		"only sandboxes":     {there: []string{"local/box/x"}},
		"a disk's own":       {there: []string{"lost+found/x"}},
		"a used folder":      {there: []string{"client_key"}, reasons: 1},
		"another App":        {change: func(r *Restoring) { r.App = 8 }, reasons: 1},
		"another deployment": {change: func(r *Restoring) { r.Deployment = "test" }, reasons: 1},
		"everything": {there: []string{"client_key", "local/box/x"}, reasons: 3, change: func(r *Restoring) {
			r.App, r.Deployment = 8, "test"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &folder{dir: t.TempDir()}
			for _, name := range c.there {
				to.write(t, name, "old")
			}
			r := restoring(to.dir)
			if c.change != nil {
				c.change(&r)
			}
			_, err := Restore(t.Context(), bytes.NewReader(data), r)
			var refused *RefusedError
			switch {
			case c.reasons == 0 && err == nil:
				return
			case !errors.As(err, &refused) || len(refused.Reasons) != c.reasons:
				t.Fatalf("got error %v", err)
			}
			if got := tree(t, to.dir); len(got) != len(c.there) {
				t.Errorf("changed in spite of that: %v", got)
			}
			r.Force = true
			done, err := Restore(t.Context(), bytes.NewReader(data), r)
			got := tree(t, to.dir)
			if err != nil || got["client_key"] != "a key" {
				t.Errorf("forced: %v, %v", err, got)
			}
			for _, name := range c.there {
				if strings.HasPrefix(name, "local/") {
					if got[name] != "old" {
						t.Errorf("%s is gone", name)
					}
				} else if old := filepath.Join(done.Before, name); got[strings.TrimPrefix(old, to.dir+"/")] != "old" {
					t.Errorf("%s is gone: %v", old, got)
				}
			}
		})
	}
}

// TestRestoreWhileErrandRuns: the data folder of a running errand is not touched.
func TestRestoreWhileErrandRuns(t *testing.T) {
	t.Parallel()
	f := newDataFolder(t, t.TempDir())
	data := f.archived(t)
	before := tree(t, f.dir)
	r := restoring(f.dir)
	r.Force = true
	if _, err := Restore(t.Context(), bytes.NewReader(data), r); !errors.Is(err, boltkv.ErrLocked) {
		t.Errorf("got error %v", err)
	}
	if got := tree(t, f.dir); len(got) != len(before) {
		t.Errorf("got %v", got)
	}
	f.put(t, "task/2", "the store still works")
}

// TestFailedRestoreChangesNothing: a damaged archive, a store that cannot be prepared, and an interruption leave the folder as it was.
func TestFailedRestoreChangesNothing(t *testing.T) {
	t.Parallel()
	data := newDataFolder(t, t.TempDir()).archived(t)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		data   []byte
		change func(*Restoring)
		want   error
	}{
		"damaged":    {data: data[:len(data)-5], want: ErrDamaged},
		"unprepared": {data: data, want: broken, change: func(r *Restoring) { r.Prepare = func(context.Context, string, Info) error { return broken } }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := &folder{dir: t.TempDir()}
			to.write(t, "client_key", "old")
			r := restoring(to.dir)
			r.Force = true
			if c.change != nil {
				c.change(&r)
			}
			if _, err := Restore(t.Context(), bytes.NewReader(c.data), r); !errors.Is(err, c.want) {
				t.Errorf("got error %v", err)
			}
			got := tree(t, to.dir)
			entries, err := os.ReadDir(to.dir)
			if err != nil || len(entries) != 1 || len(got) != 1 || got["client_key"] != "old" {
				t.Errorf("got %v, %v, %v", entries, got, err)
			}
		})
	}
}

// TestRestoreAfterPowerCut: at every moment either errand refuses to start, or the folder is complete: the old one or the new one.
func TestRestoreAfterPowerCut(t *testing.T) {
	t.Parallel()
	disktest.Run(t, disktest.Disk{
		Play: func(t *testing.T, dir string) {
			old := newDataFolder(t, filepath.Join(dir, "old"))
			data := old.archived(t)
			to := newDataFolder(t, filepath.Join(dir, "data"))
			to.put(t, "task/2", "two")
			to.write(t, "client_key", "old")
			if err := to.db.Close(); err != nil {
				t.Fatal(err)
			}
			disktest.Say("ready")
			r := restoring(to.dir)
			r.Force = true
			if _, err := Restore(t.Context(), bytes.NewReader(data), r); err != nil {
				t.Error(err)
			}
			disktest.Say("restored")
		},
		Check: func(t *testing.T, dir string, said []string) {
			to := filepath.Join(dir, "data")
			if len(said) == 0 || Unfinished(to) != nil {
				return
			}
			got, stored := tree(t, to), len(keys(t, to))
			switch {
			case len(said) == 1 && stored == 2: // the old one; only its store was synced
			case stored != 1 || got["client_key"] != "a key" || got["sleeps/7-1-a.tar.zst"] != "work":
				t.Errorf("got %d keys and %v after %v", stored, got, said)
			}
		},
		Ignore: []string{"old"},
	})
}

// TestInterruptedRestoreIsRepeated: a second attempt, even in the same second, completes it, and keeps what the first one replaced.
func TestInterruptedRestoreIsRepeated(t *testing.T) {
	t.Parallel()
	data := newDataFolder(t, t.TempDir()).archived(t)
	to := &folder{dir: t.TempDir()}
	r := restoring(to.dir)
	before := filepath.Base(beforePrefix + noon.Format(nameTime))
	for name, text := range map[string]string{
		unfinished: "", newFolder + "/transcripts/r.jsonl": "half", "client_key": "of the first attempt", before + "/client_key": "old",
	} {
		to.write(t, name, text)
	}
	if Unfinished(to.dir) == nil {
		t.Error("errand would start")
	}
	var refused *RefusedError
	if _, err := Restore(t.Context(), bytes.NewReader(data), r); !errors.As(err, &refused) {
		t.Errorf("got error %v", err)
	}
	r.Force = true
	if _, err := Restore(t.Context(), bytes.NewReader(data), r); err != nil || Unfinished(to.dir) != nil {
		t.Errorf("got error %v, %v", err, Unfinished(to.dir))
	}
	got := tree(t, to.dir)
	if got["client_key"] != "a key" || got[before+"/client_key"] != "old" || got[before+"-2/client_key"] != "of the first attempt" || len(got) != 5 {
		t.Errorf("got %v", got)
	}
}

// TestFullDisk: neither a backup nor a restore leaves anything on a disk that fills up, and both succeed when there is space again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disktest.Small(t, 4<<20, func(t *testing.T, dir string) {
		f := newDataFolder(t, filepath.Join(dir, "data"))
		f.write(t, "sleeps/large", noise(200_000))
		data, to := f.archived(t), filepath.Join(dir, "to")
		save := func() error {
			_, err := Save(t.Context(), filepath.Join(dir, "file"), func(_ context.Context, w io.Writer) error {
				_, err := w.Write(data)
				return err
			})
			return err
		}
		restore := func() error {
			_, err := Restore(t.Context(), bytes.NewReader(data), restoring(to))
			return err
		}
		take := func() error {
			c, err := Take(t.Context(), f.source())
			if err != nil {
				return err
			}
			return c.Close()
		}
		free := disktest.Fill(t, dir, 8<<10)
		all := map[string]func() error{"a copy": take, "a restore": restore, "a file": save}
		for name, do := range all {
			if err := do(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%s: got error %v", name, err)
			}
		}
		free()
		if entries, err := os.ReadDir(to); err == nil && len(entries) > 0 {
			t.Errorf("left behind: %v", entries)
		}
		if _, err := os.Stat(filepath.Join(dir, "file")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a file is left behind: %v", err)
		}
		if left, _ := filepath.Glob(filepath.Join(f.dir, tempPrefix+"*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		for name, do := range all {
			if err := do(); err != nil {
				t.Errorf("%s with space: %v", name, err)
			}
		}
		if err := f.db.Close(); err != nil {
			t.Error(err)
		}
	})
}

// noise returns bytes that cannot be compressed.
func noise(n int) string {
	b := make([]byte, n)
	rnd := rand.NewChaCha8([32]byte{})
	_, _ = rnd.Read(b) // it has no errors
	return string(b)
}
