package purge_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/purge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

// reopen opens the data folder again, as a new process does.
func (w *world) reopen() {
	w.t.Helper()
	w.check(w.db.Close())
	w.open()
}

// doJobs does the jobs that are due, as a worker for which nothing fails.
func (w *world) doJobs(ctx context.Context) error {
	for {
		j, err := w.store.Claim(ctx, store.ClaimReq{Lease: func(state.JobKind) time.Duration { return time.Minute }})
		if j == nil || err != nil {
			return err
		}
		e := event.Event{Task: j.Task}
		if _, err := w.store.Apply(ctx, e, store.Ack{Job: j.ID, Epoch: j.Epoch}); err != nil {
			return err
		}
	}
}

// TestPurgeWaitsForComments: a purge drops no comment that is about to be posted.
func TestPurgeWaitsForComments(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.patience = time.Minute
	w.reopen()
	key := state.TaskKey{Repo: 7, Issue: 1}
	w.begin(key, "SECRET")
	w.check(w.doJobs(t.Context()))
	w.end(key)
	jobs, err := w.store.Jobs(t.Context(), key)
	if err != nil || len(jobs) == 0 {
		t.Fatalf("got jobs %v, error %v; want the last comment", jobs, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.doJobs(t.Context()) }()
	done, err := w.purge(key, "request-1-0000000")
	if err = errors.Join(err, <-ended); err != nil || done.Unposted != 0 {
		t.Errorf("got error %v, and %d comments were dropped", err, done.Unposted)
	}
}

// TestPurgeWaitsForArrivals: a webhook that was stored when the purge had found that nothing was under way is first applied, or set aside
// and deleted: the database would have its text again.
func TestPurgeWaitsForArrivals(t *testing.T) {
	t.Parallel()
	for name, apply := range map[string]func(w *world, key state.TaskKey){
		"applied": func(w *world, key state.TaskKey) {
			w.check(w.store.SpendDelivery(w.t.Context(), "late"))
			w.apply(event.Event{Task: key, ID: "comment:9", By: ada, Payload: event.Commented{
				Comment: &state.Comment{ID: 9, Body: "LATE", Mention: true}, Orders: []state.Order{{Verb: state.VerbRetry}},
			}})
			if err := w.purger.Resume(w.t.Context()); err == nil || !strings.Contains(err.Error(), "read from GitHub") {
				w.t.Errorf("got error %v, want one about the permission", err)
			}
			w.check(w.doJobs(w.t.Context()))
		},
		"set aside": func(w *world, _ state.TaskKey) {
			for range store.MaxDeliveryFailures {
				_, err := w.store.FailDelivery(w.t.Context(), "late", errors.New("LATE"))
				w.check(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := state.TaskKey{Repo: 7, Issue: 1}
			w.begin(key, "SECRET")
			w.end(key)
			w.between = func() { w.webhook("late", key, "LATE", false) }
			var incomplete *purge.IncompleteError
			if _, err := w.purge(key, "request-1-0000000"); !errors.As(err, &incomplete) || !strings.Contains(err.Error(), "a webhook about the issue") {
				t.Fatalf("got error %v, want one about the webhook", err)
			}
			apply(w, key)
			w.check(w.purger.Resume(t.Context()))
			if list := append(w.found("LATE"), w.found("SECRET")...); len(list) > 0 {
				t.Errorf("a text is left in %v", list)
			}
			if open, err := w.store.Purging(t.Context()); err != nil || len(open) != 0 {
				t.Errorf("got open purges %v, error %v", open, err)
			}
		})
	}
}

// TestPurgeWaitsForSummaries: what is written by somebody who has read the task before it was purged is deleted, too.
func TestPurgeWaitsForSummaries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := state.TaskKey{Repo: 7, Issue: 1}
	w.begin(key, "SECRET")
	w.end(key)
	w.settle = func() { w.check(w.files.SaveSummary("7-1-life-1", []byte("SECRET"))) }
	if _, err := w.purge(key, "request-1-0000000"); err != nil {
		t.Fatal(err)
	}
	if list := w.found("SECRET"); len(list) > 0 {
		t.Errorf("the text is left in %v", list)
	}
}

// TestResumeFindsWebhooksOfTheBranch: a purge that was interrupted when the task had been replaced deletes the failed webhooks that only
// name the task's branch.
func TestResumeFindsWebhooksOfTheBranch(t *testing.T) {
	t.Parallel()
	for name, resume := range map[string]func(w *world, key state.TaskKey) error{
		"by the next process": func(w *world, _ state.TaskKey) error { w.reopen(); return w.purger.Resume(w.t.Context()) },
		"by the operator":     func(w *world, key state.TaskKey) error { _, err := w.purge(key, "request-2-0000000"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := state.TaskKey{Repo: 7, Issue: 1}
			w.begin(key, "SECRET")
			w.apply(event.Event{Task: key, Payload: event.Started{Start: event.Start{
				Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "errand/1-SECRET", Base: "main", BaseSHA: "b0"},
			}}})
			w.end(key)
			payload := fmt.Sprintf(`{"repository": {"id": %d}, "ref": "refs/heads/errand/1-SECRET", "head_commit": {"message": "SECRET"}}`, key.Repo)
			_, err := w.store.PutDelivery(t.Context(), store.Delivery{GUID: "push", Event: "push", Payload: []byte(payload)})
			w.check(err)
			for range store.MaxDeliveryFailures {
				_, err := w.store.FailDelivery(t.Context(), "push", errors.New("SECRET"))
				w.check(err)
			}
			w.settle = func() { panic("errand dies") }
			func() {
				defer func() { _ = recover() }()
				_, err := w.purge(key, "request-1-0000000")
				t.Errorf("got error %v, want an interrupted purge", err)
			}()
			w.settle = nil
			if list := w.found("SECRET"); len(list) == 0 {
				t.Fatal("nothing is left to be deleted")
			}
			w.check(resume(w, key))
			if list := w.found("SECRET"); len(list) > 0 {
				t.Errorf("the text is left in %v", list)
			}
		})
	}
}
