package backup

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// scheduled returns a schedule into a new folder whose backups have no files but the store, and how often it tried. fails may be nil.
func scheduled(t *testing.T, fails func(try int) bool) (*Schedule, *int) {
	t.Helper()
	folder, tries := t.TempDir(), new(int)
	if err := os.Chmod(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	whole := newDataFolder(t, t.TempDir()).archived(t)
	return &Schedule{
		Folder: folder, Data: t.TempDir(), Every: 24 * time.Hour, Keep: 2, Now: time.Now,
		Info: func() Info { return Info{Deployment: "demo", App: 7, At: time.Now()} },
		Make: func(_ context.Context, w io.Writer) error {
			*tries++
			data := whole
			if fails != nil && fails(*tries) {
				data = whole[:len(whole)/2]
			}
			_, err := w.Write(data)
			return err
		},
	}, tries
}

// in returns the names in the folder.
func (s *Schedule) in(t *testing.T) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// runFor runs the schedule for a while.
func (s *Schedule) runFor(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestScheduledBackups: a backup is made at once, and then each day, also across restarts. Only older backups of this deployment and App are
// deleted.
func TestScheduledBackups(t *testing.T) {
	t.Parallel()
	s, tries := scheduled(t, nil)
	others := []string{
		"errand-demo-7-20000101-000000Z.tar.zst.part", "errand-demo-2-7-20000101-000000Z.tar.zst", "errand-other-7-20000101-000000Z.tar.zst", "errand-demo-8-20000101-000000Z.tar.zst",
		"errand-demo-20000101-000000Z.tar.zst", "errand-demo-7-now.tar.zst", "notes.txt", "x.tar.zst",
	}
	for _, name := range others {
		if err := os.WriteFile(filepath.Join(s.Folder, name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := "errand-demo-7-20000101-000001Z.tar.zst" // a folder
	if err := os.Mkdir(filepath.Join(s.Folder, dir), 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var newest time.Time
		s.Made = func(at time.Time) { newest = at }
		s.runFor(t, 47*time.Hour)
		s.runFor(t, 48*time.Hour) // after a restart
		want := append(slices.Clone(others), dir)
		for _, day := range []int{2, 3} {
			want = append(want, Info{Deployment: "demo", App: 7, At: began.Add(time.Duration(day) * 24 * time.Hour)}.FileName())
		}
		got := s.in(t)
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in the folder (-want +got):\n%s", diff)
		}
		if *tries != 4 || !newest.Equal(began.Add(72*time.Hour)) {
			t.Errorf("got %d backups, the newest of %v", *tries, newest)
		}
	})
}

// TestFailedScheduledBackups: a backup that fails, or cannot be read back, is repeated soon, and deletes nothing; a clock that was wrong
// neither stops nor hurries the next ones.
func TestFailedScheduledBackups(t *testing.T) {
	t.Parallel()
	s, tries := scheduled(t, func(try int) bool { return try > 3 })
	s.Keep = 2
	synctest.Test(t, func(t *testing.T) {
		future := Info{Deployment: "demo", App: 7, At: time.Now().Add(1000 * time.Hour)}.FileName()
		if err := os.WriteFile(filepath.Join(s.Folder, future), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s.runFor(t, 71*time.Hour)
		if *tries != 3 {
			t.Errorf("got %d backups in 71 hours", *tries)
		}
		before := s.in(t)
		if err := s.Failure(); err != nil {
			t.Errorf("got failure %v", err)
		}
		s.runFor(t, 119*time.Minute)
		if err := s.Failure(); !errors.Is(err, ErrDamaged) {
			t.Errorf("got failure %v", err)
		}
		if *tries != 7 { // after an hour, and then each quarter
			t.Errorf("got %d tries", *tries)
		}
		if diff := cmp.Diff(before, s.in(t)); diff != "" || len(before) != 3 {
			t.Errorf("in the folder after failures (-before +after):\n%s", diff)
		}
	})
}

func TestFoldersForBackupsAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(s *Schedule) error
		want   string
	}{
		"a good one": {func(*Schedule) error { return nil }, ""},
		"missing":    {func(s *Schedule) error { return os.Remove(s.Folder) }, "does not exist; create it"},
		"a file": {func(s *Schedule) error {
			return errors.Join(os.Remove(s.Folder), os.WriteFile(s.Folder, nil, 0o600))
		}, "is not a folder"},
		"open to others":     {func(s *Schedule) error { return os.Chmod(s.Folder, 0o750) }, "chmod 0700"},
		"the data folder":    {func(s *Schedule) error { s.Folder = s.Data; return os.Chmod(s.Data, 0o700) }, "is inside the data folder"},
		"in the data folder": {func(s *Schedule) error { s.Folder = filepath.Join(s.Data, "b"); return os.Mkdir(s.Folder, 0o700) }, "is inside the data folder"},
		"a link to that": {func(s *Schedule) error {
			in := filepath.Join(s.Data, "b")
			s.Folder += "/link"
			return errors.Join(os.Mkdir(in, 0o700), os.Symlink(in, s.Folder))
		}, "is inside the data folder"},
		"one with a similar name": {func(s *Schedule) error { s.Folder = s.Data + "..b"; return os.Mkdir(s.Folder, 0o700) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := scheduled(t, nil)
			if err := test.change(s); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(os.Geteuid()); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}
