package machine

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// Change is the effect of an event. The zero Change has no effect.
type Change struct {
	// Task is the task after the event; nil leaves the task (or its absence) unchanged.
	Task *state.Task
	// Jobs are enqueued in the same transaction, subject to Job.Key.
	Jobs []state.Job
	// DropWork removes the queued (not the claimed) jobs of LaneWork first, because the task changed course.
	DropWork bool
	// DropDue removes queued reminders and reads of checks, too, because the task ended or began anew. Checks for duplicate comments and deletions of
	// saved work stay.
	DropDue bool
	// DropTexts removes queued jobs that contain or post texts of the task, because these are deleted.
	DropTexts bool
	// Answer is the reason of the reply to a command of the operator, one of state.Reply…; empty if it needs none, or the event is
	// another one.
	Answer string
	// Note is one sentence for the log: the decision, or the reason why there is none.
	Note string
}

// Policy is the part of the operator's settings that Next needs. Every duration is configurable, so that the demo and
// the tests are fast.
type Policy struct {
	Gather       time.Duration // how long reviews are gathered into one round (45 s)
	GatherTalk   time.Duration // how long after a comment on a plan or a question more comments are gathered (60 s)
	GatherMax    time.Duration // the maximum time from the first of them (5 min)
	StatusGap    time.Duration // the time between two edits of the status comment (10 s)
	SettleFor    time.Duration // a bare approve counts for revisions that were posted this long before (30 s)
	Backoff      time.Duration // the first delay of an interrupted task, doubled each time (1 min)
	BackoffMax   time.Duration // the maximum delay (1 h)
	Recheck      time.Duration // how often a waiting task checks again (1 min, doubled up to 30)
	MaxAttempts  int           // launches of the same work in a row (5)
	KeepAfterEnd time.Duration // how long archives are kept after the end (24 h)
	IdleVM       time.Duration // how long an idle VM that costs nothing is kept (55 min)
	SleepBefore  time.Duration // how long before the end of its paid hour a VM is suspended (5 min)
	KeepAsleep   time.Duration // how long unused saved work is kept (14 d)
	VMHours      time.Duration // paid VM time of a task (0: no limit)
	UsedRuns     int           // runs up to this number may exist that the store does not know, because it was restored from a backup
	Restored     time.Time     // when the store was restored from a backup; zero if it was not
	DraftWait    time.Duration // how long required checks may take to start on a draft (10 min)
	Models       *Models       // the models that people may choose (nil: any)
}

// Models are the models that people can choose with the command `model`.
type Models struct {
	// Offers reports whether a model can be chosen.
	Offers func(name string) bool
	// Names lists the models and patterns as people would write them.
	Names []string
}

// DefaultPolicy returns the production values.
func DefaultPolicy() Policy {
	return Policy{
		Gather: 45 * time.Second, GatherTalk: time.Minute, GatherMax: 5 * time.Minute, StatusGap: 10 * time.Second, SettleFor: 30 * time.Second,
		Backoff: time.Minute, BackoffMax: time.Hour, Recheck: time.Minute, MaxAttempts: 5,
		KeepAfterEnd: 24 * time.Hour, IdleVM: 55 * time.Minute, SleepBefore: 5 * time.Minute, KeepAsleep: 14 * 24 * time.Hour, DraftWait: 10 * time.Minute,
	}
}

// Drops reports whether the change removes a queued job.
func (c Change) Drops(j *state.Job) bool {
	due := j.Args.Due
	if c.DropTexts && !slices.Contains(withoutText, j.Kind) &&
		(j.Kind != state.JobDue || due != state.DueDuplicate && due != state.DueForget) {
		return true
	}
	isReminder := j.Kind == state.JobDue && due != state.DueDuplicate && due != state.DueForget || j.Kind == state.JobChecks
	return c.DropWork && j.Lane == state.LaneWork || c.DropDue && isReminder
}

// withoutText are the jobs that stay when the texts of a task are deleted: they delete or hide something.
var withoutText = []state.JobKind{state.JobRelease, state.JobForget, state.JobMinimize, state.JobClosePR}
