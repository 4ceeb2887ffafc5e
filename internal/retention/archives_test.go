package retention

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// newArchive returns a new folder with an archive and a store.
func newArchive(t *testing.T) (dir string, files *archive.Dir, st *store.Store) {
	t.Helper()
	dir = t.TempDir()
	files, err := archive.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st, err = store.Open(t.Context(), db, store.Options{Now: time.Now, Policy: machine.DefaultPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	return dir, files, st
}

// TestPruneArchives: files of a dead process that no task refers to are deleted once no process can be about to refer
// to them.
func TestPruneArchives(t *testing.T) {
	t.Parallel()
	dir, files, st := newArchive(t)
	key := state.TaskKey{Repo: 7, Issue: 1}
	for _, e := range []event.Event{
		{Task: key, By: state.Person{ID: 1, Login: "ada"}, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "x"}}},
		{Task: key, Payload: event.Launched{Launch: state.Launch{Run: "r", VM: state.VM{Name: "vm"}}}},
		{Task: key, Payload: event.Suspended{VM: "vm", Work: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "7-1-named", VM: "vm"}}},
	} {
		if _, err := st.Apply(t.Context(), e, store.Ack{}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	for name, age := range map[string]time.Duration{"7-1-named": 90 * 24 * time.Hour, "7-1-stray": 25 * time.Hour, "7-2-stray": 25 * time.Hour, "7-1-new": time.Hour} {
		path := filepath.Join(dir, "sleeps", name+".tar.zst")
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	c := NewCleaner(Config{Archive: files, Store: st, Log: zerolog.Nop(), AfterEnd: 24 * time.Hour})
	if err := c.pruneArchives(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	left, err := files.Sleeps()
	if err != nil || len(left) != 2 || left[0].Ref != "7-1-named" || left[1].Ref != "7-1-new" {
		t.Errorf("got remaining archives %v, error %v", left, err)
	}
}

// TestPruneAttachments: attachments go with their task, a while after its end, and those that no task uses go at once.
func TestPruneAttachments(t *testing.T) {
	t.Parallel()
	_, files, st := newArchive(t)
	key := state.TaskKey{Repo: 7, Issue: 1}
	apply := func(e event.Event) {
		t.Helper()
		e.Task = key
		if _, err := st.Apply(t.Context(), e, store.Ack{}); err != nil {
			t.Fatal(err)
		}
	}
	ada := state.Person{ID: 1, Login: "ada"}
	apply(event.Event{By: ada, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "x"}}})
	apply(event.Event{Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}}}})
	task, err := st.Task(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := files.SaveAttachment("7-1", []byte("used"))
	if err != nil {
		t.Fatal(err)
	}
	apply(event.Event{Run: task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: task.Run.ID, VM: state.VM{Name: "vm"}, Attachments: []state.Attachment{{ID: "one", SHA256: digest}}}}})
	for task, content := range map[string]string{"7-1": "stray", "7-2": "used"} {
		if _, err := files.SaveAttachment(task, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	c := NewCleaner(Config{Archive: files, Store: st, Log: zerolog.Nop(), AfterEnd: 24 * time.Hour})
	count := func(now time.Time) int {
		t.Helper()
		if err := c.pruneAttachments(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		list, err := files.Attachments()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	now := time.Now()
	if n := count(now); n != 3 {
		t.Errorf("young ones: %d are left, want 3", n)
	}
	if n := count(now.Add(90 * 24 * time.Hour)); n != 1 {
		t.Errorf("of a task that goes on: %d are left, want 1", n)
	}
	apply(event.Event{By: ada, Permission: state.PermissionWrite, At: now, Payload: event.IssueClosed{}})
	if n := count(now.Add(23 * time.Hour)); n != 1 {
		t.Errorf("soon after the end: %d are left, want 1", n)
	}
	if n := count(now.Add(25 * time.Hour)); n != 0 {
		t.Errorf("long after the end: %d are left, want 0", n)
	}
}
