package purge_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/purge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

var ada = state.Person{ID: 1, Login: "ada"}

// disk is the archive of a world, which can be unreadable.
type disk struct{ w *world }

func (d disk) DeleteTask(prefixes ...string) (int, error) {
	if d.w.unreadable {
		return 0, syscall.EIO
	}
	return d.w.files.DeleteTask(prefixes...)
}

// world is a data folder in which tasks are purged.
type world struct {
	t        *testing.T
	dir      string
	db       *boltkv.DB
	store    *store.Store
	files    *archive.Dir
	requests *egress.Log
	purger   *purge.Purger
	compact  func(ctx context.Context) (before, after int64, err error)
	follows  string
	patience time.Duration
	settle   func() // ends what had read the task before the purge
	between  func() // called once when the Purger has found that nothing is under way
	// unreadable makes the deletion of files fail.
	unreadable bool
	released   []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	w.open()
	t.Cleanup(func() { _ = w.db.Close() })
	return w
}

// open opens the data folder, as a new process does.
func (w *world) open() {
	w.t.Helper()
	var err, err2, err3, err4 error
	w.db, err = boltkv.Open(filepath.Join(w.dir, "errand.db"), boltkv.Options{})
	if err == nil {
		w.store, err2 = store.Open(w.t.Context(), w.db, store.Options{Policy: machine.DefaultPolicy()})
	}
	w.files, err3 = archive.Open(w.dir, nil)
	w.requests, err4 = egress.OpenLog(filepath.Join(w.dir, "egress"))
	w.check(errors.Join(err, err2, err3, err4))
	w.compact = w.db.Compact
	w.purger = purge.New(purge.Config{
		Store: w.store, Files: disk{w}, Requests: w.requests,
		Compact: func(ctx context.Context) (int64, int64, error) { return w.compact(ctx) },
		Release: func(_ context.Context, vm string, _ state.VMEndReason) error {
			w.released = append(w.released, vm)
			return nil
		},
		Follows: func(run string) bool { return run == w.follows },
		Copies:  func() ([]string, error) { return nil, nil },
		Settle: func() {
			if f := w.settle; f != nil {
				f()
			}
		},
		Patience: cmp.Or(w.patience, 300*time.Millisecond), Retry: time.Millisecond, Now: w.now, Log: zerolog.Nop(),
	})
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) apply(e event.Event) {
	w.t.Helper()
	_, err := w.store.Apply(w.t.Context(), e, store.Ack{})
	w.check(err)
}

// now returns the time.
func (w *world) now() time.Time {
	if f := w.between; f != nil {
		w.between = nil
		f()
	}
	return time.Now()
}

// begin begins a task, or its next life, with a text in every place.
func (w *world) begin(key state.TaskKey, secret string) {
	w.t.Helper()
	write := state.PermissionWrite
	w.apply(event.Event{
		Task: key, By: ada, Permission: write, Via: state.TriggerAssigned, Repo: &state.Repo{ID: key.Repo, Owner: "o", Name: fmt.Sprintf("r%d", key.Repo)},
		Payload: event.Triggered{Issue: &state.Issue{Title: secret, Body: strings.Repeat(secret+"\n", 200), Author: ada}},
	})
	w.apply(event.Event{Task: key, ID: fmt.Sprintf("comment:%d", time.Now().UnixNano()), By: ada, Permission: write, Payload: event.Commented{
		Comment: &state.Comment{ID: 1, Body: secret, Mention: true}, Orders: []state.Order{{Verb: state.VerbHelp}},
	}})
	run := fmt.Sprintf("%d-%d-1", key.Repo, key.Issue)
	tr, err := w.files.Transcript(run)
	w.check(err)
	w.check(errors.Join(tr.Add(runlog.Line{Seq: 1, Text: secret}, nil), tr.Close()))
	_, err = w.files.SaveAttachment(fmt.Sprintf("%d-%d", key.Repo, key.Issue), []byte(secret))
	w.check(err)
	w.check(w.files.SaveDiff(run+"-abc", secret))
	w.check(w.files.SaveSummary(fmt.Sprintf("%d-%d-life-1", key.Repo, key.Issue), []byte(secret)))
	w.check(w.requests.Add(fmt.Sprintf("%d-%d", key.Repo, key.Issue), egress.Request{Host: secret}))
}

// end ends a task.
func (w *world) end(key state.TaskKey) {
	w.t.Helper()
	w.apply(event.Event{Task: key, By: ada, Permission: state.PermissionWrite, Payload: event.IssueClosed{}})
}

// webhook stores a webhook that failed too often, if aside is set, or that is still to be applied.
func (w *world) webhook(guid string, key state.TaskKey, text string, aside bool) {
	w.t.Helper()
	payload := fmt.Sprintf(`{"repository": {"id": %d}, "issue": {"number": %d}, "comment": {"body": %q}}`, key.Repo, key.Issue, text)
	_, err := w.store.PutDelivery(w.t.Context(), store.Delivery{GUID: guid, Event: "issue_comment", Payload: []byte(payload)})
	w.check(err)
	for range store.MaxDeliveryFailures {
		if aside {
			_, err := w.store.FailDelivery(w.t.Context(), guid, errors.New(text))
			w.check(err)
		}
	}
}

func (w *world) purge(key state.TaskKey, id string) (store.Purged, error) {
	w.t.Helper()
	return w.purger.Purge(w.t.Context(), key, store.Action{ID: id, By: "the admin token", Command: "purge", Subject: key.String()})
}

// found returns the files with a text, as it is or in a compressed value of the store.
func (w *world) found(text string) (list []string) {
	w.t.Helper()
	w.check(filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) || strings.Contains(path, text) {
			list = append(list, filepath.Base(path))
		}
		return err
	}))
	return list
}

// TestPurge: nothing of the task's text is left in the data folder, in any of its lives. Other tasks keep theirs: one with the same
// number in another repository, and one whose number begins with the same digits.
func TestPurge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key, sameNumber, longer := state.TaskKey{Repo: 7, Issue: 1}, state.TaskKey{Repo: 77, Issue: 1}, state.TaskKey{Repo: 7, Issue: 12}
	for secret, k := range map[string]state.TaskKey{"SECRET-OF-THE-FIRST-LIFE": key, "TEXT-OF-ANOTHER-REPOSITORY": sameNumber, "TEXT-OF-ANOTHER-ISSUE": longer} {
		w.begin(k, secret)
		w.end(k)
	}
	w.begin(key, "SECRET-OF-THE-SECOND-LIFE")
	w.end(key)
	w.webhook("poison-1", key, "SECRET-IN-A-WEBHOOK", true)
	w.webhook("poison-2", sameNumber, "TEXT-IN-ANOTHER-WEBHOOK", true)
	for _, s := range []string{"SECRET-OF-THE-SECOND-LIFE", "SECRET-IN-A-WEBHOOK"} {
		if len(w.found(s)) == 0 {
			t.Fatalf("%s was nowhere: this test shows nothing", s)
		}
	}
	done, err := w.purge(key, "request-1-0000000")
	if err != nil || done.Files < 4 || done.Webhooks != 1 || done.Unposted == 0 || done.StoreAfter == 0 || done.Again {
		t.Errorf("got result %+v, error %v", done, err)
	}
	for _, s := range []string{"SECRET-OF-THE-FIRST-LIFE", "SECRET-OF-THE-SECOND-LIFE", "SECRET-IN-A-WEBHOOK"} {
		if list := w.found(s); len(list) > 0 {
			t.Errorf("%s is left in %v", s, list)
		}
	}
	for _, s := range []string{"TEXT-OF-ANOTHER-REPOSITORY", "TEXT-OF-ANOTHER-ISSUE", "TEXT-IN-ANOTHER-WEBHOOK"} {
		if list := w.found(s); len(list) == 0 {
			t.Errorf("%s is gone", s)
		}
	}
	task, err := w.store.Task(t.Context(), key)
	if err != nil || task == nil || task.Purged.IsZero() || task.Gen != 2 || task.Repo.FullName() != "o/r7" {
		t.Errorf("got task %+v, error %v", task, err)
	}
	log, err := w.store.Audit.List(t.Context(), 10, func(store.Action) bool { return true })
	if err != nil || len(log) != 1 || log[0].Task != key || log[0].Refused || log[0].By != "the admin token" {
		t.Errorf("got audit log %+v, error %v", log, err)
	}
	if problems, err := w.store.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("got problems %v, error %v", problems, err)
	}
	again, err := w.purge(key, "request-2-0000000")
	if err != nil || !again.Again || again.Files != 0 {
		t.Errorf("the second purge: got %+v, error %v", again, err)
	}
}

// TestPurgeRefused: nothing is deleted while the task works, or has texts that are still to be stored.
func TestPurgeRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		prepare func(w *world, key state.TaskKey)
		reason  string
	}{
		"it is open":                    {func(*world, state.TaskKey) {}, "errand cancel o/r7#1"},
		"there is none":                 {func(w *world, key state.TaskKey) { w.end(key) }, "no longer exists"},
		"a webhook is to be applied":    {func(w *world, key state.TaskKey) { w.end(key); w.webhook("pending", key, "SECRET", false) }, "a webhook about the issue"},
		"a person's action is examined": {func(w *world, key state.TaskKey) { w.end(key); w.vet(key) }, "read from GitHub"},
		"a job is under way": {func(w *world, key state.TaskKey) {
			w.end(key)
			_, err := w.store.Claim(w.t.Context(), store.ClaimReq{Lease: func(state.JobKind) time.Duration { return time.Minute }})
			w.check(err)
		}, "a step of the task is under way"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := state.TaskKey{Repo: 7, Issue: 1}
			w.begin(key, "SECRET")
			tc.prepare(w, key)
			asked := key
			if name == "there is none" {
				asked.Issue = 2
			}
			_, err := w.purge(asked, "request-1-0000000")
			var refused *purge.RefusedError
			if !errors.As(err, &refused) || !strings.Contains(refused.Reason, tc.reason) {
				t.Errorf("got error %v, want a refusal with %q", err, tc.reason)
			}
			if task, err := w.store.Task(t.Context(), key); err != nil || task.Frozen.Title != "SECRET" || len(w.found("SECRET")) < 4 {
				t.Errorf("got title %q, files %v, error %v; want everything as it was", task.Frozen.Title, w.found("SECRET"), err)
			}
		})
	}
}

// vet queues the check of a person's permission.
func (w *world) vet(key state.TaskKey) {
	w.apply(event.Event{Task: key, ID: "comment:9", By: ada, Payload: event.Commented{
		Comment: &state.Comment{ID: 9, Mention: true}, Orders: []state.Order{{Verb: state.VerbRetry}},
	}})
}

// TestPurgeIsResumed: a purge that was interrupted, or for which the disk had no space, has lost nothing, says what to do, and is
// completed when it is repeated, or by the next process.
func TestPurgeIsResumed(t *testing.T) {
	t.Parallel()
	for name, resume := range map[string]func(w *world, key state.TaskKey) error{
		"by the next process": func(w *world, _ state.TaskKey) error {
			w.check(w.db.Close())
			w.open()
			return w.purger.Resume(w.t.Context())
		},
		"by the operator":                func(w *world, key state.TaskKey) error { _, err := w.purge(key, "request-2-0000000"); return err },
		"by a repetition of the request": func(w *world, key state.TaskKey) error { _, err := w.purge(key, "request-1-0000000"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key, other := state.TaskKey{Repo: 7, Issue: 1}, state.TaskKey{Repo: 7, Issue: 2}
			w.begin(other, "TEXT-OF-ANOTHER")
			w.begin(key, "SECRET")
			w.end(key)
			whole := w.compact
			w.compact = func(context.Context) (int64, int64, error) { return 0, 0, fmt.Errorf("write: %w", syscall.ENOSPC) }
			_, err := w.purge(key, "request-1-0000000")
			var incomplete *purge.IncompleteError
			if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), "free as much space") || !strings.Contains(err.Error(), "repeat the command") {
				t.Errorf("got error %v, want one that says what to do", err)
			}
			if list, err := w.store.Purging(t.Context()); err != nil || len(list) != 1 || list[0].Task != key {
				t.Errorf("got purges to complete %v, error %v", list, err)
			}
			w.compact = whole
			if err := resume(w, key); err != nil {
				t.Errorf("resumed: got error %v", err)
			}
			if list := w.found("SECRET"); len(list) > 0 {
				t.Errorf("the text is left in %v", list)
			}
			if list, err := w.store.Purging(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("got purges to complete %v, error %v", list, err)
			}
			if task, err := w.store.Task(t.Context(), other); err != nil || task.Frozen.Title != "TEXT-OF-ANOTHER" {
				t.Errorf("got another task %v, error %v", task, err)
			}
		})
	}
}

// TestResumeSparesTheNextLife: the files of a life that began after the purge was interrupted stay, also after that life has ended. If
// those of the purged life could not be deleted before, the purge stays open until the task is purged again.
func TestResumeSparesTheNextLife(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ ended, filesLeft bool }{
		"open": {}, "ended": {ended: true}, "open, files left": {filesLeft: true}, "ended, files left": {ended: true, filesLeft: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			key := state.TaskKey{Repo: 7, Issue: 1}
			w.begin(key, "SECRET")
			w.end(key)
			whole := w.compact
			w.compact = func(context.Context) (int64, int64, error) { return 0, 0, io.ErrUnexpectedEOF }
			w.unreadable = tc.filesLeft
			if _, err := w.purge(key, "request-1-0000000"); err == nil {
				t.Fatal("got no error, want an interrupted purge")
			}
			w.compact, w.unreadable = whole, false
			w.begin(key, "TEXT-OF-THE-NEXT-LIFE")
			if tc.ended {
				w.end(key)
			}
			err := w.purger.Resume(t.Context())
			if list := w.found("TEXT-OF-THE-NEXT-LIFE"); len(list) < 4 {
				t.Errorf("the new text is only in %v", list)
			}
			if !tc.filesLeft {
				if err != nil || len(w.found("SECRET")) > 0 {
					t.Errorf("got error %v, files with the purged text %v", err, w.found("SECRET"))
				}
				return
			}
			var incomplete *purge.IncompleteError
			if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), "purge it again when it has ended") {
				t.Errorf("got error %v, want one that says what to do", err)
			}
			if open, err := w.store.Purging(t.Context()); err != nil || len(open) != 1 {
				t.Errorf("got open purges %v, error %v; want one", open, err)
			}
		})
	}
}

// TestPurgeWaitsForTheLog: the end of a run's log is still being written after the task has ended.
func TestPurgeWaitsForTheLog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	key := state.TaskKey{Repo: 7, Issue: 1}
	w.begin(key, "SECRET")
	w.apply(event.Event{Task: key, Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}}}})
	task, err := w.store.Task(t.Context(), key)
	w.check(err)
	if task.Run == nil {
		t.Fatalf("got no run in phase %s", task.Phase)
	}
	w.follows = task.Run.ID
	w.end(key)
	_, err = w.purge(key, "request-1-0000000")
	if err == nil || !strings.Contains(err.Error(), "log of run") {
		t.Errorf("got error %v, want a refusal", err)
	}
}
