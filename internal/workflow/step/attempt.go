// Package step has the parts that the steps of a task share: the attempt at a job, the events that any step may return,
// the errors that are reported to people, and the settings of the task's repository.
//
// Start with Attempt, which every step gets, and Problem, which every step may return.
package step

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// An Attempt is one attempt at a job, with the task that the job belongs to.
type Attempt struct {
	Job *state.Job
	// Task is nil when there is none (yet).
	Task *state.Task
	Repo forge.Repo
	Log  *zerolog.Logger
	// Base is the newest commit of the task's base branch at BaseRead, empty if this attempt has not read it.
	Base     string
	BaseRead time.Time

	marks Marks
}

// Marks stores how far an attempt got, for the next one.
type Marks interface {
	MarkAttempted(ctx context.Context, job string, epoch int64) error
	MarkLaunch(ctx context.Context, job string, epoch int64, l state.Launch) error
}

// NewAttempt returns an attempt at a job. The task may be nil.
func NewAttempt(job *state.Job, task *state.Task, marks Marks, log *zerolog.Logger) *Attempt {
	w := &Attempt{Job: job, Task: task, Log: log, marks: marks}
	if task != nil {
		w.Repo = forge.RepoOf(task)
	}
	return w
}

// MarkAttempted marks, durably, that the job's outside effect may have happened from now on. It reports
// whether that was so before, in which case the step has to look for the effect first.
func (w *Attempt) MarkAttempted(ctx context.Context) (before bool, err error) {
	if w.Job.Attempted {
		return true, nil
	}
	return false, w.marks.MarkAttempted(ctx, w.Job.ID, w.Job.Epoch)
}

// MarkLaunch marks, durably, that the run may have been started from now on, and with which settings.
func (w *Attempt) MarkLaunch(ctx context.Context, l state.Launch) error {
	return w.marks.MarkLaunch(ctx, w.Job.ID, w.Job.Epoch, l)
}

// VettedWithin reports whether the job carries GitHub's answer about a person's permission, and the answer is younger
// than d.
func (w *Attempt) VettedWithin(d time.Duration, userID int64, now time.Time) bool {
	if w.Job == nil || w.Job.Vetted == nil || userID == 0 || w.Job.Vetted.By.ID != userID {
		return false
	}
	age := now.Sub(w.Job.Vetted.At)
	return age >= 0 && age < d
}
