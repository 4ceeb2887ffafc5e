package server

import (
	"time"

	"github.com/errand-bot/errand/state/machine"
)

// Timing holds the intervals, time limits and rates that errand decides itself. Operators set only those in
// config.Timing. Tests and the demo start from DefaultTiming and pass shorter ones in Options.Timing.
type Timing struct {
	// StatusGap is the minimum time between two edits of a status comment.
	StatusGap time.Duration
	// GatherTalk is how long after a comment on a waiting plan or an open question more comments are gathered for the same
	// run, and GatherMax the maximum time from the first of them.
	GatherTalk, GatherMax time.Duration
	// Settle is how long a revision must have existed before an `approve` without its hash counts.
	Settle time.Duration
	// DraftWait is how long required checks may take to start on a draft. After that it is marked ready for review all the same, because
	// many workflows do not run for drafts.
	DraftWait time.Duration
	// Backoff is the first wait of an interrupted task and of a model call that the provider refused; each further
	// wait of a task is twice as long, up to BackoffMax.
	Backoff, BackoffMax time.Duration
	// Recheck is when a waiting task first checks again whether it can continue.
	Recheck time.Duration
	// MaxAttempts bounds how often the same work is launched in a row.
	MaxAttempts int
	// SleepBefore is how long before the end of an idle VM's paid time its work is archived.
	SleepBefore time.Duration

	// PollGap is the minimum time between two reads of reactions.
	PollGap time.Duration
	// ChecksQuiet is how long no check may have appeared on a pull request's head before it is green, if no check is required.
	ChecksQuiet time.Duration
	// GoneAfter is how long an issue may be unreachable before its task ends, if no webhook says why.
	GoneAfter time.Duration
	// ReadWebhooks is how often webhooks are read from GitHub's log if GitHub cannot send them.
	ReadWebhooks time.Duration
	// CatchUp limits how long jobs wait, after a restoration, for what GitHub says about the time since the backup.
	CatchUp time.Duration
	// GitHubTimeout bounds one request to GitHub.
	GitHubTimeout time.Duration
	// RateLimitPause is the first pause after a secondary rate limit whose answer names no time; it doubles while the
	// limit lasts.
	RateLimitPause time.Duration
	// WritesBurst is how many writes to GitHub an installation may make at once, and WritesEvery the time after which
	// it may make one more. ObjectsEvery is the same for git objects, which are not visible yet.
	WritesBurst               int
	WritesEvery, ObjectsEvery time.Duration

	// JobRetry is the first wait of a failed job.
	JobRetry time.Duration
	// RescueEvery is the time between two checks for jobs whose lease has expired.
	RescueEvery time.Duration
	// ProgressEvery is how often a run's last activity is stored.
	ProgressEvery time.Duration
	// UnreachableFor is how long a VM may be unreachable before it counts as lost.
	UnreachableFor time.Duration
	// ReapGrace is how long a VM may exist without a task before it is deleted.
	ReapGrace time.Duration
	// VMTick is the pause between two checks of VMs that are being created or started.
	VMTick time.Duration
	// VMQueue is how often the queue for VMs is checked while tasks wait in it.
	VMQueue time.Duration
}

// DefaultTiming returns the values of production.
func DefaultTiming() Timing {
	p := machine.DefaultPolicy()
	return Timing{
		StatusGap: p.StatusGap, GatherTalk: p.GatherTalk, GatherMax: p.GatherMax, Settle: p.SettleFor, DraftWait: p.DraftWait,
		Backoff: p.Backoff, BackoffMax: p.BackoffMax, Recheck: p.Recheck,
		MaxAttempts: p.MaxAttempts, SleepBefore: p.SleepBefore,
		PollGap: 2 * time.Second, ChecksQuiet: 2 * time.Minute, GoneAfter: time.Hour, ReadWebhooks: 15 * time.Second, CatchUp: 10 * time.Minute,
		GitHubTimeout: 30 * time.Second, RateLimitPause: time.Minute,
		WritesBurst: 20, WritesEvery: time.Second, ObjectsEvery: 330 * time.Millisecond,
		JobRetry: 2 * time.Second, RescueEvery: 10 * time.Second, ProgressEvery: 5 * time.Second,
		UnreachableFor: 10 * time.Minute, ReapGrace: 15 * time.Minute, VMTick: 5 * time.Second,
		VMQueue: 2 * time.Second,
	}
}

// policy returns the settings of the state machine: the operator's, with errand's own timing.
func (s *Server) policy() machine.Policy {
	p, t := s.cfg.Policy(), s.opts.Timing
	p.StatusGap, p.SettleFor, p.Recheck, p.DraftWait = t.StatusGap, t.Settle, t.Recheck, t.DraftWait
	p.Backoff, p.BackoffMax, p.MaxAttempts = t.Backoff, t.BackoffMax, t.MaxAttempts
	p.SleepBefore, p.GatherTalk, p.GatherMax = t.SleepBefore, t.GatherTalk, t.GatherMax
	return p
}
