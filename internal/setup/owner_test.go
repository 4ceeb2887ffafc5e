package setup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/setup"
)

// TestOnlyOwnFilesAreHandedOver lists folders that may be given to another user, and others that have something else.
func TestOnlyOwnFilesAreHandedOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files, want string // a name that ends in / is a folder, one that ends in @ a symbolic link
	}{
		{"", ""}, {"config.yml config.yml.20260101-000000.old setup.json setup.lock setup.reserve .new-123", ""},
		{"model-key.20260101-000000.old admin-token app.pem client-secret hetzner-token model-key webhook-secret data/", ""},
		{"config.yml passwd", "passwd"}, {".bashrc config.yml", ".bashrc"}, {"data/ other/", "other"}, {"config.yml/", "config.yml"},
		{"app.pem@", "app.pem"}, {"app.pem.20260101-000000.old webhook-secret.20260101-000000.old", ""}, {"shadow.20260101-000000.old", "shadow.20260101-000000.old"}, {".old", ".old"},
		{"config.yml.old.d", "config.yml.old.d"}, {"data@", "data"},
	} {
		dir := t.TempDir()
		for name := range strings.FieldsSeq(c.files) {
			path, err := filepath.Join(dir, strings.TrimRight(name, "/@")), error(nil)
			switch name[len(name)-1] {
			case '/':
				err = os.Mkdir(path, 0o700)
			case '@':
				err = os.Symlink("/", path)
			default:
				err = os.WriteFile(path, nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := setup.FirstForeign(dir, filepath.Join(dir, "data"), entries); got != c.want {
			t.Errorf("%s: got %q, want %q", c.files, got, c.want)
		}
	}
}

// nobody is the user to whom root gives the files in tests.
func nobody(t *testing.T) *user.User {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	return who
}

// wantOwner checks to whom files belong.
func wantOwner(t *testing.T, uid string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || strconv.Itoa(int(stat.Uid)) != uid {
			t.Errorf("%s belongs to user %d, not to %s", path, stat.Uid, uid)
		}
	}
}

// all returns a folder and all that is in it.
func all(t *testing.T, dir string) (paths []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestFilesAreHandedOver has root set up errand for another user, also if a check fails in the end.
func TestFilesAreHandedOver(t *testing.T) {
	t.Parallel()
	who := nobody(t)
	for _, failed := range [][]string{nil, {"github.app"}} {
		o := newOffice(t)
		o.opts.Skip = []string{"installation", "webhook", "repositories"}
		o.answers["user"], o.failed = who.Username, failed
		o.answers["agent_program"] = "install"
		o.env.Install = func(_ context.Context, dir, _ string) error {
			return os.MkdirAll(filepath.Join(dir, "claude", "deep"), 0o755)
		}
		if err := o.run(); (err != nil) != (failed != nil) {
			t.Fatalf("%v\n%s", err, o.screen)
		}
		wantOwner(t, who.Uid, append(all(t, o.dir), o.path("data"))...)
		if err := o.run(); err == nil || !strings.Contains(err.Error(), o.dir+" belongs to nobody: run this as that user: `sudo -u nobody errand setup --dir "+o.dir) {
			t.Errorf("root again: %v", err)
		}
	}
}

// TestFoldersOfOthersAreKept has root name folders that are not errand's own: nothing in them changes its owner.
func TestFoldersOfOthersAreKept(t *testing.T) {
	t.Parallel()
	who := nobody(t)
	for _, which := range []string{"dir", "data"} {
		o := newOffice(t)
		o.opts.Skip = []string{"installation", "webhook", "repositories"}
		o.answers["user"] = who.Username
		dir := map[string]string{"dir": o.dir, "data": o.path("data")}[which]
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "shadow"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.run(); err == nil || !strings.Contains(err.Error(), dir+" cannot be given to user nobody, because of \"shadow\"") {
			t.Errorf("%s: the setup ended with %v", which, err)
		}
		if text := fmt.Sprint(o.screen); strings.Contains(text, "[1/") {
			t.Errorf("%s: the setup began with its steps:\n%s", which, text)
		}
		wantOwner(t, "0", append(all(t, o.dir), all(t, dir)...)...)
	}
}

// TestParentsOfFoldersCanBePassed checks the modes of folders that a setup creates.
func TestParentsOfFoldersCanBePassed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.opts.Skip = []string{"installation", "webhook", "repositories"}
	above := filepath.Join(t.TempDir(), "srv")
	o.dir = filepath.Join(above, "errand")
	o.opts.Dir = o.dir
	if err := o.run(); err != nil {
		t.Fatalf("%v\n%s", err, o.screen)
	}
	for path, want := range map[string]fs.FileMode{above: 0o755, o.dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, info.Mode(), err, want)
		}
	}
}

// TestRootTrustsOnlyItsOwnFiles plants files of another user, and a symbolic link in place of the lock.
func TestRootTrustsOnlyItsOwnFiles(t *testing.T) {
	t.Parallel()
	who := nobody(t)
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.yml", "setup.json", "setup.lock"} {
		o := newOffice(t)
		if err := os.Mkdir(o.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path, want := filepath.Join(o.dir, name), name+" belongs to nobody"
		err := os.WriteFile(path, []byte("{}"), 0o600)
		if name == "setup.lock" {
			want = "lock the folder of the setup"
			err = errors.Join(os.Remove(path), os.Symlink(o.path("planted"), path))
		}
		if err = errors.Join(err, os.Lchown(path, uid, -1)); err != nil {
			t.Fatal(err)
		}
		if err := o.run(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the setup ended with %v", name, err)
		}
		if _, err := os.Stat(o.path("planted")); err == nil {
			t.Error("the symbolic link was followed")
		}
	}
}
