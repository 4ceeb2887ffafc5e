package workflowtest

import (
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Rest brings the task to a question, with commits, uncommitted changes and a session on its VM.
func (w *World) Rest() {
	w.T.Helper()
	w.Task.Phase = state.PhaseImplementing
	w.Launching(state.RunImplement)
	w.Launched()
	w.Host.Commit(w.T, "half", map[string]string{"half.txt": "half\n"})
	w.Host.Write(w.T, map[string]string{"slug.go": "package slug\n\nfunc Slug() { panic(1) }\n", "new.txt": "new\n"})
	path := filepath.Join(w.Host.Home, ".claude", "projects", "x", Session+".jsonl")
	Check(w.T, os.MkdirAll(filepath.Dir(path), 0o755))
	Check(w.T, os.WriteFile(path, []byte("{}\n"), 0o600))
	w.EndRun(state.RunSucceeded, Session)
	w.Task.Phase, w.Task.Branch.Root, w.Task.Branch.VMHead = state.PhaseAwaitingAnswer, w.Head("main"), w.Head("main")
}

// Suspend saves the VM's work as the job does, and stores the result as the transition table does.
func (w *World) Suspend() *state.SuspendedWork {
	w.T.Helper()
	e := w.Do(state.JobSuspend, Args(state.JobArgs{VM: w.Host.VM.Name}))
	if e.Kind() != event.KindSuspended || event.Of[event.Suspended](e).VM != w.Host.VM.Name || event.Of[event.Suspended](e).Work == nil {
		w.T.Fatalf("event %+v", e)
	}
	a := *event.Of[event.Suspended](e).Work
	a.At = time.Now()
	w.Task.Suspended, w.Task.VM = &a, nil
	return &a
}

// NewVM makes the next VM of the task a different one.
func (w *World) NewVM() {
	w.Host.VM.Name, w.Host.VM.Gen = "vm-2", 2
	w.Host.Dir, w.Host.Home = filepath.Join(w.T.TempDir(), "other"), w.T.TempDir()
}
