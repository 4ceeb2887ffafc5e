// Package purge deletes the texts of an ended task: those in the store, transcripts, archives, attachments, request logs and webhooks that
// could not be applied. Numbers, times and IDs stay.
//
// The decision is one transaction, which replaces the task and marks it. Then its files are deleted and the store is compacted, because
// free pages of its file keep what was deleted, and the mark is removed. A purge that is interrupted is
// completed by Run. Comments on GitHub, backups and transcripts of other tasks are not touched.
//
// Start with Purger.Purge.
package purge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// Files are the archive; *archive.Dir is one.
type Files interface {
	DeleteTask(prefixes ...string) (removed int, err error)
}

// Requests are the logs of the requests of VMs; *egress.Log is one.
type Requests interface {
	Delete(task string) (removed int, err error)
}

// Config configures a Purger. All fields are required.
type Config struct {
	Store    *store.Store
	Files    Files
	Requests Requests
	// Compact rewrites the store's file without what was deleted from it.
	Compact func(ctx context.Context) (before, after int64, err error)
	// Release deletes a VM with its image.
	Release func(ctx context.Context, vm string, why state.VMEndReason) error
	// Follows reports whether the log of a run is being read.
	Follows func(run string) bool
	// Settle waits until no summary of a task is being written by somebody who has read the task before it was purged.
	Settle func()
	// Copies lists other folders that may contain texts of tasks.
	Copies func() ([]string, error)
	// Patience is how long Purge waits for work on the task that is under way.
	Patience time.Duration
	// Retry is how often Run looks for purges that were not completed.
	Retry time.Duration
	Now   func() time.Time
	Log   zerolog.Logger
}

// A Purger purges tasks. Only one of its methods may be called at a time, and no backup may be made meanwhile.
type Purger struct{ cfg Config }

// New returns a Purger.
func New(cfg Config) *Purger { return &Purger{cfg} }

// A RefusedError is the reason, for the operator, why a task is not purged. Nothing was changed.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// An IncompleteError means that the task is purged, but some of its texts may still be on the disk.
type IncompleteError struct{ Err error }

func (e *IncompleteError) Error() string {
	advice := "repeat the command"
	if errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT) {
		advice = "free as much space on the disk of the data folder as the store uses, and repeat the command"
	}
	return fmt.Sprintf("the task is purged, but some of its texts may still be on the disk: %v; %s", e.Err, advice)
}

func (e *IncompleteError) Unwrap() error { return e.Err }

// pauseBetween is the time between two checks whether work on the task has ended.
const pauseBetween = 250 * time.Millisecond

// Purge deletes the texts of a task, and stores a, completed with the result. It may be repeated, also after it was interrupted. The error
// is a RefusedError, an IncompleteError, or another one, after which the task is as it was.
func (p *Purger) Purge(ctx context.Context, key state.TaskKey, a store.Action) (store.Purged, error) {
	t, err := p.await(ctx, key)
	if err != nil {
		return store.Purged{}, err
	}
	done := store.Purged{Task: fmt.Sprintf("%s#%d", t.Repo.FullName(), key.Issue), At: p.cfg.Now().UTC(), Again: !t.Purged.IsZero()}
	open, err := p.cfg.Store.Purging(ctx)
	if err != nil {
		return store.Purged{}, err
	}
	for _, o := range open { // an interrupted purge has deleted the name of the branch from the task
		if o.Task == key {
			t = onBranch(t, o.Branch)
		}
	}
	jobs, err := p.cfg.Store.Jobs(ctx, key)
	if err != nil {
		return store.Purged{}, err
	}
	for _, j := range jobs {
		if isComment(j) {
			done.Unposted++
		}
	}
	if err := p.apply(ctx, key, a); err != nil {
		return store.Purged{}, err
	}
	ctx = context.WithoutCancel(ctx) // whoever asked for it may have gone, but it has begun
	if err := errors.Join(p.finish(ctx, []purged{{task: t}}, &done), p.findCopies(ctx, t, &done)); err != nil {
		return done, &IncompleteError{err}
	}
	p.cfg.Log.Info().Str("task", key.String()).Str("by", a.By).Int("files", done.Files).Int64("store_before", done.StoreBefore).
		Int64("store_after", done.StoreAfter).Msg("task purged")
	return done, nil
}

// apply replaces the task by what stays of it.
func (p *Purger) apply(ctx context.Context, key state.TaskKey, a store.Action) error {
	e := event.Event{Task: key, ID: "operator:" + a.ID, By: state.Person{Operator: true}, Permission: state.PermissionWrite, Payload: event.Purged{}}
	changed := false
	_, err := p.cfg.Store.Act(ctx, e, a, func(applied store.Applied, a *store.Action) {
		changed = applied.Changed
		a.Result = "purged: its texts, files and archives are deleted"
		if !changed {
			a.Refused, a.Result = true, "work on the task has just begun"
		}
	})
	if err == nil && !changed {
		t, err := p.cfg.Store.Task(ctx, key)
		if err != nil {
			return err
		}
		if t == nil || t.Purged.IsZero() { // otherwise the same request was carried out before
			return &RefusedError{"work on the task has just begun; try again in a minute"}
		}
	}
	return err
}

// maxRetry bounds the time between two attempts to complete purges, in multiples of Config.Retry.
const maxRetry = 60

// Run completes interrupted purges until ctx ends, whenever it gets the lock, without which nobody else purges or makes a backup. After a
// failure it pauses twice as long each time, because each attempt may rewrite the store.
func (p *Purger) Run(ctx context.Context, lock *sync.Mutex) error {
	pause := p.cfg.Retry
	for {
		if lock.TryLock() {
			err := p.Resume(ctx)
			lock.Unlock()
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				pause = min(2*pause, maxRetry*p.cfg.Retry)
				p.cfg.Log.Error().Err(fmt.Errorf("complete an interrupted purge: %w", err)).Dur("next_attempt_in", pause).Msg("some texts of a purged task may still be on the disk")
			default:
				pause = p.cfg.Retry
			}
		}
		if clock.Sleep(ctx, pause) != nil {
			return nil
		}
	}
}

// Resume completes the purges that were interrupted. It does nothing if there is none.
func (p *Purger) Resume(ctx context.Context) error {
	open, err := p.cfg.Store.Purging(ctx)
	if err != nil || len(open) == 0 {
		return err
	}
	var list []purged
	var left []error
	for _, o := range open {
		t, err := p.cfg.Store.Task(ctx, o.Task)
		if err != nil {
			return err
		}
		if t == nil {
			t = &state.Task{Key: o.Task, Purged: p.cfg.Now()}
		}
		if !o.FilesDeleted && t.Purged.IsZero() {
			left = append(left, fmt.Errorf("%s#%d has begun again, and its files cannot be told from those of the purged life: purge it again when it has ended",
				t.Repo.FullName(), t.Key.Issue))
			continue
		}
		list = append(list, purged{onBranch(t, o.Branch), o.FilesDeleted})
	}
	var done store.Purged
	if err := errors.Join(append(left, p.finish(ctx, list, &done))...); err != nil {
		return &IncompleteError{err}
	}
	p.cfg.Log.Info().Int("tasks", len(list)).Int("files", done.Files).Msg("interrupted purge completed")
	return nil
}

// purged is a task of which texts are left in the database, and in files unless they are deleted.
type purged struct {
	task         *state.Task
	filesDeleted bool
}

// onBranch returns the task with the name of its branch, unless it has one.
func onBranch(t *state.Task, branch string) *state.Task {
	if t.Branch.Name == "" {
		copied := *t
		copied.Branch.Name = branch
		t = &copied
	}
	return t
}

// finish deletes the files, failed webhooks and images of purged tasks, compacts the store, and removes the marks of the tasks.
func (p *Purger) finish(ctx context.Context, list []purged, done *store.Purged) error {
	if len(list) == 0 {
		return nil
	}
	p.cfg.Settle()
	for _, l := range list {
		if l.filesDeleted { // by now, files are those of a later life
			continue
		}
		err := p.deleteFiles(l.task, done)
		dropped, err2 := p.dropWebhooks(ctx, l.task)
		done.Webhooks += dropped
		if err := errors.Join(err, err2, p.releaseVMs(ctx, l.task.Key)); err != nil {
			return err
		}
		if err := p.cfg.Store.StorePurgedFiles(ctx, l.task.Key); err != nil {
			return err
		}
	}
	for _, l := range list {
		dropped, err := p.awaitArrivals(ctx, l.task)
		if done.Webhooks += dropped; err != nil {
			return err
		}
	}
	var err error
	if done.StoreBefore, done.StoreAfter, err = p.cfg.Compact(ctx); err != nil {
		return err
	}
	for _, l := range list {
		if err := p.cfg.Store.EndPurge(ctx, l.task.Key); err != nil {
			return err
		}
	}
	return nil
}

// deleteFiles deletes the files of a task.
func (p *Purger) deleteFiles(t *state.Task, done *store.Purged) error {
	name := fmt.Sprintf("%d-%d", t.Key.Repo, t.Key.Issue)
	prefixes := []string{name + "-"}
	for _, m := range t.VMs { // work that could not be packed has the VM's name
		prefixes = append(prefixes, m.Name+"-saved-")
	}
	files, err := p.cfg.Files.DeleteTask(prefixes...)
	done.Files += files
	if err != nil {
		return err
	}
	logs, err := p.cfg.Requests.Delete(name)
	done.Files += logs
	return err
}

// releaseVMs deletes what is left of the task's VMs: a standby VM with its old disk, or an image of a disk.
func (p *Purger) releaseVMs(ctx context.Context, key state.TaskKey) error {
	rows, err := p.cfg.Store.VMs.List(ctx)
	if err != nil {
		return err
	}
	if over, err := p.isOver(ctx, key); !over {
		return err // a VM may be the next life's
	}
	owner := fmt.Sprintf("%d-%d", key.Repo, key.Issue)
	for _, r := range rows {
		if r.Owner != owner || r.Phase == vm.Gone || r.Successor != "" {
			continue
		}
		if err := p.cfg.Release(ctx, r.Name, state.VMEndOperator); err != nil {
			return fmt.Errorf("delete the VM %s of the task: %w", r.Name, err)
		}
	}
	return nil
}

// isOver reports whether a purged task has not begun again.
func (p *Purger) isOver(ctx context.Context, key state.TaskKey) (bool, error) {
	t, err := p.cfg.Store.Task(ctx, key)
	return err == nil && (t == nil || !t.Purged.IsZero()), err
}

// findCopies finds the copies of the texts that are not deleted.
func (p *Purger) findCopies(ctx context.Context, t *state.Task, done *store.Purged) (err error) {
	if done.Copies, err = p.cfg.Copies(); err != nil {
		return err
	}
	const most = 10_000
	backups, err := p.cfg.Store.Audit.List(ctx, most, func(a store.Action) bool {
		return a.Command == "backup" && !a.Refused && (t.Gen > 1 || a.At.After(t.Trigger.At)) // when the first life began is not known
	})
	if done.Backups = len(backups); len(backups) > 0 {
		done.LastBackup = backups[0].At
	}
	return err
}

// await waits until no work on the task is under way that has texts of it, and returns the task. The error is a RefusedError if it has
// not ended, or if the work takes longer than the Purger's patience.
func (p *Purger) await(ctx context.Context, key state.TaskKey) (*state.Task, error) {
	for waited := time.Duration(0); ; waited += pauseBetween {
		t, err := p.cfg.Store.Task(ctx, key)
		if err != nil {
			return nil, err
		}
		if t == nil {
			return nil, &RefusedError{"the task no longer exists"}
		}
		if !t.Ended() {
			return nil, &RefusedError{fmt.Sprintf("the task has not ended: %s. End it first with `errand cancel %s#%d`", words.PhaseClause(t.Phase), t.Repo.FullName(), key.Issue)}
		}
		busy, err := p.busy(ctx, t)
		if err != nil {
			return nil, err
		}
		if busy == "" {
			posting, err := p.isPosting(ctx, key)
			if err != nil || !posting || waited >= p.cfg.Patience {
				return t, err
			}
		} else if waited >= p.cfg.Patience {
			return nil, &RefusedError{busy + "; try again in a minute"}
		}
		if err := clock.Sleep(ctx, pauseBetween); err != nil {
			return nil, err
		}
	}
}

// isPosting reports whether a change of a comment is queued, such as the task's last one. It is dropped by a purge if errand cannot make it
// for long.
func (p *Purger) isPosting(ctx context.Context, key state.TaskKey) (bool, error) {
	jobs, err := p.cfg.Store.Jobs(ctx, key)
	return slices.ContainsFunc(jobs, isComment), err
}

func isComment(j state.Job) bool {
	return slices.Contains([]state.JobKind{state.JobPost, state.JobStatus, state.JobUntick}, j.Kind)
}

// busy returns why the ended task cannot be purged yet, or "".
func (p *Purger) busy(ctx context.Context, t *state.Task) (string, error) {
	switch {
	case t.End != nil && t.End.Saving:
		return "the work of the task is still being saved", nil
	case t.Run != nil:
		return "the agent of the task is still being stopped", nil
	case t.VM != nil:
		return fmt.Sprintf("the VM of the task, %s, is still being deleted", t.VM.Name), nil
	}
	for i := range t.Runs {
		if p.cfg.Follows(t.Runs[i].ID) {
			return fmt.Sprintf("the log of run %d is still being read", t.Runs[i].Seq), nil
		}
	}
	jobs, err := p.cfg.Store.Jobs(ctx, t.Key)
	if err != nil {
		return "", err
	}
	if arriving, err := p.arriving(ctx, t, jobs); arriving != "" || err != nil {
		return arriving, err
	}
	if i := slices.IndexFunc(jobs, func(j state.Job) bool { return j.State == state.JobClaimed }); i >= 0 {
		return fmt.Sprintf("a step of the task is under way (%s)", jobs[i].Kind), nil
	}
	return "", nil
}
