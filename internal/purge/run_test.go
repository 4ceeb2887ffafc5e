package purge_test

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/purge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestRunCompletesPurges: an interrupted purge is completed by the same process, not before the lock is free, and after another failure.
func TestRunCompletesPurges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := state.TaskKey{Repo: 7, Issue: 1}
	w.begin(key, "SECRET")
	w.end(key)
	whole, failures, completed := w.compact, 2, make(chan struct{})
	var lock sync.Mutex
	w.compact = func(ctx context.Context) (int64, int64, error) {
		if lock.TryLock() {
			lock.Unlock()
			t.Error("got an attempt without the lock")
		}
		if failures--; failures >= 0 {
			return 0, 0, syscall.ENOSPC
		}
		defer close(completed)
		return whole(ctx)
	}
	lock.Lock()
	if _, err := w.purge(key, "request-1-0000000"); err == nil {
		t.Fatal("got no error, want an interrupted purge")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.purger.Run(ctx, &lock) }()
	lock.Unlock()
	<-completed
	lock.Lock() // that attempt has ended
	if open, err := w.store.Purging(t.Context()); err != nil || len(open) > 0 || len(w.found("SECRET")) > 0 {
		t.Errorf("got open purges %v, error %v, files with the text %v", open, err, w.found("SECRET"))
	}
	lock.Unlock()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestRefusedPurgeDeletesNothing: a purge that is refused at the last moment has deleted no image and no webhook.
func TestRefusedPurgeDeletesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := state.TaskKey{Repo: 7, Issue: 1}
	w.begin(key, "SECRET")
	w.end(key)
	w.webhook("poison", key, "SECRET-IN-A-WEBHOOK", true)
	_, err := w.store.VMs.Intend(t.Context(), vm.Intent{Name: "standby", Task: key, Owner: "7-1", Provider: "p"}, vm.Caps{})
	w.check(err)
	w.between = func() { w.vet(key) }
	var refused *purge.RefusedError
	if _, err := w.purge(key, "request-1-0000000"); !errors.As(err, &refused) {
		t.Errorf("got error %v, want a refusal", err)
	}
	if len(w.released) > 0 || len(w.found("SECRET-IN-A-WEBHOOK")) == 0 {
		t.Errorf("got released VMs %v, files with the webhook %v", w.released, w.found("SECRET-IN-A-WEBHOOK"))
	}
	task, err := w.store.Task(t.Context(), key)
	if err != nil || !task.Purged.IsZero() {
		t.Errorf("got task %v, error %v; want it as it was", task, err)
	}
}
