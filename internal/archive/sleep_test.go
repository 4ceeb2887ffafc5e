package archive_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runner/pack"
)

// stream packs a small checkout.
func stream(t *testing.T) ([]byte, pack.Manifest) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command("sh", "-ec", `git init -q -b main work; cd work; git config user.name a; git config user.email a@example.org
		echo one > file; git add file; git commit -qm First; echo two > file; echo new > new; git rev-parse HEAD`)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var b bytes.Buffer
	m, err := pack.Pack(t.Context(), pack.Spec{Dir: filepath.Join(home, "work"), Home: home, Base: strings.TrimSpace(string(out))}, &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), m
}

// writes returns a fill that writes this.
func writes(data []byte, m pack.Manifest) func(io.Writer) (pack.Manifest, error) {
	return func(w io.Writer) (pack.Manifest, error) {
		for len(data) > 0 {
			n, err := w.Write(data[:min(100, len(data))])
			if err != nil {
				return pack.Manifest{}, err
			}
			data = data[n:]
		}
		return m, nil
	}
}

// archiveFiles lists all files of sleep archives.
func archiveFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, "sleeps"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSaveAndOpenArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, m := stream(t)
	first, err := d.SaveSleep("1-7", writes(data, m))
	if err != nil {
		t.Fatal(err)
	}
	if first.Bytes != int64(len(data)) || !cmp.Equal(first.Manifest, m) || first.Ref != "1-7-"+first.SHA256[:16] {
		t.Errorf("saved %+v", first)
	}
	path := filepath.Join(dir, "sleeps", first.Ref+".tar.zst")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || !info.ModTime().Equal(first.Saved) {
		t.Errorf("file %v, %v", info, err)
	}
	other, otherM := stream(t)
	second, err := d.SaveSleep("1-7", writes(other, otherM))
	if err != nil || second.Ref == first.Ref {
		t.Fatalf("another archive of the task: %+v, %v", second, err)
	}
	if again, err := d.SaveSleep("1-7", writes(data, m)); err != nil || again.Ref != first.Ref || again.SHA256 != first.SHA256 {
		t.Errorf("saved again: %+v, %v", again, err)
	}
	old := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	if err := os.Chtimes(filepath.Join(dir, "sleeps", second.Ref+".tar.zst"), old, old); err != nil {
		t.Fatal(err)
	}
	list, err := d.Sleeps()
	if err != nil || len(list) != 2 || list[0].Ref != second.Ref || !list[0].Saved.Equal(old) || list[1].Bytes != first.Bytes {
		t.Errorf("list %+v, %v", list, err)
	}
	f, err := d.OpenSleep(first.Ref, first.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	for range 2 {
		if err := d.DeleteSleep(second.Ref); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.OpenSleep(second.Ref, second.SHA256); !errors.Is(err, archive.ErrNoArchive) {
		t.Errorf("open what was deleted: %v", err)
	}
	if names := archiveFiles(t, dir); len(names) != 1 {
		t.Errorf("left: %q", names)
	}
}

func TestDamagedArchiveIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, m := stream(t)
	s, err := d.SaveSleep("x", writes(data, m))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.OpenSleep(s.Ref, strings.Repeat("0", 64)); !errors.Is(err, archive.ErrDamaged) {
		t.Errorf("open with another digest: %v", err)
	}
	for name, damage := range map[string][]byte{
		"cut": data[:len(data)-1], "empty": nil, "longer": append(bytes.Clone(data), 0), "bit": append([]byte{data[0] ^ 1}, data[1:]...),
	} {
		if err := os.WriteFile(filepath.Join(dir, "sleeps", s.Ref+".tar.zst"), damage, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.OpenSleep(s.Ref, s.SHA256); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestInvalidArchiveIsRefused: incomplete archives leave no files.
func TestInvalidArchiveIsRefused(t *testing.T) {
	t.Parallel()
	data, m := stream(t)
	_, otherM := stream(t)
	broken := errors.New("broken")
	tests := map[string]struct {
		task string
		fill func(io.Writer) (pack.Manifest, error)
		want error
	}{
		"fill fails": {"x", func(w io.Writer) (pack.Manifest, error) {
			_, _ = w.Write(data)
			return m, broken
		}, broken},
		"cut":                 {"x", writes(data[:len(data)/2], m), pack.ErrCut},
		"cut at its end":      {"x", writes(data[:len(data)-1], m), pack.ErrCut},
		"nothing":             {"x", writes(nil, m), pack.ErrCut},
		"garbage":             {"x", writes([]byte(strings.Repeat("garbage", 100)), m), pack.ErrMalformed},
		"of another manifest": {"x", writes(data, otherM), nil},
		"bad name":            {"../x", writes(data, m), nil},
		"long name":           {strings.Repeat("x", 200), writes(data, m), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d, err := archive.Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := d.SaveSleep(test.task, test.fill)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Errorf("saved %+v, error %v, want %v", s, err, test.want)
			}
			if names := archiveFiles(t, dir); len(names) != 0 {
				t.Errorf("left: %q", names)
			}
		})
	}
}

// TestArchivesArePruned: files of a dead process are removed, and archives stay.
func TestArchivesArePruned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, m := stream(t)
	s, err := d.SaveSleep("x", writes(data, m))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".new-1", ".new-2", s.Ref + ".tar.zst"} {
		path := filepath.Join(dir, "sleeps", name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if name != ".new-2" {
			if err := os.Chtimes(path, time.Unix(1000, 0), time.Unix(1000, 0)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if list, err := d.Sleeps(); err != nil || len(list) != 1 {
		t.Errorf("list %+v, %v", list, err)
	}
	if n, err := d.Prune(time.Unix(2000, 0), time.Unix(2000, 0)); err != nil || n != 1 {
		t.Errorf("pruned %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{".new-2", s.Ref + ".tar.zst"}, archiveFiles(t, dir)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}
