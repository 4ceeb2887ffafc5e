package backup

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// folder is a data folder with an open store.
type folder struct {
	dir string
	db  *boltkv.DB
}

// newDataFolder returns a data folder with some files, and a store with a key.
func newDataFolder(t *testing.T, dir string) *folder {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(dir, storeName), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	f := &folder{dir, db}
	f.put(t, "task/1", "one")
	for name, text := range map[string]string{
		"client_key":                  "a key",
		"sleeps/7-1-a.tar.zst":        "work",
		"sleeps/.new-123":             "half",
		"transcripts/r.jsonl":         "{}\n",
		"local/box/home/file":         "a sandbox",
		"bake/copies/x":               "a copy",
		"before-restore-x/client_key": "an old key",
	} {
		f.write(t, name, text)
	}
	return f
}

func (f *folder) put(t *testing.T, key, value string) {
	t.Helper()
	if err := kv.Update(t.Context(), f.db, "test", func(tx kv.Tx) error { return tx.Put(key, []byte(value)) }); err != nil {
		t.Fatal(err)
	}
}

func (f *folder) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, noon, noon)); err != nil {
		t.Fatal(err)
	}
}

func (f *folder) source() Source {
	return Source{
		Data: f.dir, Store: f.db, Info: Info{Errand: "v1.2.3", At: noon, Deployment: "prod", App: 7},
		Schema: func(context.Context) (int, error) { return 2, nil },
	}
}

// take returns a copy that is closed at the test's end.
func (f *folder) take(t *testing.T) *Copy {
	t.Helper()
	c, err := Take(t.Context(), f.source())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// archived returns the archive of a folder.
func (f *folder) archived(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	c := f.take(t)
	if err := errors.Join(c.WriteTo(t.Context(), &b), c.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// files returns the content of the files in an archive, but for the store.
func files(t *testing.T, data []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	_, err := Read(t.Context(), bytes.NewReader(data), func(name string, _ time.Time, r io.Reader) error {
		b, err := io.ReadAll(r)
		if name != storeName {
			got[name] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestBackupHasStoreAndFiles: the archive has what the documentation lists, and describes itself.
func TestBackupHasStoreAndFiles(t *testing.T) {
	t.Parallel()
	f := newDataFolder(t, t.TempDir())
	data := f.archived(t)
	want := map[string]string{"client_key": "a key", "sleeps/7-1-a.tar.zst": "work", "transcripts/r.jsonl": "{}\n"}
	if d := cmp.Diff(want, files(t, data)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	c, err := Read(t.Context(), bytes.NewReader(data), nil)
	info := Info{Format: 1, Errand: "v1.2.3", Schema: 2, At: noon, Deployment: "prod", App: 7}
	if err != nil || c.Info != info || c.Files != 4 {
		t.Errorf("got %+v, %v", c, err)
	}
	if got := info.FileName(); got != "errand-prod-7-20261121-120000Z.tar.zst" {
		t.Errorf("got file name %s", got)
	}
}

// TestCopyIsOfOneMoment: what changes after the copy was taken is not in the archive: the store, files that grow, new files, and files
// that are deleted. Afterwards nothing is left of the copy.
func TestCopyIsOfOneMoment(t *testing.T) {
	t.Parallel()
	f := newDataFolder(t, t.TempDir())
	c := f.take(t)
	f.put(t, "task/2", "two")
	f.write(t, "attachments/new", "new")
	grow, err := os.OpenFile(filepath.Join(f.dir, "transcripts/r.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = grow.WriteString("more")
	if err = errors.Join(err, grow.Close(), os.Remove(filepath.Join(f.dir, "sleeps/7-1-a.tar.zst"))); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := c.WriteTo(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"client_key": "a key", "sleeps/7-1-a.tar.zst": "work", "transcripts/r.jsonl": "{}\n"}
	if d := cmp.Diff(want, files(t, b.Bytes())); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	to := t.TempDir()
	restoreInto(t, to, b.Bytes())
	if got := keys(t, to); !slices.Equal(got, []string{"task/1"}) {
		t.Errorf("got keys %v", got)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(f.dir, tempPrefix+"*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// keys lists the keys of the store in a folder.
func keys(t *testing.T, dir string) (list []string) {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(dir, storeName), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.Scan(t.Context(), "", "", 0, func(p kv.Pair) error { list = append(list, p.Key); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestBackupIsRefused: what a backup would silently lack, or could not be restored, is an error that names it, and nothing is left.
func TestBackupIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(f *folder) error
		want  string
	}{
		"a symbolic link to a folder": {func(f *folder) error { return os.Symlink("/tmp", filepath.Join(f.dir, "egress")) }, "egress is a symbolic link"},
		"a symbolic link to a file":   {func(f *folder) error { return os.Symlink("r.jsonl", filepath.Join(f.dir, "transcripts/s")) }, "transcripts/s is a symbolic link"},
		"a line break in a name":      {func(f *folder) error { return os.WriteFile(filepath.Join(f.dir, "a\nb"), nil, 0o600) }, "move it elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDataFolder(t, t.TempDir())
			if err := c.spoil(f); err != nil {
				t.Fatal(err)
			}
			if _, err := Take(t.Context(), f.source()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v", err)
			}
			if left, _ := filepath.Glob(filepath.Join(f.dir, tempPrefix+"*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestShortenedFileFailsTheBackup: a file that lost its end while it was read is not passed off as complete.
func TestShortenedFileFailsTheBackup(t *testing.T) {
	t.Parallel()
	f := newDataFolder(t, t.TempDir())
	c := f.take(t)
	if err := os.Truncate(filepath.Join(f.dir, "transcripts/r.jsonl"), 1); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteTo(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "transcripts/r.jsonl became shorter") {
		t.Errorf("got error %v", err)
	}
}

// TestCleanRemovesUnfinishedCopies: those of a dead process, and nothing else.
func TestCleanRemovesUnfinishedCopies(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "da[t]a*")
	f := newDataFolder(t, dir)
	f.write(t, ".backup-1/transcripts/r.jsonl", "{}\n")
	if err := Clean(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".backup-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if len(files(t, f.archived(t))) != 3 {
		t.Error("files are gone")
	}
}

// TestBackupUnderLoad: each of many backups, made while files are written, referred to in the store and deleted, has every file to
// which its store refers.
func TestBackupUnderLoad(t *testing.T) {
	t.Parallel()
	f := newDataFolder(t, t.TempDir())
	d, err := archive.Open(f.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	for w := range 4 {
		workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				task := fmt.Sprintf("%d-%d", w, n)
				digest, err := d.SaveAttachment(task, []byte(task))
				if err == nil {
					err = kv.Update(ctx, f.db, "refer", func(tx kv.Tx) error { return tx.Put("ref/"+task+"-"+digest, []byte("x")) })
				}
				if err == nil {
					err = kv.Update(ctx, f.db, "forget", func(tx kv.Tx) error { return tx.Delete("ref/" + task + "-" + digest) })
				}
				if err == nil {
					err = d.DeleteAttachment(task + "-" + digest)
				}
				if err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	s := f.source()
	s.Hold = d.HoldDeletions
	refs := 0
	for range 25 {
		c, err := Take(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(c.WriteTo(t.Context(), &b), c.Close()); err != nil {
			t.Fatal(err)
		}
		have, to := files(t, b.Bytes()), t.TempDir()
		restoreInto(t, to, b.Bytes())
		for _, key := range keys(t, to) {
			ref, ok := strings.CutPrefix(key, "ref/")
			if _, there := have["attachments/"+ref+".bin"]; ok && !there {
				t.Errorf("the file of %s is missing", ref)
			}
			if ok {
				refs++
			}
		}
	}
	stop()
	workers.Wait()
	if refs == 0 {
		t.Error("no backup had a reference: nothing was tested")
	}
}

// TestBackupSparesTheDisk: a backup that would fill the disk of the data folder is refused before the store is copied, or ends before the
// archive fills the disk. Nothing of it remains.
func TestBackupSparesTheDisk(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		free   []uint64 // at each check; the last one from then on
		taken  bool
		failed bool
	}{
		"enough":                    {free: []uint64{1 << 40}, taken: true},
		"not enough for the store":  {free: []uint64{reserve}},
		"filled by the archive":     {free: []uint64{1 << 40, 1 << 40, reserve}, taken: true, failed: true},
		"filled while it is copied": {free: []uint64{1 << 40, reserve}, taken: true, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newDataFolder(t, t.TempDir())
			noise := make([]byte, 3*checkEvery) // cannot be compressed
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			f.write(t, "transcripts/large", string(noise))
			source, checks := f.source(), 0
			source.Free = func(path string) (uint64, error) {
				checks++
				return test.free[min(checks, len(test.free))-1], nil
			}
			c, err := Take(t.Context(), source)
			if (err == nil) != test.taken || err != nil && !errors.Is(err, ErrNoSpace) {
				t.Fatalf("got error %v", err)
			}
			to := filepath.Join(t.TempDir(), "backup")
			if err == nil {
				_, err = Save(t.Context(), to, func(ctx context.Context, w io.Writer) error { return errors.Join(c.WriteTo(ctx, w), c.Close()) })
				if failed := errors.Is(err, ErrNoSpace); failed != test.failed || err != nil && !failed {
					t.Errorf("got error %v", err)
				}
			}
			left, gerr := filepath.Glob(filepath.Join(f.dir, tempPrefix+"*"))
			parts, derr := os.ReadDir(filepath.Dir(to))
			if gerr != nil || derr != nil || len(left) > 0 || (len(parts) > 0) != (err == nil) {
				t.Errorf("left: %q and %q (%v, %v)", left, parts, gerr, derr)
			}
		})
	}
}
