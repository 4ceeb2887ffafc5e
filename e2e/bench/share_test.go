package bench

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// BenchmarkLife plays the demo's complete life and measures errand's share of it: the time in which no agent was
// running, including all configured waiting, and the disk space that it leaves in use.
func BenchmarkLife(b *testing.B) {
	for b.Loop() {
		w := world(b, &ledger{}, quick, shortTiming())
		until(b, "errand", func() bool { return w.Server.Store() != nil })
		res := play(b, w)
		task := endedTask(b, w)
		took := task.End.At.Sub(task.History[0].At) // the last edit of the status comment waits for its gap
		var agent time.Duration
		for _, r := range task.Runs {
			agent += r.Ended.Sub(r.Started)
		}
		figure(b, "a life with %d runs: %s, of which agents and checks %s: errand's share is %s (at most 2 s without deliberate waiting, of which it includes a little)",
			res.Runs, took.Round(time.Millisecond), agent.Round(time.Millisecond), (took - agent).Round(time.Millisecond))
		webhooks := len(w.GitHub.Deliveries())
		check(b, w.Stop())
		store, files := diskUsage(b, filepath.Dir(w.ConfigFile()))
		figure(b, "on disk after it: %d kB of store (compacted) for the task and %d webhooks, %d kB of transcripts and changesets", store>>10, webhooks, files>>10)
	}
}

// endedTask returns the only task of a finished life.
func endedTask(b *testing.B, w *demo.World) (task *state.Task) {
	b.Helper()
	until(b, "the end", func() bool {
		list, err := w.Server.Store().AllTasks(b.Context(), state.TaskKey{}, 10)
		check(b, err)
		if len(list) != 1 || !list[0].Ended() {
			return false
		}
		task = list[0]
		return true
	})
	return task
}

// diskUsage returns the size of the store without free pages, and of the files outside it.
func diskUsage(b *testing.B, dir string) (store, files int64) {
	b.Helper()
	data := filepath.Join(dir, "data")
	check(b, filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "local": // sandboxes, which are deleted with their tasks
			return filepath.SkipDir
		case filepath.Ext(path) == ".db":
			store = compacted(b, path)
			return nil
		case e.Type().IsRegular():
			info, err := e.Info()
			if err != nil {
				return err
			}
			files += info.Size()
		}
		return nil
	}))
	return store, files
}

// compacted compacts a store that no process has open, and returns its size.
func compacted(b *testing.B, path string) int64 {
	b.Helper()
	db, err := boltkv.Open(path, boltkv.Options{})
	check(b, err)
	_, after, err := db.Compact(b.Context())
	check(b, errors.Join(err, db.Close()))
	return after
}

// BenchmarkFirstReaction measures the time from an assignment to errand's 👀 with production's timing.
func BenchmarkFirstReaction(b *testing.B) {
	l := &ledger{}
	w := world(b, l, "", nil)
	ada := w.GitHub.As(demo.Maintainer)
	eyes := func() int {
		n := 0
		for _, e := range l.list() {
			if e.kind == "POST /issues/N/reactions" {
				n++
			}
		}
		return n
	}
	var worst time.Duration
	for b.Loop() {
		for n := range 5 {
			i, err := ada.OpenIssue(demo.Full, simgithub.NewIssue{Title: "Slugs end in a hyphen when the title ends in punctuation", Body: "See `Slug`."})
			check(b, err)
			begun := time.Now()
			check(b, ada.Assign(demo.Full, i.Number, demo.Machine))
			until(b, "the 👀", func() bool { return eyes() > n })
			worst = max(worst, time.Since(begun))
		}
		figure(b, "from the assignment to the 👀 on it, with production's timing: %s, the worst of 5 (at most 1 s)", worst.Round(time.Millisecond))
	}
}

// BenchmarkWebhookGrowth measures the disk space of a webhook while its GUID is kept.
func BenchmarkWebhookGrowth(b *testing.B) {
	const many = 100_000
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "errand.db")
		size := func(n int) int64 {
			check(b, os.RemoveAll(path))
			db, err := boltkv.Open(path, boltkv.Options{})
			check(b, err)
			s, err := store.Open(b.Context(), db, store.Options{})
			check(b, err)
			tombstones(b, s, n)
			_, after, err := db.Compact(b.Context())
			check(b, errors.Join(err, db.Close()))
			return after
		}
		per := (size(many) - size(0)) / many
		figure(b, "a webhook uses %d B for the 8 days in which its GUID is kept: %d MB at 10,000 webhooks a day", per, per*80_000>>20)
	}
}
