package workflow_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

const session = "0b54a6fc-2f0c-4d3b-8f43-5cbd2f0f7a11"

// launching wants a run of a kind.
func (w *world) launching(kind state.RunKind) *state.Run {
	w.task.RunSeq++
	w.task.Run = &state.Run{ID: fmt.Sprintf("1-1-%d", w.task.RunSeq), Kind: kind, State: state.RunLaunching, Seq: w.task.RunSeq, RunLaunch: state.RunLaunch{Attempt: 1, Round: w.task.Round}}
	return w.task.Run
}

// ran files the run as the transition table does.
func (w *world) ran(class, session string) {
	r := *w.task.Run
	r.State, r.Class, r.Session, r.VM, r.Started = state.RunEnded, class, session, w.host.vm.Name, time.Now()
	w.task.Runs, w.task.Run = append(w.task.Runs, r), nil
	vm := w.host.vm
	w.task.VM = &vm
}

func (w *world) launchedWell() *state.Launch {
	w.t.Helper()
	e := w.do(state.JobLaunch)
	if e.Kind != state.EventLaunched || e.Launch == nil || e.Run != w.task.Run.ID {
		w.t.Fatalf("event %s (%s), waiting %+v", e.Kind, e.Detail, e.Waiting)
	}
	return e.Launch
}

// prompt is what the last run's agent was told.
func (w *world) prompt() string {
	w.t.Helper()
	f, err := w.files.OpenTranscript(w.task.Run.ID)
	check(w.t, err)
	defer func() { check(w.t, f.Close()) }()
	h, err := runlog.ReadTranscript(f, func(runlog.Entry) error { return nil })
	check(w.t, err)
	return h.System + "\n" + h.User
}

func TestLaunchTheFirstRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Phase = state.PhasePreliminaryPlanning
	w.task.Settings.Setup = []state.Command{{Run: "make deps", Timeout: time.Minute}}
	w.task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.person("bob"), Body: "Mind " + secret}}
	w.task.Context.Withheld = []state.Withheld{{ID: 9, By: w.person("eve"), Reason: "an outsider"}}
	run := w.launching(state.RunPreliminary)
	l := w.launchedWell()
	spec := w.host.started[0]
	if spec.ID != run.ID || spec.Dir != w.host.dir || spec.Duration != w.task.Settings.Limits.PlanDuration || spec.Stall != w.task.Settings.Limits.Stall || len(spec.Setup) != 1 || spec.Setup[0].Command != "make deps" {
		t.Errorf("started %+v", spec)
	}
	if !slices.Equal(l.Taken, []string{"comment:5"}) || l.Resumed || l.VM.Name != "vm-1" || l.BaseSHA != w.head("main") || l.VMHead != l.BaseSHA || l.Adapter != "claude" {
		t.Errorf("launch %+v", l)
	}
	if p := w.prompt(); strings.Contains(p, secret) || !strings.Contains(p, "It breaks") || !strings.Contains(p, "Always.") || !strings.Contains(p, "Mind ") {
		t.Errorf("prompt:\n%s", p)
	}
	if w.host.ensured != 1 || w.host.git(t, "rev-parse", "HEAD") != w.head("main") {
		t.Errorf("tether attached %d times, checkout at %s", w.host.ensured, w.host.git(t, "rev-parse", "HEAD"))
	}
	if src := w.host.prepared[0].Source; src.Token != "token-of-vm-1" || src.URL != "http://127.0.0.1:9/git/acme/slug" || src.Ref != "refs/heads/main" {
		t.Errorf("the VM fetches from %+v", src)
	}
	all := fmt.Sprintf("%+v", spec)
	if strings.Contains(all, secret) || strings.Contains(all, "ghs_") || !strings.Contains(all, "token-of-"+run.ID) {
		t.Error("the run is started with a secret of ours, or without its token")
	}
}

func TestLaunchTurnsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if e := w.do(state.JobLaunch); e.Kind != step.EventNothing {
		t.Errorf("without a run: %+v", e)
	}
	w.launching(state.RunPlan).State = state.RunActive
	if e := w.do(state.JobLaunch); e.Kind != step.EventNothing || len(w.host.started) != 0 {
		t.Errorf("of a run that goes on: %+v, started %v", e, w.host.started)
	}
	w.task.Run.State = state.RunLaunching
	if e := w.do(state.JobLaunch, func(j *state.Job) { j.Run = "another" }); e.Kind != step.EventNothing || len(w.host.started) != 0 {
		t.Errorf("of another run: %+v, started %v", e, w.host.started)
	}
}

// TestLaunchAsksOnceMore: between the approval and the start it can be taken back; not afterwards.
func TestLaunchAsksOnceMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.planned(state.PlanPreliminary)
	check(t, w.As("bob").React(full, p.Comment, "+1"))
	a := w.candidate(p, "bob", state.ViaReaction).Approval
	w.task.Approval, w.task.Phase = &a, state.PhasePlanning
	check(t, w.As("bob").Unreact(full, p.Comment, "+1"))
	w.launching(state.RunPlan)
	e := w.do(state.JobLaunch)
	if e.Kind != state.EventNoApproval || e.Detail != state.NotRevoked || e.Candidate == nil || e.Candidate.Hash != p.Hash || len(w.host.started) != 0 {
		t.Fatalf("event %s (%s), started %v", e.Kind, e.Detail, w.host.started)
	}
	check(t, w.As("bob").React(full, p.Comment, "+1"))
	w.launchedWell()
	w.task.Run.Plan = p.Hash
	w.ran("retryable", "")
	check(t, w.As("bob").Unreact(full, p.Comment, "+1"))
	w.launching(state.RunPlan)
	w.launchedWell()
	if !strings.Contains(w.prompt(), "Do it.") {
		t.Errorf("the approved plan is not in the prompt:\n%s", w.prompt())
	}
}

func TestLaunchWaitsForAVM(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.launching(state.RunPreliminary)
	w.host.errs["Acquire"] = fmt.Errorf("%w: all 4 are taken", workspace.ErrNoVM)
	if e := w.do(state.JobLaunch); e.Kind != state.EventHeldUp || e.Waiting.Kind != state.WaitVM || !strings.Contains(e.Waiting.Detail, "all 4 are taken") {
		t.Errorf("event %s, waiting %+v", e.Kind, e.Waiting)
	}
	for _, method := range []string{"Acquire", "Place", "Ensure", "Prepare", "Start"} {
		w.host.errs = map[string]error{method: errors.New("boom")}
		if e, err := w.try(state.JobLaunch); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%s fails, yet %+v, %v", method, e, err)
		}
	}
	w.host.errs = map[string]error{}
	w.launchedWell()
}

func TestARealAgentIsNotStartedInTheOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ real, allowed, isolated, starts bool }{
		"the stand-in": {starts: true},
		"in the open":  {real: true},
		"allowed to":   {real: true, allowed: true, starts: true},
		"isolated":     {real: true, isolated: true, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(cfg *workflow.Config) { cfg.RealAgent, cfg.AllowUnsandboxed = c.real, c.allowed })
			w.host.isolated = c.isolated
			w.launching(state.RunPreliminary)
			_, err := w.try(state.JobLaunch)
			if c.starts {
				check(t, err)
			} else {
				wantProblem(t, err, "vm", true)
			}
			if got := len(w.host.started) > 0; got != c.starts {
				t.Errorf("started: %v", got)
			}
		})
	}
}

// TestLaunchResumesOnTheSameVM: the agent's session lies on the VM. On another one it begins anew
// and is told what was said.
func TestLaunchResumesOnTheSameVM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vm      string
		resumed bool
	}{"same VM": {"vm-1", true}, "another VM": {"vm-2", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.task.Phase = state.PhasePreliminaryPlanning
			w.launching(state.RunPreliminary)
			w.launchedWell()
			w.ran("success", session)
			w.task.Plans = []state.Plan{hashed(state.Plan{Kind: state.PlanPreliminary, Revision: 1, Text: "The old plan.", Comment: 1})}
			w.task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.person("bob"), Body: "Otherwise."}}
			w.host.vm.Name = c.vm
			if !c.resumed {
				w.host.dir = filepath.Join(t.TempDir(), "other")
			}
			w.launching(state.RunPreliminary).Session = session
			l := w.launchedWell()
			argv := strings.Join(w.host.started[1].Argv, " ")
			if l.Resumed != c.resumed || strings.Contains(argv, "--resume "+session) != c.resumed {
				t.Errorf("resumed: %v, started with %s", l.Resumed, argv)
			}
			p := w.prompt()
			if !strings.Contains(p, "Otherwise.") || !strings.Contains(p, "The old plan.") || strings.Contains(p, "another VM") == c.resumed {
				t.Errorf("prompt:\n%s", p)
			}
		})
	}
}

// TestPromptHasACommentOnce: what was said while a plan was made may have been read again with the discussion by the time it is answered.
func TestPromptHasACommentOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		taken string
		id    int64
	}{
		"to be answered":              {"", 5},
		"answered before":             {"run-0", 5},
		"another one, to be answered": {"", 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.task.Phase = state.PhasePreliminaryPlanning
			w.launching(state.RunPreliminary)
			w.task.Context.Comments = []state.Said{{ID: c.id, By: w.person("bob"), Body: "Mind the tests."}, {ID: 7, By: w.person("ada"), Body: "And the docs."}}
			w.task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.person("bob"), Body: "Mind the tests.", Taken: c.taken}}
			w.launchedWell()
			want := map[bool]int{true: 1, false: 2}[c.id == 5]
			if p := w.prompt(); strings.Count(p, "Mind the tests.") != want || !strings.Contains(p, "And the docs.") {
				t.Errorf("it is there %d times, want %d:\n%s", strings.Count(p, "Mind the tests."), want, p)
			}
		})
	}
}

// TestLaunchKeepsUnpublishedWork: an attempt that was cut short is gone on with; what a planning run
// left lying about is not, nor what was built before people asked for a new plan.
func TestLaunchKeepsUnpublishedWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before state.RunKind
		since  state.Phase // where the task has been since the run
		kept   bool
	}{
		"of the same kind":                    {state.RunImplement, state.PhaseImplementing, true},
		"of a planning run":                   {state.RunPlan, state.PhaseImplementing, false},
		"before the issue was read anew":      {state.RunImplement, state.PhaseQueued, false},
		"before a new preliminary plan":       {state.RunImplement, state.PhasePreliminaryPlanning, false},
		"before a new plan":                   {state.RunImplement, state.PhasePlanning, false},
		"before it was interrupted for a bit": {state.RunImplement, state.PhaseInterrupted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.task.Phase = state.PhaseImplementing
			w.launching(c.before)
			l := w.launchedWell()
			w.task.Branch.BaseSHA = l.BaseSHA
			w.host.write(t, map[string]string{"half.txt": "half\n"})
			head := w.host.commit(t, "Half of it", map[string]string{"a.txt": "a\n"})
			w.host.write(t, map[string]string{"loose.txt": "loose\n"})
			w.ran("retryable", session)
			w.task.History = []state.PhaseChange{{Phase: state.PhasePlanning, At: w.task.Runs[0].Started.Add(-time.Minute)}, {Phase: c.since, At: time.Now()}}
			w.push("ada", "main", map[string]string{"newer.txt": "n\n"})
			w.launching(state.RunImplement)
			w.launchedWell()
			_, err := os.Stat(filepath.Join(w.host.dir, "loose.txt"))
			if kept := err == nil; kept != c.kept {
				t.Errorf("loose files are kept: %v", kept)
			}
			want := w.head("main")
			if c.kept {
				want = head
			}
			if at := w.host.git(t, "rev-parse", "HEAD"); at != want {
				t.Errorf("the checkout is at %s, want %s", at, want)
			}
		})
	}
}

func TestLaunchChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Settings.Check = []state.Command{{Run: "make test", Timeout: 2 * time.Minute}, {Name: "lint", Run: "make lint"}}
	w.building()
	w.task.Work.LocalHead = w.head("main")
	w.launching(state.RunCheck)
	l := w.launchedWell()
	spec := w.host.started[0]
	if len(l.Taken) != 0 || l.Model != "" || !slices.Equal(spec.Argv, []string{"{runner}", "check"}) || spec.Duration < 12*time.Minute {
		t.Errorf("launch %+v, started %+v", l, spec)
	}
	for _, want := range []string{w.task.Work.LocalHead, `"make test"`, `"lint"`} {
		if !strings.Contains(spec.Stdin, want) {
			t.Errorf("told %s, which lacks %s", spec.Stdin, want)
		}
	}
}

func TestLaunchTellsOfDrift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Phase = state.PhaseImplementing
	p := w.planned(state.PlanThorough)
	p.Files = []string{"slug.go", "docs"}
	a := w.candidate(p, "ada", state.ViaCommand).Approval
	a.With = "Keep it short."
	w.task.Approval = &a
	w.task.Feedback = []state.Feedback{{ID: "with:" + p.Hash, Kind: "condition", By: a.By, Body: a.With}}
	w.push("ada", "main", map[string]string{"slug.go": "package slug // newer\n", "docs/a.md": "a\n", "other.txt": "o\n"})
	w.launching(state.RunImplement)
	l := w.launchedWell()
	if len(l.Notes) != 2 || strings.Contains(strings.Join(l.Notes, " "), "other.txt") {
		t.Errorf("notes %q", l.Notes)
	}
	if got := w.prompt(); !strings.Contains(got, "// newer") || !strings.Contains(got, "Keep it short.") || !strings.Contains(got, "Do it.") {
		t.Errorf("prompt:\n%s", got)
	}
}
