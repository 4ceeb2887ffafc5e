package watch_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

var (
	ada  = state.Person{ID: 5, Login: "ada"}
	task = state.TaskKey{Repo: 70, Issue: 1}
)

// storeWorld is a real store in which tests move tasks to a phase by applying events.
type storeWorld struct {
	*store.Store
	t *testing.T

	mu     sync.Mutex
	events []event.Event           // applied by the watcher under test
	refuse func(event.Event) error // the store's errors for events of the watcher; nil accepts all
}

func newLife(t *testing.T) *storeWorld {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	st, err := store.Open(t.Context(), db, store.Options{})
	check(t, err)
	return &storeWorld{Store: st, t: t}
}

// Apply records and applies events of the watcher under test.
func (l *storeWorld) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	l.mu.Lock()
	refuse := l.refuse
	l.mu.Unlock()
	if refuse != nil {
		if err := refuse(e); err != nil {
			return store.Applied{}, err
		}
	}
	applied, err := l.Store.Apply(ctx, e, ack)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return applied, err
}

// reported lists the events of a kind that the watcher applied.
func (l *storeWorld) reported(kind event.Kind) (list []event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Kind() == kind {
			list = append(list, e)
		}
	}
	return list
}

// happen applies an event that does not come from the watcher and returns the task.
func (l *storeWorld) happen(e event.Event) *state.Task {
	l.t.Helper()
	if e.Task.IsZero() {
		e.Task = task
	}
	applied, err := l.Store.Apply(l.t.Context(), e, store.Ack{})
	check(l.t, err)
	return applied.Task
}

func (l *storeWorld) task() *state.Task {
	l.t.Helper()
	t, err := l.Task(l.t.Context(), task)
	check(l.t, err)
	return t
}

// queued triggers a task.
func (l *storeWorld) queued(key state.TaskKey, installation int64, via state.TriggerVia) *state.Task {
	l.t.Helper()
	return l.happen(event.Event{
		Task:         key,
		By:           ada,
		Permission:   state.PermissionWrite,
		Via:          via,
		At:           time.Now(),
		Installation: installation,
		Repo:         &state.Repo{ID: key.Repo, Owner: "acme", Name: "slug", DefaultBranch: "main"},
		Payload:      event.Triggered{Issue: &state.Issue{Node: "I_1", Title: "It breaks", Body: "Always.", Author: ada}},
	})
}

// running returns a task with an active run of the preliminary plan.
func (l *storeWorld) running(key state.TaskKey, installation int64) *state.Task {
	l.t.Helper()
	l.queued(key, installation, "assigned")
	t := l.happen(event.Event{Task: key, Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "errand/1", Base: "main"}}}})
	return l.launched(t)
}

// launched starts the run that a task has requested.
func (l *storeWorld) launched(t *state.Task) *state.Task {
	l.t.Helper()
	launch := &state.Launch{Run: t.Run.ID, VM: state.VM{Name: "vm-1"}, Started: time.Now()}
	for _, f := range t.Feedback {
		launch.FeedbackIDs = append(launch.FeedbackIDs, f.ID)
	}
	return l.happen(event.Event{Task: t.Key, Run: t.Run.ID, Payload: event.Launched{Launch: *launch}})
}

// planned ends the run with a plan and posts it as a comment.
func (l *storeWorld) planned(t *state.Task, comment int64, node string) *state.Task {
	l.t.Helper()
	t = l.happen(event.Event{Task: t.Key, Run: t.Run.ID, Payload: event.RunEnded{Result: state.RunResult{Class: state.RunSucceeded, Status: state.StatusOK, Outcome: "build", Text: "Do it. " + node, Ended: time.Now()}}})
	p := t.NewestPlan()
	return l.happen(event.Event{
		Task:    t.Key,
		Payload: event.Posted{BodyHash: "body", Post: &state.Post{Kind: state.PostPlan, Hash: p.Hash}, Comment: state.Posted{Key: "1.plan-" + p.Hash, Kind: string(state.PostPlan), ID: comment, Node: node, At: time.Now().Truncate(time.Second)}},
	})
}

// waits returns a task with a posted plan.
func (l *storeWorld) waits(key state.TaskKey, installation int64, comment int64, node string) *state.Task {
	l.t.Helper()
	return l.planned(l.running(key, installation), comment, node)
}

// watching runs a watcher until the returned function is called.
func watching(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		check(t, <-done)
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// checkSwept ends the test after an error of SweepState, apart from those of single tasks and repositories.
func checkSwept(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, watch.ErrIncomplete) {
		t.Fatal(err)
	}
}
