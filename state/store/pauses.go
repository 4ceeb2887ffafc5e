package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// Pauses keeps the pauses that operators ordered. Each change is stored together with its entry in the audit log.
type Pauses struct {
	rows
	now func() time.Time
}

// List returns the pauses in effect: that of all repositories first, then by name.
func (s *Pauses) List(ctx context.Context) ([]state.Pause, error) {
	var list []state.Pause
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		list, err = s.read(r)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the pauses: %w", err)
	}
	return list, nil
}

// Of returns the pause that applies to a repository, or nil. That of all repositories comes first. For repository 0 only that
// one applies.
func (s *Pauses) Of(ctx context.Context, repo int64) (*state.Pause, error) {
	list, err := s.List(ctx)
	i := slices.IndexFunc(list, func(p state.Pause) bool { return p.Repo == 0 || p.Repo == repo })
	if err != nil || i < 0 {
		return nil, err
	}
	return &list[i], nil
}

// Changed returns a channel that receives after each change of the pauses, until ctx ends.
func (s *Pauses) Changed(ctx context.Context) <-chan struct{} { return s.db.Notify(ctx, keyPauses) }

// Set begins a pause and stores a, completed with the result. A repository, or errand, that is paused already stays paused since
// the same time by the same operator; a new reason replaces the old one. It may be called before a server opens the store.
func (s *Pauses) Set(ctx context.Context, p state.Pause, a Action) (Action, error) {
	return s.change(ctx, a, func(list []state.Pause, a *Action) []state.Pause {
		i := slices.IndexFunc(list, func(old state.Pause) bool { return old.Repo == p.Repo })
		switch {
		case i < 0:
			p.Since, a.Result = s.now(), "paused"
			return append(list, p)
		case p.Reason != "" && p.Reason != list[i].Reason:
			list[i].Reason, a.Result = p.Reason, "was paused already; the reason was replaced"
		default:
			a.Result = "was paused already"
		}
		return list
	})
}

// Lift ends the pauses for which which returns true, and stores a, completed with the result. It also returns the pauses that
// ended, and those that remain.
func (s *Pauses) Lift(ctx context.Context, which func(state.Pause) bool, a Action) (done Action, ended, left []state.Pause, err error) {
	done, err = s.change(ctx, a, func(list []state.Pause, a *Action) []state.Pause {
		ended, left = nil, nil
		for _, p := range list {
			if which(p) {
				ended = append(ended, p)
			} else {
				left = append(left, p)
			}
		}
		if a.Result = "resumed"; len(ended) == 0 {
			a.Result = "was not paused"
		}
		return left
	})
	return done, ended, left, err
}

// change replaces the pauses in one transaction with the entry in the audit log. fn may be called again.
func (s *Pauses) change(ctx context.Context, a Action, fn func([]state.Pause, *Action) []state.Pause) (Action, error) {
	var done Action
	err := kv.Update(ctx, s.db, a.Command, func(tx kv.Tx) error {
		list, err := s.read(tx)
		if err != nil {
			return err
		}
		done = a
		done.At = s.now()
		list = fn(list, &done)
		slices.SortFunc(list, func(a, b state.Pause) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Repo, b.Repo))
		})
		if len(list) == 0 {
			err = tx.Delete(keyPauses)
		} else {
			err = s.codec.PutJSON(tx, keyPauses, list)
		}
		return errors.Join(err, putAction(tx, done))
	})
	if err != nil {
		return Action{}, fmt.Errorf("%s: %w", a.Command, err)
	}
	return done, nil
}

func (s *Pauses) read(r kv.Reader) ([]state.Pause, error) {
	var list []state.Pause
	if err := s.codec.GetJSON(r, keyPauses, &list); err != nil && !errors.Is(err, kv.ErrNotFound) {
		return nil, err
	}
	return list, nil
}

// UnderWay is something that errand does for a task at this moment.
type UnderWay struct {
	Task state.TaskKey
	Repo state.Repo
	// Job is state.StepRun for a run, with its kind in Run, and otherwise the job or the step of the task.
	Job state.JobKind
	Run state.RunKind
}

// UnderWay lists, by task, the runs that work or are being started, and the jobs that save work, delete VMs or publish. Jobs that
// only read, and runs that a pause keeps from starting, are not among them. If it returns nothing after a pause, then nothing
// begins until errand resumes or a person acts.
func (s *Store) UnderWay(ctx context.Context) ([]UnderWay, error) {
	found := map[state.TaskKey]UnderWay{}
	now := s.now()
	err := s.eachQueue(ctx, func(q *queue) { // first, since a claimed job may become a run
		for _, j := range q.jobs {
			if hasEffect(j.Kind) && isUnderWay(j, now) {
				found[q.task] = UnderWay{Task: q.task, Job: j.Kind}
				return
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	err = s.EachOpen(ctx, func(l Listed) error {
		if !l.Phase.Working() {
			return nil
		}
		t, err := l.Load()
		if err != nil {
			return err
		}
		switch {
		case t.Run != nil && t.Run.State != state.RunLaunching:
			found[t.Key] = UnderWay{Task: t.Key, Job: state.StepRun, Run: t.Run.Kind}
		case t.Run == nil && t.Waiting == nil && t.Phase != state.PhaseQueued && found[t.Key].Job == "":
			found[t.Key] = UnderWay{Task: t.Key, Job: t.Step}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]UnderWay, 0, len(found))
	for key, u := range found {
		t, err := s.Task(ctx, key)
		if err != nil {
			return nil, err
		}
		if t != nil {
			u.Repo = t.Repo
		}
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b UnderWay) int {
		return cmp.Or(cmp.Compare(a.Task.Repo, b.Task.Repo), cmp.Compare(a.Task.Issue, b.Task.Issue))
	})
	return list, nil
}

// hasEffect reports whether a job of this kind starts a run, changes a VM or saved work, or publishes something. Reactions and the
// status comment do not count: a delay does not matter to anybody.
func hasEffect(k state.JobKind) bool {
	switch k {
	case state.JobLaunch, state.JobStop, state.JobSuspend, state.JobRelease,
		state.JobCollect, state.JobRebase, state.JobShow, state.JobCommit, state.JobMove, state.JobOpenPR, state.JobReopen, state.JobClosePR, state.JobAnswer, state.JobUpdate,
		state.JobFinish, state.JobPost, state.JobIssue:
		return true
	}
	return false
}

// isUnderWay reports whether the effect of a job is to be waited for: it has a worker, or is due, or is tried again after a failure. A
// launch waits as long as a pause lasts, unless its run may have begun already.
func isUnderWay(j state.Job, now time.Time) bool {
	switch {
	case j.State == state.JobClaimed:
		return true
	case j.Kind == state.JobLaunch:
		return j.Attempted && j.Launch != nil
	}
	return j.Attempt > 0 || !j.NotBefore.After(now)
}
