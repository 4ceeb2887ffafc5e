package machine

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// Change is what an event does. The zero Change does nothing but spend the event.
type Change struct {
	// Task is the task after the event; nil leaves it (or its absence) as it is.
	Task *state.Task
	// Jobs are enqueued in the same transaction, subject to Job.Key.
	Jobs []state.Job
	// DropWork removes the queued (not the claimed) jobs of LaneWork first: the task turned away.
	DropWork bool
	// DropDue removes queued reminders, too: the task ended. The look for a comment's twin stays, and what
	// deletes the work that was put away.
	DropDue bool
	// Note is one sentence for the log: what was decided, or why nothing happened.
	Note string
}

// Policy is what Next needs of the operator's settings. Every duration is configurable so that the
// demo and the tests can be quick.
type Policy struct {
	Gather       time.Duration // reviews are gathered for so long into one round (45 s)
	StatusGap    time.Duration // between two edits of the status comment (10 s)
	SettleFor    time.Duration // a bare approve counts for revisions that stood so long (30 s)
	Backoff      time.Duration // first wait of an interrupted task, doubled each time (1 min)
	BackoffMax   time.Duration // its limit (1 h)
	Recheck      time.Duration // how often a waiting task looks again (1 min, doubled up to 30)
	MaxAttempts  int           // launches of the same work in a row (5)
	KeepAfterEnd time.Duration // archives stay so long (24 h)
	IdleVM       time.Duration // an idle VM that costs nothing is kept so long (55 min)
	SleepBefore  time.Duration // one that costs is put to sleep so long before its paid hour ends (5 min)
	KeepAsleep   time.Duration // work that was put away stays so long if nobody wants it (14 d)
	VMHours      time.Duration // paid VM time of a task (0: no bound)
	Models       *state.Models // what people may choose (nil: anything)
}

// DefaultPolicy returns the production values.
func DefaultPolicy() Policy {
	return Policy{
		Gather: 45 * time.Second, StatusGap: 10 * time.Second, SettleFor: 30 * time.Second,
		Backoff: time.Minute, BackoffMax: time.Hour, Recheck: time.Minute, MaxAttempts: 5,
		KeepAfterEnd: 24 * time.Hour, IdleVM: 55 * time.Minute, SleepBefore: 5 * time.Minute, KeepAsleep: 14 * 24 * time.Hour,
	}
}

// Drops reports whether the change removes a queued job.
func (c Change) Drops(j *state.Job) bool {
	what := state.DueKind(j.Args["what"])
	return c.DropWork && j.Lane == state.LaneWork || c.DropDue && j.Kind == state.JobDue && what != state.DueTwin && what != state.DueForget
}
