package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/purge"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// purgePatience is how long a purge waits for work on its task that is under way, such as the last comment.
const purgePatience = 20 * time.Second

// makePurger creates the purger of tasks.
func (s *Server) makePurger(context.Context) error {
	s.purger = purge.New(purge.Config{
		Store:    s.store,
		Files:    s.archive,
		Requests: s.reached,
		Compact:  s.file.Compact,
		Release:  s.fleet.Release,
		Follows:  s.super.Follows,
		Settle:   s.summaries.Settle,
		Copies:   func() ([]string, error) { return backup.PutAside(s.cfg.Data) },
		Patience: purgePatience,
		Retry:    time.Minute,
		Now:      s.opts.Now,
		Log:      s.opts.Log,
	})
	return nil
}

// purge deletes the texts of an ended task, for one request.
func (s *Server) purge(ctx context.Context, key state.TaskKey, a store.Action) (store.Purged, error) {
	if err := s.mayChange(ctx); errors.Is(err, ErrRestored) {
		return store.Purged{}, admin.Refusal(err.Error())
	} else if err != nil {
		return store.Purged{}, err
	}
	if !s.copying.TryLock() {
		return store.Purged{}, admin.Refusal("a backup is being made, which would contain the texts, or another task is being purged; try again when that has ended")
	}
	defer s.copying.Unlock()
	done, err := s.purger.Purge(ctx, key, a)
	var refused *purge.RefusedError
	if errors.As(err, &refused) {
		return done, admin.Refusal(refused.Reason)
	}
	return done, err
}

// resumePurges completes the purges that were interrupted, when no backup is being made.
func (s *Server) resumePurges(ctx context.Context) error { return s.purger.Run(ctx, &s.copying) }

// destroy deletes the VM and the saved work of a task, for one request. The jobs of the task carry it out, as they delete VMs that are not
// needed any more.
func (s *Server) destroy(ctx context.Context, key state.TaskKey, force bool, a store.Action) (admin.Destroyed, error) {
	if err := s.mayChange(ctx); errors.Is(err, ErrRestored) {
		return admin.Destroyed{}, admin.Refusal(err.Error())
	} else if err != nil {
		return admin.Destroyed{}, err
	}
	before, err := s.store.Task(ctx, key)
	if err != nil {
		return admin.Destroyed{}, err
	}
	if before == nil {
		return admin.Destroyed{}, admin.Refusal("the task no longer exists")
	}
	done := admin.Destroyed{Task: a.Subject, SavedWork: before.Suspended != nil}
	if before.VM != nil {
		done.VM = before.VM.Name
	}
	e := event.Event{
		Task: key, ID: "operator:" + a.ID, By: state.Person{Operator: true}, Permission: state.PermissionWrite, Payload: event.Destroyed{Force: force},
	}
	a, err = s.store.Act(ctx, e, a, func(applied store.Applied, a *store.Action) {
		if a.Refused = !applied.Changed; a.Refused {
			a.Result = notDestroyed(before)
			return
		}
		done.Stopped = applied.Task.Phase != before.Phase
		a.Result = destroyedText(done, applied.Task)
	})
	if err != nil {
		return admin.Destroyed{}, err
	}
	if done.Result, done.Refused = a.Result, a.Refused; done.Refused {
		return done, nil
	}
	s.opts.Log.Info().Str("task", key.String()).Str("by", a.By).Str("vm", done.VM).Bool("force", force).Msg("VM of a task deleted by the operator")
	return done, nil
}

// notDestroyed describes why nothing of a task is deleted.
func notDestroyed(t *state.Task) string {
	name := fmt.Sprintf("%s#%d", t.Repo.FullName(), t.Key.Issue)
	switch {
	case t.VM == nil && t.Suspended == nil:
		return "the task has no VM and no saved work"
	case t.Ended():
		return "the work on the VM of the ended task is being saved; wait until it is, or add `--force`"
	}
	return fmt.Sprintf("the task needs its VM now: %s; stop it first with `errand stop %s`, or add `--force`", words.PhaseClause(t.Phase), name)
}

// destroyedText describes in one line what is deleted.
func destroyedText(d admin.Destroyed, t *state.Task) string {
	text := "its saved work is being deleted"
	switch {
	case d.VM != "" && d.SavedWork:
		text = fmt.Sprintf("the VM %s and the saved work are being deleted", d.VM)
	case d.VM != "":
		text = fmt.Sprintf("the VM %s is being deleted", d.VM)
	}
	switch {
	case t.Ended():
		return text
	case d.Stopped:
		return text + "; the task was stopped, and `retry` continues it on a new VM"
	}
	return text + "; the task continues on a new VM when it needs one"
}
