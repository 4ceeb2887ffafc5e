package doctor_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/doctor"
)

// TestStoreProblems: only damage is called damage.
func TestStoreProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status doctor.Status
		fix    string
	}{
		"intact":      {nil, doctor.OK, ""},
		"damage":      {errors.New("page 5: unreachable unfreed"), doctor.Failed, "errand restore --force FILE"},
		"out of time": {context.DeadlineExceeded, doctor.Skipped, ""},
		"other user":  {&fs.PathError{Op: "open", Path: "errand.db", Err: fs.ErrPermission}, doctor.Failed, "as the user that runs errand"},
		"in use":      {doctor.ErrInUse, doctor.Failed, "restart errand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := doctor.Host{Data: t.TempDir(), Integrity: func(context.Context) error { return c.err }}
			got := findings(t, doctor.HostCheck(h), "host.store")
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Fix, c.fix) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestHostIsNotChanged: the checks change nothing, not even the time of the data folder. Devices and pipes are no files of secrets.
func TestHostIsNotChanged(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(data, old, old); err != nil {
		t.Fatal(err)
	}
	h := doctor.Host{Data: data, Secrets: map[string]string{"admin.token": "/dev/null"}}
	for _, check := range []string{"host.data", "host.secrets"} {
		if got := findings(t, doctor.HostCheck(h), check); len(got) != 1 || got[0].Status != doctor.OK {
			t.Errorf("got %+v", got)
		}
	}
	if info, err := os.Stat(data); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the folder was changed at %v: %v", info.ModTime(), err)
	}
	h.Data = filepath.Join(data, "not", "there", "yet")
	if got := findings(t, doctor.HostCheck(h), "host.data"); len(got) != 1 || got[0].Status != doctor.OK {
		t.Errorf("got %+v", got)
	}
}

// TestRootExaminesAnotherUsersErrand: root's check does not say that errand runs as root if another user owns the data.
func TestRootExaminesAnotherUsersErrand(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give folders away")
	}
	data := t.TempDir()
	for uid, want := range map[int]doctor.Status{0: doctor.Warning, 65534: doctor.Note} {
		if err := os.Chown(data, uid, -1); err != nil {
			t.Fatal(err)
		}
		got := findings(t, doctor.HostCheck(doctor.Host{Data: data, Root: true}), "host.user")
		if len(got) != 1 || got[0].Status != want {
			t.Errorf("user %d: got %+v", uid, got)
		}
	}
}

// TestFixedModesAreUsable: what everybody can read and nobody can write is, after one correction, errand's alone, and errand can write it.
func TestFixedModesAreUsable(t *testing.T) {
	t.Parallel()
	h := doctor.Host{Data: t.TempDir()}
	file := filepath.Join(h.Data, "errand.db")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(file, 0o444), os.Chmod(h.Data, 0o555)); err != nil {
		t.Fatal(err)
	}
	_, err := h.FixModes()
	if err == nil {
		_, err = h.FixModes() // what could not be seen before
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{file: 0o600, h.Data: 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}
