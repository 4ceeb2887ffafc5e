package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/vm"
)

// rests brings the task to a question, with work on its VM that is committed, changed and remembered.
func (w *world) rests() {
	w.t.Helper()
	w.task.Phase = state.PhaseImplementing
	w.launching(state.RunImplement)
	w.launchedWell()
	w.host.commit(w.t, "half", map[string]string{"half.txt": "half\n"})
	w.host.write(w.t, map[string]string{"slug.go": "package slug\n\nfunc Slug() { panic(1) }\n", "new.txt": "new\n"})
	path := filepath.Join(w.host.home, ".claude", "projects", "x", session+".jsonl")
	check(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(w.t, os.WriteFile(path, []byte("{}\n"), 0o600))
	w.ran("success", session)
	w.task.Phase, w.task.Branch.Root, w.task.Branch.VMHead = state.PhaseAwaitingAnswer, w.head("main"), w.head("main")
}

// sleeps puts the VM's work away as the job does, and stores that as the transition table does.
func (w *world) sleeps() *state.Asleep {
	w.t.Helper()
	e := w.do(state.JobSleep, args("vm", w.host.vm.Name))
	if e.Kind != state.EventSlept || e.VM != w.host.vm.Name || e.Asleep == nil {
		w.t.Fatalf("event %+v", e)
	}
	a := *e.Asleep
	a.At = time.Now()
	w.task.Asleep, w.task.VM = &a, nil
	return &a
}

// newVM has the next VM of the task be another one.
func (w *world) newVM() {
	w.host.vm.Name, w.host.vm.Gen = "vm-2", 2
	w.host.dir, w.host.home = filepath.Join(w.t.TempDir(), "other"), w.t.TempDir()
}

// TestSleepAndWake: what was committed, changed and said on one VM goes on on the next.
func TestSleepAndWake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rests()
	a, old := w.sleeps(), w.host.dir
	if a.Mode != state.SleepArchive || a.Bytes == 0 || a.Base != w.head("main") || a.Dir != old || a.Paths == 0 {
		t.Errorf("asleep %+v", a)
	}
	w.newVM()
	w.task.Phase = state.PhaseImplementing
	w.launching(state.RunImplement).Session = session
	l := w.launchedWell()
	if l.NotWoken != "" || !l.VM.Holds("vm-1") || !l.Resumed || l.Root != "" {
		t.Errorf("launch %+v", l)
	}
	for name, want := range map[string]string{"half.txt": "half\n", "new.txt": "new\n", "slug.go": "package slug\n\nfunc Slug() { panic(1) }\n"} {
		if got, err := os.ReadFile(filepath.Join(w.host.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if status := w.host.git(t, "status", "--short"); status != "M slug.go\n?? new.txt" {
		t.Errorf("status %q", status)
	}
	p := w.prompt()
	for _, want := range []string{"another VM than in the last run. The checkout was brought over", "The checkout is at " + w.host.dir + " now; it was at " + old} {
		if !strings.Contains(strings.Join(strings.Fields(p), " "), want) {
			t.Errorf("the prompt lacks %q:\n%s", want, p)
		}
	}
	if strings.Contains(p, "conversation so far") {
		t.Error("the session is resumed, and told anew")
	}
	if w.do(state.JobLaunch); len(w.host.unpacked) != 2 { // the run is not known: it was not started in earnest
		t.Errorf("unpacked %d times", len(w.host.unpacked))
	}
}

// TestNotUnpacked: what can never be unpacked is given up, what may be is tried again.
func TestNotUnpacked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		attempt int
		want    string // empty: an error
	}{
		"damaged":      {fmt.Errorf("x: %w", pack.ErrMalformed), 1, "the archive of the work is damaged"},
		"no base":      {fmt.Errorf("x: %w", pack.ErrNoBase), 1, "the commit that the work builds on is gone"},
		"cut":          {fmt.Errorf("x: %w", pack.ErrCut), 1, ""},
		"cut for good": {fmt.Errorf("x: %w", pack.ErrCut), 4, "the archive of the work could not be unpacked"},
		"VM gone":      {fleet.ErrEnded, 9, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rests()
			w.sleeps()
			w.newVM()
			w.task.Phase = state.PhaseImplementing
			w.launching(state.RunImplement).Session = session
			w.host.errs["Unpack"] = c.err
			e, err := w.try(state.JobLaunch, func(j *state.Job) { j.Failures = c.attempt - 1 })
			if c.want == "" {
				if !errors.Is(err, c.err) || len(w.host.started) != 1 {
					t.Errorf("event %+v, %v", e, err)
				}
				return
			}
			check(t, err)
			if l := e.Launch; l == nil || l.NotWoken != c.want || l.Resumed || l.VM.Holds("vm-1") || !strings.Contains(w.prompt(), "could not be brought over") {
				t.Errorf("launch %+v", l)
			}
		})
	}
	w := newWorld(t)
	w.rests()
	check(t, w.files.DeleteSleep(w.sleeps().Ref))
	w.newVM()
	w.task.Phase = state.PhaseImplementing
	w.launching(state.RunImplement)
	if l := w.launchedWell(); l.NotWoken != "the archive of the work is gone" {
		t.Errorf("not woken: %q", l.NotWoken)
	}
}

// TestNotAsleep: a VM that is wanted, or not the task's, is left alone.
func TestNotAsleep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rests()
	if e := w.do(state.JobSleep, args("vm", "vm-0")); e.Kind != step.EventNothing {
		t.Errorf("another VM: %+v", e)
	}
	w.launching(state.RunImplement)
	if e := w.do(state.JobSleep, args("vm", "vm-1")); e.Kind != step.EventNothing {
		t.Errorf("a run is wanted: %+v", e)
	}
	w.task.Run, w.task.Phase = nil, state.PhaseDone
	if e := w.do(state.JobSleep, args("vm", "vm-1")); e.Kind != step.EventNothing {
		t.Errorf("the task is over: %+v", e)
	}
}

// TestCannotBePacked: a VM that is gone is so; one that is out of reach is tried again, for however long; one
// that says no is given up, with what can be saved.
func TestCannotBePacked(t *testing.T) {
	t.Parallel()
	said := fmt.Errorf("x: %w", &remote.ExitError{Code: 1})
	for name, c := range map[string]struct {
		err     error
		attempt int
		via     string // empty: an error
		saved   bool
	}{
		"gone":             {fleet.ErrEnded, 1, "vanished", false},
		"out of reach":     {remote.ErrUnreachable, 7, "", false},
		"says no":          {said, 1, "", false},
		"says no for good": {said, 4, "unusable", true},
		"too much":         {pack.ErrTooLarge, 1, "unusable", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.rests()
			w.host.errs["Pack"] = c.err
			e, err := w.try(state.JobSleep, args("vm", "vm-1"), func(j *state.Job) { j.Failures = c.attempt - 1 })
			if c.via == "" {
				if !errors.Is(err, c.err) {
					t.Errorf("event %+v, %v", e, err)
				}
				return
			}
			check(t, err)
			if e.Kind != state.EventSlept || e.Asleep != nil || e.Via != c.via || e.Detail == "" || (e.Saved != nil) != c.saved {
				t.Errorf("event %+v", e)
			}
		})
	}
}

// TestForget: what was put away is deleted, unless it is in use again.
func TestForget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rests()
	a := w.sleeps()
	forget := args("mode", string(a.Mode), "ref", a.Ref)
	w.do(state.JobForget, forget)
	if list, err := w.files.Sleeps(); err != nil || len(list) != 1 {
		t.Fatalf("in use, and %v is left, %v", list, err)
	}
	w.task.Asleep = nil
	w.do(state.JobForget, forget)
	w.do(state.JobForget, forget)
	if list, err := w.files.Sleeps(); err != nil || len(list) != 0 {
		t.Errorf("left: %v, %v", list, err)
	}
}

// TestWakeForAStep: commits that are to be read again while they sleep are brought onto a VM first.
func TestWakeForAStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rests()
	w.sleeps()
	w.newVM()
	w.task.Phase, w.task.Step, w.task.Work = state.PhaseImplementing, state.JobCollect, &state.Work{Run: "1-1-2"}
	e := w.do(state.JobCollect)
	if e.Kind != state.EventWoken || e.Detail != string(state.JobCollect) || !e.Launch.VM.Holds("vm-1") {
		t.Fatalf("event %+v", e)
	}
	w.task.VM = &e.Launch.VM
	if e := w.do(state.JobCollect); e.Kind != state.EventCollected || e.Work == nil || e.Work.Paths != 3 {
		t.Errorf("event %+v", e)
	}
}

// TestLimitsOfVMs: what a limit means for a task that needs a VM, and for one whose VM wants another hour.
func TestLimitsOfVMs(t *testing.T) {
	t.Parallel()
	tomorrow := time.Now().Add(12 * time.Hour)
	for limit, want := range map[string]state.WaitKind{vm.LimitVMs: state.WaitVM, vm.LimitVMMakes: state.WaitVM, vm.LimitVMsDay: state.WaitMoney, vm.LimitVMsMonth: state.WaitMoney, vm.LimitVMHours: ""} {
		t.Run(limit, func(t *testing.T) {
			t.Parallel()
			refused := fmt.Errorf("acquire: %w", &vm.LimitError{Limit: limit, Reason: "that is too much", Until: tomorrow})
			w := newWorld(t, func(cfg *workflow.Config) { cfg.SpanAllowed = func(context.Context, string) error { return refused } })
			w.host.errs["Acquire"] = refused
			w.launching(state.RunPreliminary)
			e, err := w.try(state.JobLaunch)
			if want == "" {
				p := wantProblem(t, err, state.ClassVMHours, true)
				if p.Reason != "That is too much." || !strings.Contains(p.Hint, "limits.vm_hours") {
					t.Errorf("problem %+v", p)
				}
			} else if e.Kind != state.EventHeldUp || e.Waiting.Kind != want || !e.Waiting.Until.Equal(tomorrow) || !strings.HasPrefix(e.Waiting.Detail, "that is too much") {
				t.Errorf("event %+v, waiting %+v, %v", e, e.Waiting, err)
			}
			w.task.VM = &state.VM{Name: "vm-1"}
			span := w.do(state.JobDue, args("what", machine.DueSpan, "key", "vm-1"))
			if span.Hash != "vm-1" || (span.Waiting != nil) != (want != "") {
				t.Errorf("event %+v", span)
			}
		})
	}
}

// disks stands for a provider that makes images.
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

// TestSnapshot: a repository may have the whole disk kept. The VM made from that has everything.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	d := &disks{}
	w := newWorld(t, func(cfg *workflow.Config) { cfg.Sleeper = d })
	w.rests()
	w.task.Settings.VM.Sleep = state.SleepSnapshot
	d.err = errors.New("boom")
	if _, err := w.try(state.JobSleep, args("vm", "vm-1")); !errors.Is(err, d.err) || len(w.attempted) == 0 {
		t.Fatalf("%v, marked %v", err, w.attempted)
	}
	d.err = nil
	w.launching(state.RunImplement) // somebody wants it by now, but it may be off
	if e := w.do(state.JobSleep, args("vm", "vm-1")); e.Kind != step.EventNothing {
		t.Errorf("before it began: %+v", e)
	}
	e := w.do(state.JobSleep, args("vm", "vm-1"), again, args("vm", "vm-1"))
	if a := e.Asleep; a == nil || a.Ref != "image-of-vm-1" || a.Mode != state.SleepSnapshot {
		t.Fatalf("event %+v", e)
	}
	e.Asleep.At = time.Now()
	w.task.Asleep, w.task.VM, w.task.Phase, w.task.Run.Session = e.Asleep, nil, state.PhaseImplementing, session
	w.host.vm.Name = "vm-2" // with the same disk
	if l := w.launchedWell(); !l.VM.Holds("vm-1") || !l.Resumed || len(w.host.unpacked) != 0 {
		t.Errorf("launch %+v", l)
	}
	w.host.noSnapshot = true
	if l := w.launchedWell(); l.NotWoken != "the snapshot of the VM is gone" || l.Resumed {
		t.Errorf("launch %+v", l)
	}
	w.task.Asleep = nil
	w.do(state.JobForget, args("mode", "snapshot", "ref", "image-of-vm-1"))
	if len(d.deleted) != 1 {
		t.Errorf("deleted %v", d.deleted)
	}
}

// TestChangedSince: a resumed agent is told of commits by people, and of a base that has moved since long ago.
func TestChangedSince(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ended time.Duration // before now
		want  bool
	}{"a moment ago": {time.Minute, false}, "yesterday": {24 * time.Hour, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.task.Phase = state.PhaseImplementing
			w.launching(state.RunImplement)
			w.launchedWell()
			w.ran("success", session)
			branch := w.task.Branch.Name
			before := w.head("main")
			w.push("ada", branch, map[string]string{"ada.txt": "x\n"})
			w.push("ada", "main", map[string]string{"other.txt": "x\n"})
			w.task.Branch.Head, w.task.Branch.VMHead, w.task.Branch.Root = w.head(branch), before, before
			w.task.Runs[0].Ended = time.Now().Add(-c.ended)
			w.task.Phase, w.task.Round, w.task.PR = state.PhaseAddressingReview, 1, &state.PR{Number: 2, Title: "x"}
			w.task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.person("bob"), Body: "Otherwise."}}
			w.launching(state.RunReview).Session = session
			w.launchedWell()
			p := strings.Join(strings.Fields(w.prompt()), " ")
			if want := "people put 1 commit on the branch, which changed ada.txt."; !strings.Contains(p, want) {
				t.Errorf("the prompt lacks %q:\n%s", want, p)
			}
			if got := strings.Contains(p, "The base main has moved: it has 1 commit that the branch does not have."); got != c.want {
				t.Errorf("told of the base: %v\n%s", got, p)
			}
		})
	}
}
