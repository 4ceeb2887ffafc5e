package pause

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// world is a store with tasks, and a keeper.
type world struct {
	*Keeper
	t     *testing.T
	store *store.Store
	log   bytes.Buffer
	bakes int // that are beginning

	mu  sync.Mutex
	now time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: noon}
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	clock := func() time.Time {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.now = w.now.Add(time.Second)
		return w.now
	}
	if w.store, err = store.Open(t.Context(), db, store.Options{Now: clock}); err != nil {
		t.Fatal(err)
	}
	w.Keeper = New(Config{
		Store: w.store, Log: zerolog.New(&w.log), Every: time.Hour, BakesBeginning: func() int { return w.bakes },
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[secret]") },
		Repository: func(_ context.Context, name string) (state.Repo, error) {
			switch strings.ToLower(name) {
			case "acme/shop":
				return state.Repo{ID: 7, Owner: "acme", Name: "shop"}, nil
			case "acme/down":
				return state.Repo{}, errors.New("502 from GitHub")
			}
			return state.Repo{}, &RefusedError{"errand has no access to " + name}
		},
	})
	return w
}

// begin starts a task whose launch finds the pauses, as the step does.
func (w *world) begin(repo int64, issue int) state.TaskKey {
	w.t.Helper()
	key := state.TaskKey{Repo: repo, Issue: issue}
	ada := state.Person{ID: 2, Login: "ada"}
	w.apply(event.Event{Task: key, By: ada, Permission: state.PermissionWrite, Via: state.TriggerAssigned, Repo: &state.Repo{ID: repo, Owner: "acme", Name: map[int64]string{7: "shop", 8: "zoo"}[repo]},
		Payload: event.Triggered{Issue: &state.Issue{Title: "Bug"}}})
	w.apply(event.Event{Task: key, Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true}}})
	w.tryLaunch(key)
	return key
}

// tryLaunch does what the launch of a task's run does.
func (w *world) tryLaunch(key state.TaskKey) {
	w.t.Helper()
	wait, err := w.Waiting(w.t.Context(), key.Repo)
	switch {
	case err != nil:
		w.t.Fatal(err)
	case wait != nil:
		w.apply(event.Event{Task: key, Payload: event.StepBlocked{Waiting: wait}})
	default:
		run := w.task(key).Run.ID
		w.apply(event.Event{Task: key, Run: run, Payload: event.Launched{Launch: state.Launch{Run: run, VM: state.VM{Name: "vm"}, Started: noon}}})
	}
}

func (w *world) apply(e event.Event) {
	w.t.Helper()
	if applied, err := w.store.Apply(w.t.Context(), e, store.Ack{}); err != nil || !applied.Changed {
		w.t.Fatalf("%s: got %+v, %v", e.Kind(), applied, err)
	}
}

func (w *world) task(key state.TaskKey) *state.Task {
	w.t.Helper()
	t, err := w.store.Task(w.t.Context(), key)
	if err != nil || t == nil {
		w.t.Fatal(t, err)
	}
	return t
}

// waits returns the detail of a task's wait.
func (w *world) waits(key state.TaskKey) string {
	if t := w.task(key); t.Waiting != nil {
		return t.Waiting.Detail
	}
	return ""
}

func (w *world) order(want string, do func(store.Action) (store.Action, error)) {
	w.t.Helper()
	a, err := do(store.Action{ID: "0123456789abcdef", By: "token"})
	got := a.Result
	if err != nil {
		got = "error: " + err.Error()
	}
	if got != want {
		w.t.Errorf("got %q, want %q", got, want)
	}
}

func (w *world) pause(repo, reason, want string) {
	w.t.Helper()
	w.order(want, func(a store.Action) (store.Action, error) { return w.Pause(w.t.Context(), repo, reason, a) })
}

func (w *world) resume(repo string, all bool, want string) {
	w.t.Helper()
	w.order(want, func(a store.Action) (store.Action, error) { return w.Resume(w.t.Context(), repo, all, a) })
	if err := w.Step(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}

// TestPausesHoldTheirTasks: a pause holds the tasks of its repository, what works goes on, and each resumption continues the tasks
// that no other pause holds.
func TestPausesHoldTheirTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.begin(7, 1)
	w.pause("ACME/shop", "", "paused; one agent goes on to its end, for acme/shop#1 (`errand stop acme/shop#1` stops it)")
	held, other := w.begin(7, 2), w.begin(8, 1)
	if w.waits(before) != "" || w.waits(held) != "the operator paused this repository" || w.waits(other) != "" {
		t.Errorf("got %q, %q, %q", w.waits(before), w.waits(held), w.waits(other))
	}
	w.pause("", "new disk", "paused; 2 agents go on to their end, for acme/shop#1, acme/zoo#1 (`errand stop OWNER/REPO#N` stops one)")
	third := w.begin(8, 2)
	if got := w.waits(third); got != "the operator paused errand: new disk" {
		t.Errorf("got %q", got)
	}
	w.resume("", false, "resumed; still paused: acme/shop (`errand resume --all` ends these pauses, too)")
	if w.waits(third) != "" || w.waits(held) == "" {
		t.Errorf("got %q, %q", w.waits(third), w.waits(held))
	}
	w.tryLaunch(third)
	w.resume("acme/shop", false, "resumed")
	if w.waits(held) != "" {
		t.Errorf("got %q", w.waits(held))
	}
	w.tryLaunch(held)
	for _, key := range []state.TaskKey{before, held, other, third} {
		if r := w.task(key).Run; r == nil || r.State != state.RunActive || r.Attempt != 1 {
			t.Errorf("%s: got run %+v", key, r)
		}
	}
	w.resume("acme/shop", false, "was not paused")
	w.pause("acme/shop", "", "paused; 2 agents go on to their end, for acme/shop#1, acme/shop#2 (`errand stop OWNER/REPO#N` stops one)")
	w.pause("", "", "paused; 4 agents go on to their end, for acme/shop#1, acme/shop#2, acme/zoo#1, acme/zoo#2 (`errand stop OWNER/REPO#N` stops one)")
	w.resume("acme/shop", false, "resumed; errand as a whole is still paused: `errand resume`")
	w.resume("", true, "resumed")
}

// TestReasons: a reason is one line without secrets; a new one is shown by the tasks that wait.
func TestReasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("", "the password\nis  hunter2\x1b[2J\xff", "paused; no agent is working")
	key := w.begin(8, 1)
	if got := w.waits(key); got != "the operator paused errand: the password is [secret][2J" {
		t.Errorf("got %q", got)
	}
	w.pause("", strings.Repeat("x", 1<<20), "error: the reason has 1048576 characters; at most 200 are possible, because status comments show it")
	w.pause("", "", "was paused already; no agent is working")
	w.pause("", "later", "was paused already; the reason was replaced; no agent is working")
	if err := w.Step(t.Context()); err != nil || w.waits(key) != "" {
		t.Errorf("got %q, %v; want that it tries again", w.waits(key), err)
	}
	w.tryLaunch(key)
	if got := w.waits(key); got != "the operator paused errand: later" {
		t.Errorf("got %q", got)
	}
	w.pause("acme/typo", "", "error: errand has no access to acme/typo")
	w.pause("acme/down", "", "error: 502 from GitHub")
	if list, err := w.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestRenamedRepositoryIsResumed: by its former name, with which it was paused, although GitHub no longer knows it.
func TestRenamedRepositoryIsResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("acme/shop", "", "paused; no agent is working")
	w.cfg.Repository = func(context.Context, string) (state.Repo, error) { return state.Repo{}, errors.New("asked GitHub") }
	w.resume("Acme/Shop", false, "resumed")
}

// TestNewRepositoryWithOldName: a repository that has got the name of a paused one, which was renamed, is paused and resumed by itself.
func TestNewRepositoryWithOldName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("acme/shop", "old", "paused; no agent is working")
	known := w.cfg.Repository
	w.cfg.Repository = func(ctx context.Context, name string) (state.Repo, error) {
		switch name {
		case "acme/shop":
			return state.Repo{ID: 8, Owner: "acme", Name: "shop"}, nil
		case "acme/store":
			return state.Repo{ID: 7, Owner: "acme", Name: "store"}, nil
		}
		return known(ctx, name)
	}
	held := func(want ...int64) {
		t.Helper()
		for _, repo := range []int64{7, 8} {
			if wait, err := w.Waiting(t.Context(), repo); err != nil || (wait != nil) != slices.Contains(want, repo) {
				t.Errorf("repository %d: got %+v, %v; want paused: %v", repo, wait, err, want)
			}
		}
	}
	held(7)
	w.pause("acme/shop", "new", "paused; no agent is working")
	held(7, 8)
	w.pause("acme/store", "", "was paused already; no agent is working")
	w.resume("acme/shop", false, "resumed")
	held(7)
	w.pause("acme/shop", "", "paused; no agent is working")
	w.resume("acme/store", false, "resumed")
	held(8)
	w.cfg.Repository = func(context.Context, string) (state.Repo, error) { return state.Repo{}, &RefusedError{"no access"} }
	w.pause("acme/shop", "", "was paused already; no agent is working")
	w.pause("acme/store", "", "error: no access")
	w.cfg.Repository = func(context.Context, string) (state.Repo, error) { return state.Repo{}, errors.New("502 from GitHub") }
	w.pause("acme/shop", "longer", "was paused already; the reason was replaced; no agent is working")
	w.pause("acme/store", "", "error: 502 from GitHub")
	if list, err := w.List(t.Context()); err != nil || len(list) != 1 || list[0].Reason != "longer" {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestRunContinuesTasksAfterARestart: if errand died after the pause had ended, the tasks continue when it starts again; and they do
// so at once when the operator resumes.
func TestRunContinuesTasksAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pause("", "", "paused; no agent is working")
	first := w.begin(7, 1)
	a, _, _, err := w.store.Pauses.Lift(t.Context(), func(state.Pause) bool { return true }, store.Action{ID: "1", Command: "resume"})
	if err != nil || a.Result != "resumed" {
		t.Fatal(a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	wake := w.store.Wake(t.Context())
	go func() { done <- w.Run(ctx) }()
	until := func(key state.TaskKey) {
		t.Helper()
		for w.waits(key) != "" {
			select {
			case <-wake:
			case <-time.After(time.Minute):
				t.Fatalf("still waits: %s", w.waits(key))
			}
		}
	}
	until(first)
	w.pause("", "", "paused; no agent is working")
	second := w.begin(8, 1)
	w.order("resumed", func(a store.Action) (store.Action, error) { return w.Resume(t.Context(), "", false, a) })
	until(second)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestTaskThatWaitsTooLateContinues: a step read the pauses before a resumption and has its task wait after it. The task does not wait
// until the next regular comparison, which is an hour away here.
func TestTaskThatWaitsTooLateContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Again = 10 * time.Second // longer than the lines below take, also on a busy host
	w.pause("", "", "paused; no agent is working")
	key := w.begin(7, 1)
	stale, err := w.Waiting(t.Context(), key.Repo)
	if err != nil || stale == nil {
		t.Fatal(stale, err)
	}
	w.resume("", false, "resumed")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	wake := w.store.Wake(t.Context())
	go func() { done <- w.Run(ctx) }()
	until := func() {
		t.Helper()
		for end := time.After(time.Minute); w.waits(key) != ""; {
			select {
			case <-wake:
			case <-end:
				t.Fatalf("still waits: %s", w.waits(key))
			}
		}
	}
	until() // by the resumption
	w.apply(event.Event{Task: key, Payload: event.StepBlocked{Waiting: stale}})
	until()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestUnderWayIncludesBakes: an image that is being baked uses a VM.
func TestUnderWayIncludesBakes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, owner := range map[string]string{"errand-bake": "bake-web", "errand-gone": "bake-old"} {
		if _, err := w.store.VMs.Intend(t.Context(), vm.Intent{Name: name, Owner: owner, Gen: 1, Provider: "hetzner"}, vm.Caps{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.store.VMs.Apply(t.Context(), "errand-gone", vm.Event{Kind: vm.Fail, EndReason: "failed"}); err != nil {
		t.Fatal(err)
	}
	list, err := w.UnderWay(t.Context())
	if err != nil || len(list) != 1 || list[0].Doing != "baking a base image on VM errand-bake" {
		t.Errorf("got %+v, %v", list, err)
	}
	w.bakes = 1 // that of this VM, or of another one
	if list, err = w.UnderWay(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, _, err := w.store.VMs.Apply(t.Context(), "errand-bake", vm.Event{Kind: vm.Fail, EndReason: "failed"}); err != nil {
		t.Fatal(err)
	}
	if list, err = w.UnderWay(t.Context()); err != nil || len(list) != 1 || list[0].Doing != "creating a VM for a base image" {
		t.Errorf("before there is a VM: got %+v, %v", list, err)
	}
}

// TestRestoredErrandIsNotPaused: nothing works in it until it is resumed, so that `errand drain` would wait in vain. Single repositories can
// be paused before that.
func TestRestoredErrandIsNotPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.store.MarkRestored(t.Context(), noon.Add(-time.Hour), store.Action{ID: "1", Command: "restore"}); err != nil {
		t.Fatal(err)
	}
	w.pause("", "", "error: errand was restored from a backup, and does nothing until `errand resume`: there is nothing to pause or to wait for")
	w.pause("acme/shop", "", "paused; no agent is working")
	w.resume("", true, "resumed")
	w.pause("", "", "paused; no agent is working")
}
