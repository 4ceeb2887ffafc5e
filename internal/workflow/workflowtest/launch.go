package workflowtest

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Launching sets the task to launch a run of a kind.
func (w *World) Launching(kind state.RunKind) *state.Run {
	w.Task.RunSeq++
	w.Task.Run = &state.Run{
		ID:        fmt.Sprintf("1-1-%d", w.Task.RunSeq),
		Kind:      kind,
		State:     state.RunLaunching,
		Seq:       w.Task.RunSeq,
		RunLaunch: state.RunLaunch{Attempt: 1, Round: w.Task.Round},
	}
	return w.Task.Run
}

// EndRun records the end of the run as the transition table does.
func (w *World) EndRun(class state.RunClass, session string) {
	r := *w.Task.Run
	r.State, r.Class, r.Session, r.VM, r.Started = state.RunEnded, class, session, w.Host.VM.Name, time.Now()
	w.Task.Runs, w.Task.Run = append(w.Task.Runs, r), nil
	vm := w.Host.VM
	w.Task.VM = &vm
}

// Launched runs the job launch, which must succeed.
func (w *World) Launched() *state.Launch {
	w.T.Helper()
	e := w.Do(state.JobLaunch)
	launched, ok := e.Payload.(event.Launched)
	if !ok || e.Run != w.Task.Run.ID {
		w.T.Fatalf("got event %s (%s), waiting %+v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, e.Waiting())
	}
	return &launched.Launch
}

// Prompt returns the prompt of the last run.
func (w *World) Prompt() string {
	w.T.Helper()
	f, err := w.Files.OpenTranscript(w.Task.Run.ID)
	Check(w.T, err)
	defer func() { Check(w.T, f.Close()) }()
	h, err := runlog.ReadTranscript(f, func(runlog.Entry) error { return nil })
	Check(w.T, err)
	return h.System + "\n" + h.User
}
