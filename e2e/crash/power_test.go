package crash

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/disktest"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// TestHeavyPowerCut plays a complete life and cuts the power at every call that syncs or renames one of errand's files.
// Each time the store can be opened, and every file that it refers to is complete. A VM is deleted only after the store
// refers to its saved work.
func TestHeavyPowerCut(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	moments, named := 0, map[string]int{}
	disktest.Run(t, disktest.Disk{
		// The simulators and the VMs' files.
		Ignore: []string{"data/local", "data/bake", "data/egress", "github", "secrets"},
		Play: func(t *testing.T, dir string) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
			defer cancel()
			top, err := os.Open(dir)
			if err == nil { // the simulators create errand's directory
				err = errors.Join(os.Mkdir(filepath.Join(dir, "data"), 0o700), top.Sync(), top.Close())
			}
			if err != nil {
				t.Fatal(err)
			}
			script := newScript()
			script.settings += "  idle_vm: 10ms\n" // suspends its VM at once
			l, err := begin(ctx, dir, script)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = l.play.Run(ctx); err != nil {
				t.Errorf("%v\n%s", err, l.report())
			}
			l.gate.open.Store(true)
			if err := l.close(); err != nil {
				t.Error(err)
			}
		},
		Check: func(t *testing.T, dir string, _ []string) {
			data := filepath.Join(dir, "data")
			if info, err := os.Stat(filepath.Join(data, "errand.db")); err != nil || info.Size() == 0 {
				return // not created yet
			}
			moments++
			tasks, err := tasksIn(t.Context(), data)
			if err != nil {
				t.Errorf("open the store after a power cut: %v", err)
				return
			}
			files, err := archive.Open(data, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				for what, err := range namedBy(files, task) {
					if named[what]++; err != nil {
						t.Errorf("%s of %s in %s: %v", what, task.Key, task.Phase, err)
					}
				}
			}
		},
	})
	t.Logf("PROOF: crash: a complete life: %d power cuts, after which these files were checked: %v", moments, named)
	if moments < 100 || named["the work of a VM"] == 0 || named["a changeset"] == 0 {
		t.Errorf("too few files were checked: %d moments, files: %v", moments, named)
	}
}

// tasksIn reads all tasks of a store.
func tasksIn(ctx context.Context, data string) ([]*state.Task, error) {
	db, err := boltkv.Open(filepath.Join(data, "errand.db"), boltkv.Options{LockWait: time.Second})
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, db, store.Options{})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	tasks, err := st.AllTasks(ctx, state.TaskKey{}, 100)
	return tasks, errors.Join(err, db.Close())
}

// namedBy opens all files that a task refers to.
func namedBy(files *archive.Dir, task *state.Task) map[string]error {
	found := map[string]error{}
	if a := task.Suspended; a != nil && a.Mode == settings.SleepArchive {
		f, err := files.OpenSleep(a.Ref, a.SHA256)
		if err == nil {
			err = f.Close()
		}
		found["the work of a VM"] = err
	}
	if task.Work != nil && task.Work.Ref != "" {
		_, err := files.LoadChangeset(task.Work.Ref)
		found["a changeset"] = err
	}
	for _, saved := range task.Saved {
		_, err := files.LoadChangeset(saved.Ref)
		found["saved work"] = err
	}
	return found
}
