package server_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// TestPatience: jobs that handle people's comments, answer them, or release money or VMs are retried for long; jobs
// that a task depends on are postponed or fail with a reason.
func TestPatience(t *testing.T) {
	t.Parallel()
	want := map[state.JobKind]bool{
		state.JobVet: true, state.JobApprove: true, state.JobPost: true, state.JobStatus: true, state.JobDue: true, state.JobUntick: true,
		state.JobStop: true, state.JobRelease: true, state.JobForget: true,
		state.JobReact: false, state.JobStart: false, state.JobLaunch: false, state.JobCollect: false, state.JobShow: false, state.JobCommit: false,
		state.JobMove: false, state.JobRebase: false, state.JobOpenPR: false, state.JobAnswer: false, state.JobIssue: false, state.JobGather: false,
		state.JobMinimize: false, state.JobChecks: false, state.JobUpdate: false, state.JobSuspend: false,
	}
	got := map[state.JobKind]bool{}
	for k := range want {
		got[k] = server.Patient(k)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("patient (-want +got):\n%s", diff)
	}
}

// TestVerdictOnJobErrors: permanent refusals by GitHub or a step are not retried, however they are wrapped; temporary
// failures are.
func TestVerdictOnJobErrors(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	github := func(c forge.Class) error {
		return &forge.Error{Op: "comment", Reason: "GitHub said so.", Class: c, Retry: at, Err: errors.New("answer")}
	}
	step := func(permanent bool) error {
		return &step.Problem{Reason: "It said so.", Hint: "Do.", Class: state.ClassVM, Permanent: permanent, Err: errors.New("answer")}
	}
	for name, c := range map[string]struct {
		err  error
		want queue.Verdict
	}{
		"GitHub refuses":         {github(forge.ClassPermanent), queue.Verdict{Retry: at, Reason: "GitHub said so.", Class: state.ClassGitHub, Outage: true}},
		"GitHub cannot be asked": {github(forge.ClassTemporary), queue.Verdict{Temporary: true, Retry: at, Reason: "GitHub said so.", Class: state.ClassGitHub, Outage: true}},
		"the outcome is unknown": {github(forge.ClassUnknown), queue.Verdict{Temporary: true, Retry: at, Reason: "GitHub said so.", Class: state.ClassGitHub, Outage: true}},
		"a step refuses":         {step(true), queue.Verdict{Reason: "It said so.", Class: state.ClassVM}},
		"a step fails":           {step(false), queue.Verdict{Temporary: true, Reason: "It said so.", Class: state.ClassVM}},
		"it took too long":       {context.DeadlineExceeded, queue.Verdict{Temporary: true, Reason: "A step took too long.", Class: state.ClassTimeout}},
		"an internal error":      {errors.New("boom"), queue.Verdict{Temporary: true, Reason: "Something went wrong on errand's side.", Class: state.ClassInternal}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, err := range []error{c.err, fmt.Errorf("take a step: %w", c.err)} {
				got := server.Judge(err)
				got.Hint = ""
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
}
