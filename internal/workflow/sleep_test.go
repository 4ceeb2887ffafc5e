package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/vm"
)

// TestSuspendAndRestore: commits, uncommitted changes and the session of one VM are restored on the next.
func TestSuspendAndRestore(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Rest()
	a, old := w.Suspend(), w.Host.Dir
	if a.Mode != settings.SleepArchive || a.Bytes == 0 || a.Base != w.Head("main") || a.Dir != old || a.Paths == 0 {
		t.Errorf("got saved work %+v", a)
	}
	w.NewVM()
	w.Task.Phase = state.PhaseImplementing
	w.Launching(state.RunImplement).Session = workflowtest.Session
	l := w.Launched()
	if l.RestoreFailure != "" || !l.VM.Contains("vm-1") || !l.Resumed || l.Root != "" {
		t.Errorf("got launch %+v", l)
	}
	for name, want := range map[string]string{"half.txt": "half\n", "new.txt": "new\n", "slug.go": "package slug\n\nfunc Slug() { panic(1) }\n"} {
		if got, err := os.ReadFile(filepath.Join(w.Host.Dir, name)); err != nil || string(got) != want {
			t.Errorf("got %s = %q, %v", name, got, err)
		}
	}
	if status := w.Host.Git(t, "status", "--short"); status != "M slug.go\n?? new.txt" {
		t.Errorf("got status %q", status)
	}
	p := w.Prompt()
	for _, want := range []string{"This VM is not the one of the last run. The checkout was restored", "The checkout is now at " + w.Host.Dir + "; it was at " + old} {
		if !strings.Contains(strings.Join(strings.Fields(p), " "), want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	if strings.Contains(p, "conversation so far") {
		t.Error("the session is resumed, but the prompt repeats the conversation")
	}
	if w.Do(state.JobLaunch); len(w.Host.Unpacked) != 2 { // the run is unknown because it was not really started
		t.Errorf("got unpacked %d times", len(w.Host.Unpacked))
	}
}

// TestNotUnpacked: an archive that can never be unpacked is discarded; a temporary error is retried.
func TestNotUnpacked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		attempt int
		want    string // empty: an error
	}{
		"damaged":               {fmt.Errorf("x: %w", pack.ErrMalformed), 1, "the archive of the work is damaged"},
		"no base":               {fmt.Errorf("x: %w", pack.ErrNoBase), 1, "the commit that the work builds on is gone"},
		"cut":                   {fmt.Errorf("x: %w", pack.ErrCut), 1, ""},
		"permanently truncated": {fmt.Errorf("x: %w", pack.ErrCut), 4, "the archive of the work could not be unpacked"},
		"VM gone":               {fleet.ErrEnded, 9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Rest()
			w.Suspend()
			w.NewVM()
			w.Task.Phase = state.PhaseImplementing
			w.Launching(state.RunImplement).Session = workflowtest.Session
			w.Host.Errs["Unpack"] = c.err
			e, err := w.Try(state.JobLaunch, func(j *state.Job) { j.Failures = c.attempt - 1 })
			if c.want == "" {
				if !errors.Is(err, c.err) || len(w.Host.Started) != 1 {
					t.Errorf("got event %+v, %v", e, err)
				}
				return
			}
			workflowtest.Check(t, err)
			if l := event.Of[event.Launched](e).Launch; l.RestoreFailure != c.want || l.Resumed || l.VM.Contains("vm-1") || !strings.Contains(w.Prompt(), "whose work could not be restored") {
				t.Errorf("got launch %+v", l)
			}
		})
	}
	w := workflowtest.New(t)
	w.Rest()
	workflowtest.Check(t, w.Files.DeleteSleep(w.Suspend().Ref))
	w.NewVM()
	w.Task.Phase = state.PhaseImplementing
	w.Launching(state.RunImplement)
	if l := w.Launched(); l.RestoreFailure != "the archive of the work is gone" {
		t.Errorf("got no restore: %q", l.RestoreFailure)
	}
}

// TestNotSuspended: a VM that is needed, or that belongs to another task, is left alone.
func TestNotSuspended(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Rest()
	if e := w.Do(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-0"})); e.Kind() != event.KindNothing {
		t.Errorf("another VM: got %+v", e)
	}
	w.Launching(state.RunImplement)
	if e := w.Do(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"})); e.Kind() != event.KindNothing {
		t.Errorf("with a requested run: got %+v", e)
	}
	w.Task.Run, w.Task.Phase = nil, state.PhaseDone
	if e := w.Do(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"})); e.Kind() != event.KindNothing {
		t.Errorf("after the task's end: got %+v", e)
	}
}

// TestCannotBePacked: a deleted VM is lost; an unreachable one is retried without limit; one that refuses is given up,
// keeping the work that can be saved.
func TestCannotBePacked(t *testing.T) {
	t.Parallel()
	said := fmt.Errorf("x: %w", &remote.ExitError{Code: 1})
	for name, c := range map[string]struct {
		err     error
		attempt int
		via     string // empty: an error
		saved   bool
	}{
		"gone":                {fleet.ErrEnded, 1, "vanished", false},
		"out of reach":        {remote.ErrUnreachable, 7, "", false},
		"says no":             {said, 1, "", false},
		"refuses permanently": {said, 4, "unusable", true},
		"too much":            {pack.ErrTooLarge, 1, "unusable", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Rest()
			w.Host.Errs["Pack"] = c.err
			e, err := w.Try(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"}), func(j *state.Job) { j.Failures = c.attempt - 1 })
			if c.via == "" {
				if !errors.Is(err, c.err) {
					t.Errorf("got event %+v, %v", e, err)
				}
				return
			}
			workflowtest.Check(t, err)
			slept, ok := e.Payload.(event.Suspended)
			if !ok || slept.Work != nil || string(slept.EndReason) != c.via || slept.Failure == "" || (slept.Saved.Ref != "") != c.saved {
				t.Errorf("got event %+v", e)
			}
		})
	}
}

// TestForget: saved work is deleted, unless it is in use again.
func TestForget(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Rest()
	a := w.Suspend()
	forget := workflowtest.Args(state.JobArgs{Mode: a.Mode, Ref: a.Ref})
	w.Do(state.JobForget, forget)
	if list, err := w.Files.Sleeps(); err != nil || len(list) != 1 {
		t.Fatalf("while in use: got remaining %v, %v", list, err)
	}
	w.Task.Suspended = nil
	w.Do(state.JobForget, forget)
	w.Do(state.JobForget, forget)
	if list, err := w.Files.Sleeps(); err != nil || len(list) != 0 {
		t.Errorf("got remaining %v, %v", list, err)
	}
}

// TestRestoreForAStep: if a step needs commits of a suspended task, they are restored to a VM first.
func TestRestoreForAStep(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Rest()
	w.Suspend()
	w.NewVM()
	w.Task.Phase, w.Task.Step, w.Task.Work = state.PhaseImplementing, state.JobCollect, &state.Work{Run: "1-1-2"}
	e := w.Do(state.JobCollect)
	woken := event.Of[event.Restored](e)
	if woken.For != state.JobCollect || !woken.Launch.VM.Contains("vm-1") {
		t.Fatalf("got event %+v", e)
	}
	w.Task.VM = &woken.Launch.VM
	if e := w.Do(state.JobCollect); e.Kind() != event.KindCollected || e.Work() == nil || e.Work().Paths != 3 {
		t.Errorf("got event %+v", e)
	}
}

// TestLimitsOfVMs: the effects of a limit on a task that needs a VM, and on one whose VM needs another hour.
func TestLimitsOfVMs(t *testing.T) {
	t.Parallel()
	tomorrow := time.Now().Add(12 * time.Hour)
	for limit, want := range map[string]state.WaitKind{vm.LimitVMs: state.WaitVM, vm.LimitVMCreates: state.WaitVM, vm.LimitVMsDay: state.WaitMoney, vm.LimitVMsMonth: state.WaitMoney, vm.LimitVMHours: ""} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			refused := fmt.Errorf("acquire: %w", &vm.LimitError{Limit: limit, Reason: "that is too much", Until: tomorrow})
			w := workflowtest.New(t, func(cfg *workflow.Config) { cfg.SpanAllowed = func(context.Context, string) error { return refused } })
			w.Host.Errs["Acquire"] = refused
			w.Launching(state.RunPreliminary)
			e, err := w.Try(state.JobLaunch)
			if want == "" {
				p := workflowtest.WantProblem(t, err, state.ClassVMHours, true)
				if p.Reason != "That is too much." || !strings.Contains(p.Hint, "`budget +12h`") {
					t.Errorf("got problem %+v", p)
				}
			} else if e.Kind() != event.KindStepBlocked || e.Waiting().Kind != want || !e.Waiting().Until.Equal(tomorrow) || !strings.HasPrefix(e.Waiting().Detail, "that is too much") {
				t.Errorf("got event %+v, waiting %+v, %v", e, e.Waiting(), err)
			}
			w.Task.VM = &state.VM{Name: "vm-1"}
			span := w.Do(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueSpan, Key: "vm-1"}))
			if event.Of[event.Due](span).VM != "vm-1" || (span.Waiting() != nil) != (want != "") {
				t.Errorf("got event %+v", span)
			}
		})
	}
}

// disks simulates a provider with images.
type disks struct {
	deleted []string
	err     error
}

func (d *disks) Snapshot(_ context.Context, vm string) (string, int64, error) {
	return "image-of-" + vm, 5 << 30, d.err
}

func (d *disks) DeleteSnapshot(_ context.Context, ref string) error {
	d.deleted = append(d.deleted, ref)
	return nil
}

// TestSnapshot: a repository can configure that the complete disk is saved. A VM created from it has everything.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	d := &disks{}
	w := workflowtest.New(t, func(cfg *workflow.Config) { cfg.Sleeper = d })
	w.Rest()
	w.Task.Settings.VM.Sleep = settings.SleepSnapshot
	d.err = errors.New("boom")
	if _, err := w.Try(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"})); !errors.Is(err, d.err) || len(w.Attempted) == 0 {
		t.Fatalf("got %v, marked %v", err, w.Attempted)
	}
	d.err = nil
	w.Launching(state.RunImplement) // it is needed again, but it may be off
	if e := w.Do(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"})); e.Kind() != event.KindNothing {
		t.Errorf("before the start: got %+v", e)
	}
	e := w.Do(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"}), workflowtest.Again, workflowtest.Args(state.JobArgs{VM: "vm-1"}))
	if a := event.Of[event.Suspended](e).Work; a == nil || a.Ref != "image-of-vm-1" || a.Mode != settings.SleepSnapshot {
		t.Fatalf("got event %+v", e)
	}
	event.Of[event.Suspended](e).Work.At = time.Now()
	w.Task.Suspended, w.Task.VM, w.Task.Phase, w.Task.Run.Session = event.Of[event.Suspended](e).Work, nil, state.PhaseImplementing, workflowtest.Session
	w.Host.VM.Name = "vm-2" // with the same disk
	if l := w.Launched(); !l.VM.Contains("vm-1") || !l.Resumed || len(w.Host.Unpacked) != 0 {
		t.Errorf("got launch %+v", l)
	}
	w.Host.NoSnapshot = true
	if l := w.Launched(); l.RestoreFailure != "the snapshot of the VM is gone" || l.Resumed {
		t.Errorf("got launch %+v", l)
	}
	w.Task.Suspended = nil
	w.Do(state.JobForget, workflowtest.Args(state.JobArgs{Mode: "snapshot", Ref: "image-of-vm-1"}))
	if len(d.deleted) != 1 {
		t.Errorf("got deletions %v", d.deleted)
	}
}

// TestChangedSince: a resumed agent is informed about commits by people, and about a base that has changed if enough
// time has passed.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ended time.Duration // before now
		want  bool
	}{"a moment ago": {time.Minute, false}, "yesterday": {24 * time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Phase = state.PhaseImplementing
			w.Launching(state.RunImplement)
			w.Launched()
			w.EndRun(state.RunSucceeded, workflowtest.Session)
			branch := w.Task.Branch.Name
			before := w.Head("main")
			w.Push("ada", branch, map[string]string{"ada.txt": "x\n"})
			w.Push("ada", "main", map[string]string{"other.txt": "x\n"})
			w.Task.Branch.Head, w.Task.Branch.VMHead, w.Task.Branch.Root = w.Head(branch), before, before
			w.Task.Runs[0].Ended = time.Now().Add(-c.ended)
			w.Task.Phase, w.Task.Round, w.Task.PR = state.PhaseAddressingReview, 1, &state.PR{Number: 2, Title: "x"}
			w.Task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.Person("bob"), Body: "Otherwise."}}
			w.Launching(state.RunReview).Session = workflowtest.Session
			w.Launched()
			p := strings.Join(strings.Fields(w.Prompt()), " ")
			if want := "people pushed 1 commit to the branch, which changed ada.txt."; !strings.Contains(p, want) {
				t.Errorf("the prompt lacks %q:\n%s", want, p)
			}
			if got := strings.Contains(p, "The base main has moved: it has 1 commit that the branch does not have."); got != c.want {
				t.Errorf("base in the prompt: got %v\n%s", got, p)
			}
		})
	}
}

// TestSuspensionEndsEarlierRuns: a VM's work is saved only when no run can change it.
func TestSuspensionEndsEarlierRuns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run      state.Run
		snapshot bool
		ends     bool
	}{
		"stopped by a person":                {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, true},
		"stopped at its turn limit":          {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, true},
		"ending at its turn limit":           {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns, Reported: true}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, false},
		"possibly started, on an unknown VM": {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}}, false, true},
		"stopped on another VM":              {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}, RunLaunch: state.RunLaunch{VM: "vm-9"}}, false, false},
		"ending":                             {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusOK}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, false},
		"stopped, disk to be saved":          {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := &disks{}
			w := workflowtest.New(t, func(cfg *workflow.Config) {
				if c.snapshot {
					cfg.Sleeper = disk
				}
			})
			w.Rest()
			if c.snapshot {
				w.Task.Settings.VM.Sleep = settings.SleepSnapshot
			}
			c.run.ID, c.run.Kind, c.run.State, c.run.Round = "1-1-9", state.RunImplement, state.RunEnded, w.Task.Round
			w.Task.Runs = append(w.Task.Runs, c.run)
			w.Host.Errs["Stop"] = errors.New("it does not end")
			e, err := w.Try(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"}))
			if put := err == nil && event.Of[event.Suspended](e).Work != nil; put == c.ends {
				t.Fatalf("got suspended %v although the run has not ended: %+v, %v", put, e, err)
			}
			w.Host.Errs["Stop"] = nil
			w.Do(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: "vm-1"}))
			if got := slices.Contains(w.Host.Stopped, "1-1-9 another run starts"); got != c.ends {
				t.Errorf("got ended runs %q", w.Host.Stopped)
			}
		})
	}
}
