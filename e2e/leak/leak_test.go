package leak_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/vm"
)

// failureOdds holds the probabilities of failures in these tests.
func failureOdds() chances {
	return chances{kill: 8, lost: 15, failed: 10, late: 150, lie: 15, twin: 100, deaf: 300}
}

const (
	tasksPerSeed = 3
	stepsPerSeed = 40
)

// life plays random actions of tasks on their VMs with random failures, and then lets everything settle.
func (w *world) life() {
	for i := range tasksPerSeed {
		key := state.TaskKey{Repo: int64(1 + i%2), Issue: i + 1}
		w.store.tasks[key] = &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	}
	keys := slices.SortedFunc(maps.Keys(w.store.tasks), func(a, b state.TaskKey) int { return a.Issue - b.Issue })
	w.start()
	for range stepsPerSeed {
		if w.dice.IntN(4) == 0 {
			w.drawStock()
		}
		task := w.store.tasks[keys[w.dice.IntN(len(keys))]]
		if w.dice.IntN(3) == 0 {
			_ = w.fleet.Run(w.contextFor(time.Duration(1+w.dice.IntN(40)) * time.Minute))
		} else {
			w.step(task)
		}
		w.mu.Lock()
		dead := w.dead
		w.mu.Unlock()
		if dead {
			w.clock.Advance(time.Duration(w.dice.IntN(120)) * time.Second)
			w.start()
		}
	}
	w.settle(keys)
}

// drawStock makes capacity available or unavailable.
func (w *world) drawStock() {
	left := -1
	if w.dice.IntN(2) == 0 {
		left = w.dice.IntN(2)
	}
	w.sim.SetStock("cx43", []string{"fsn1", "nbg1"}[w.dice.IntN(2)], left)
}

// step is one action of a task's job. Its result is stored at once, as by Apply.
func (w *world) step(t *state.Task) {
	ctx := w.contextFor(20 * time.Minute)
	switch roll := w.dice.IntN(10); {
	case t.VM == nil && !t.Ended() && t.Suspended == nil && roll < 2:
		t.Phase = state.PhaseCancelled // while its VM, if any, is being created
	case t.VM == nil && !t.Ended():
		w.launch(ctx, t)
	case t.VM == nil:
		w.reopen(ctx, t)
	case roll < 3:
		w.rest(ctx, t)
	case roll < 6:
		w.sleeps(ctx, t)
	case roll < 8:
		w.end(ctx, t)
	default:
		w.launch(ctx, t)
	}
}

// launch acquires the task's VM and stores it with a run.
func (w *world) launch(ctx context.Context, t *state.Task) {
	server, err := w.acquire(ctx, t)
	if err != nil || w.maybeKill("before a launch is stored") != nil {
		return
	}
	if t.VM != nil && t.VM.Name != server.Name {
		t.VMs = append(t.VMs, *t.VM)
	}
	w.judgeLaunch(server)
	t.VM = &state.VM{Name: server.Name, Gen: server.Gen}
	w.mark(server.Name, vm.Work)
	w.worked[server.Name] = w.clock.Now()
	if a := t.Suspended; a != nil {
		w.letting[a.Ref] = true
	}
	if a := t.Suspended; a != nil && w.fleet.ForgetImage(ctx, a.Ref) == nil {
		t.Suspended = nil
	}
}

// vmRequest returns a task's request to the fleet.
func vmRequest(t *state.Task) fleet.AcquireSpec {
	spec := fleet.AcquireSpec{Task: t.Key, Gen: len(t.VMs) + 1}
	if t.VM != nil {
		spec.Gen = t.VM.Gen
	} else if a := t.Suspended; a != nil {
		spec.Image, spec.FromSleep, spec.FromImage = a.Ref, a.VM, true
	}
	return spec
}

// acquireSuspended acquires the VM of a suspended task without storing it.
func (w *world) acquireSuspended(t *state.Task) (fleet.VM, error) {
	return w.acquire(w.contextFor(time.Hour), t)
}

func (w *world) acquire(ctx context.Context, t *state.Task) (fleet.VM, error) {
	spec := vmRequest(t)
	server, err := w.fleet.Acquire(ctx, spec)
	if spec.FromImage {
		w.judgeLostImage(spec.Image, err)
	}
	return server, err
}

// isGone reports whether an error tells errand that a VM or an image no longer exists.
func isGone(err error) bool {
	return errors.Is(err, fleet.ErrNotFound) || errors.Is(err, fleet.ErrEnded)
}

// rest ends the run.
func (w *world) rest(_ context.Context, t *state.Task) { w.mark(t.VM.Name, vm.Rest) }

// mark updates the row as Apply does in the task's transaction.
func (w *world) mark(name string, kind vm.EventKind) {
	if _, _, err := w.store.Store.VMs.Apply(context.Background(), name, vm.Event{Kind: kind}); err != nil {
		w.complain("store", "%s of %s: %v", kind, name, err)
	}
}

// sleeps saves the disk as an image and releases the VM.
func (w *world) sleeps(ctx context.Context, t *state.Task) {
	row, err := w.store.VMs.Get(context.Background(), t.VM.Name)
	if err != nil || row.Phase != vm.Sleeping { // otherwise the job is repeated
		w.rest(ctx, t)
	}
	img, err := w.fleet.Snapshot(ctx, t.VM.Name)
	ref := img.ID
	if err != nil || w.maybeKill("before sleep is stored") != nil {
		return
	}
	if old := t.Suspended; old != nil && old.Ref != ref {
		w.letting[old.Ref] = true
		w.deleteSaved(ctx, old.Ref)
	}
	t.Suspended = &state.SuspendedWork{Mode: settings.SleepSnapshot, Ref: ref, VM: t.VM.Name}
	w.releaseVM(ctx, t, fleet.ReasonAsleep)
}

// deleteSaved deletes the saved work. In errand the job is repeated until it succeeds; here a failure is left to the
// reapers.
func (w *world) deleteSaved(ctx context.Context, ref string) { _ = w.fleet.ForgetImage(ctx, ref) }

func (w *world) end(ctx context.Context, t *state.Task) {
	t.Phase = state.PhaseDone
	w.rest(ctx, t)
	if a := t.Suspended; a != nil {
		t.Suspended = nil
		w.deleteSaved(ctx, a.Ref)
	}
	w.releaseVM(ctx, t, fleet.ReasonDone)
}

// releaseVM deletes the task's VM, or leaves it to the reapers, as after a crash.
func (w *world) releaseVM(ctx context.Context, t *state.Task, why fleet.Reason) {
	w.letting[t.VM.Name] = true
	_ = w.fleet.Release(ctx, t.VM.Name, why)
	t.VMs, t.VM = append(t.VMs, *t.VM), nil
}

// reopen restarts the task.
func (w *world) reopen(_ context.Context, t *state.Task) { t.Phase = state.PhaseImplementing }

// settle ends all failures and lets time pass, so that tasks get their VMs and the reapers delete the others.
func (w *world) settle(keys []state.TaskKey) {
	w.odds = chances{}
	w.sim.ClearFaults()
	w.sim.SetStockAll(-1)
	w.start()
	for range 3 {
		for _, key := range keys {
			t := w.store.tasks[key]
			if t.Phase == state.PhaseImplementing && (t.VM != nil || t.Suspended == nil) {
				w.launch(w.contextFor(time.Hour), t)
			}
		}
		_ = w.fleet.Run(w.contextFor(40 * time.Minute))
	}
}

// play plays one seed and returns its leaks.
func play(t *testing.T, seed uint64, change func(*world)) (*world, []string) {
	t.Helper()
	w := newWorld(t, seed, failureOdds())
	if change != nil {
		change(w)
	}
	w.life()
	problems := slices.Concat(w.wrongs, w.leakedResources(), w.storeProblems())
	w.fleet.Close()
	return w, problems
}

// configureOddWorld configures the world of every third seed differently.
func configureOddWorld(seed int) func(*world) {
	return func(w *world) {
		if seed%3 == 2 { // VMs are deleted soon; orders are executed later
			w.odds.late, w.reuse = 500, false
		}
	}
}

// TestNothingLeaks: every seed ends with exactly the VMs and images of the tasks.
func TestNothingLeaks(t *testing.T) {
	t.Parallel()
	nothingLeaks(t, 20)
}

// TestHeavyNothingLeaks is TestNothingLeaks with more seeds.
func TestHeavyNothingLeaks(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	nothingLeaks(t, 150)
}

func nothingLeaks(t *testing.T, seeds int) {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]int{}
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w, problems := play(t, uint64(seed), configureOddWorld(seed))
				if len(problems) > 0 {
					t.Errorf("leaks:\n%s", strings.Join(problems, "\n"))
				}
				mu.Lock()
				defer mu.Unlock()
				for what, n := range w.counts {
					counts[what] += n
				}
				_, total := w.sim.Counts()
				counts["requests"] += total
			})
		}
	})
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[what], what)
	}
	t.Logf("PROOF: leaks: seeds 0 to %d of VMs' lives, with %d requests to Hetzner's API", seeds-1, counts["requests"])
	for _, what := range []string{"killed before a request", "killed after a request", "killed after an event", "answer lost", "order late", "answer false", "twin made", "shutdown not obeyed"} {
		if counts[what] == 0 {
			t.Errorf("this failure never occurred: %s", what)
		}
	}
}

// TestLeaksAreNoticed disables one safeguard at a time and expects a seed to complain.
func TestLeaksAreNoticed(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*world){
		"look-up": func(w *world) { w.blind = true },
		"reaper":  func(w *world) { w.lacks = []fleet.Safeguard{fleet.SafeguardReaper} },
		"tombstones": func(w *world) {
			w.lacks = []fleet.Safeguard{fleet.SafeguardTombstones}
			w.odds, w.reuse = chances{late: 600}, false // VMs are deleted soon; orders are executed later
		},
	}
	var planted, noticed atomic.Int64
	t.Cleanup(func() { t.Logf("PROOF: leaks: controls: planted %d noticed %d", planted.Load(), noticed.Load()) })
	for name, without := range tests {
		t.Run("without "+name, func(t *testing.T) {
			t.Parallel()
			planted.Add(1)
			const most = 30
			for seed := range most {
				if _, problems := play(t, uint64(seed), without); len(problems) > 0 {
					noticed.Add(1)
					t.Logf("seed %d: %s", seed, problems[0])
					return
				}
			}
			t.Errorf("got no leak in %d seeds", most)
		})
	}
}

// TestRequestsPerLife counts the API requests of one VM's life: creation, use, suspension, deletion.
func TestRequestsPerLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	key := state.TaskKey{Repo: 1, Issue: 1}
	w.store.tasks[key] = &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.launch(w.contextFor(time.Hour), w.store.tasks[key])
	server := w.store.tasks[key].VM
	if server == nil {
		t.Fatal("the task has no VM")
	}
	for range 20 { // it is used for a while
		if _, err := w.fleet.Get(w.process, server.Name); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(5 * time.Second)
	}
	if err := w.fleet.Release(w.process, server.Name, fleet.ReasonAsleep); err != nil {
		t.Fatal(err)
	}
	byRoute, total := w.sim.Counts()
	t.Logf("%d requests: %v", total, byRoute)
	if total >= 25 {
		t.Errorf("got %d requests in one life", total)
	}
}
