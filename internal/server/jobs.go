package server

import (
	"time"

	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// Lease is how long a job may take. Those that move data to and from a VM may take longer.
func Lease(k state.JobKind) time.Duration {
	switch k {
	case state.JobLaunch, state.JobCollect, state.JobCommit, state.JobRebase, state.JobStop, state.JobSuspend:
		return 15 * time.Minute
	}
	return 2 * time.Minute
}

// Patient reports whether jobs of this kind carry a person's message or a message to people: if they gave up while
// GitHub is down, nothing would replace the lost message.
func Patient(k state.JobKind) bool {
	switch k {
	case state.JobVet, state.JobApprove, state.JobPost, state.JobStatus, state.JobDue, state.JobUntick,
		state.JobStop, state.JobRelease, state.JobForget:
		return true
	}
	return false
}

// Judge translates an error of a job for the queue.
func Judge(err error) queue.Verdict {
	p := step.ProblemOf(err)
	return queue.Verdict{Temporary: !p.Permanent, Retry: p.Retry, Reason: p.Reason, Hint: p.Hint, Class: p.Class, Outage: p.Class == state.ClassGitHub}
}
