package bench

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

// BenchmarkCloud plays a complete life with the simulated Hetzner Cloud, which answers at once here, so that the times
// are errand's own: from the decision to plan until the agent's first line on a new VM, and from a review until the
// first line on the VM that replaces the one of a suspended task.
func BenchmarkCloud(b *testing.B) {
	s := prepare(b)
	exe, err := os.Executable()
	check(b, err)
	if _, err := demo.NewMachines(b.Context(), local.Config{Dir: b.TempDir(), Kind: local.KindAuto, Runner: filepath.Join(s.bin, "errand-runner")}); err != nil {
		b.Skipf("skipped: %v", err)
	}
	const soon = -1
	atOnce := simhetzner.Took{Create: soon, FromDisk: soon, FromFar: soon, Start: soon, Stop: soon, Shutdown: soon, Rebuild: soon, Image: soon, Delete: soon, Other: soon}
	for b.Loop() {
		dir := b.TempDir()
		log, err := os.Create(filepath.Join(dir, "errand.log"))
		check(b, err)
		rules, files := withoutCompiler(b)
		w, err := demo.New(b.Context(), demo.Config{
			Dir: dir, BinDir: s.bin, Agent: []string{exe, "simagent"}, StandIn: true, Fast: true, Kind: local.KindAuto, Script: rules, Files: files, Key: rsatest.Key(),
			Log: zerolog.New(log).With().Timestamp().Logger(), Version: "bench", Provider: demo.ProviderHetzner, Took: &atOnce,
		})
		check(b, err)
		play(b, w)
		task := endedTask(b, w)
		counts, all := w.Cloud.Counts()
		b.Logf("requests to the cloud: %v", counts)
		figure(b, "from the decision to plan until the agent's first line on a new VM without the cloud's time: %s (at most 1.5 s)", timeToFirstLine(b, dir, task, state.PhasePreliminaryPlanning))
		figure(b, "from the review until the agent's first line on the replacement VM: %s (at most 1.5 s)", timeToFirstLine(b, dir, task, state.PhaseAddressingReview))
		figure(b, "requests to the cloud for each VM: %d (at most 25)", all/max(len(task.VMs), 1))
		check(b, w.Close())
		check(b, log.Close())
	}
}

// timeToFirstLine returns the time from the beginning of a phase to the first line of its first run.
func timeToFirstLine(b *testing.B, dir string, t *state.Task, p state.Phase) time.Duration {
	b.Helper()
	for _, h := range t.History {
		if h.Phase != p {
			continue
		}
		for _, r := range t.Runs {
			if !r.Started.Before(h.At) {
				return firstLine(b, filepath.Join(dir, "data", "transcripts", r.ID+".jsonl")).Sub(h.At).Round(time.Millisecond)
			}
		}
	}
	b.Fatalf("no run in %s", p)
	return 0
}

// firstLine returns the time of a run's first output by the clock of its VM, which is this host's.
func firstLine(b *testing.B, path string) (at time.Time) {
	b.Helper()
	f, err := os.Open(path)
	check(b, err)
	defer f.Close()
	_, err = runlog.ReadTranscript(f, func(e runlog.Entry) error {
		if at.IsZero() && e.Line != nil && e.Line.Stream == runlog.StreamStdout {
			at = e.Line.Time
		}
		return nil
	})
	check(b, err)
	if at.IsZero() {
		b.Fatalf("%s has no line", path)
	}
	return at
}
