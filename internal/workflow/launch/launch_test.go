package launch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

func TestLaunchTheFirstRun(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Phase = state.PhasePreliminaryPlanning
	w.Task.Settings.Setup = []settings.Command{{Run: "make deps", Timeout: time.Minute}}
	w.Task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.Person("bob"), Body: "Mind " + workflowtest.Secret}}
	w.Task.Context.Withheld = []state.Withheld{{ID: 9, By: w.Person("eve"), Reason: "an outsider"}}
	run := w.Launching(state.RunPreliminary)
	l := w.Launched()
	spec := w.Host.Started[0]
	if spec.ID != run.ID || spec.Dir != w.Host.Dir || spec.Duration != w.Task.Settings.Limits.PlanDuration || spec.Stall != w.Task.Settings.Limits.Stall || len(spec.Setup) != 1 || spec.Setup[0].Command != "make deps" {
		t.Errorf("got start %+v", spec)
	}
	if !slices.Equal(l.FeedbackIDs, []string{"comment:5"}) || l.Resumed || l.VM.Name != "vm-1" || l.BaseSHA != w.Head("main") || l.VMHead != l.BaseSHA || l.Adapter != "claude" {
		t.Errorf("got launch %+v", l)
	}
	if p := w.Prompt(); strings.Contains(p, workflowtest.Secret) || !strings.Contains(p, "It breaks") || !strings.Contains(p, "Always.") || !strings.Contains(p, "Mind ") {
		t.Errorf("got prompt:\n%s", p)
	}
	if w.Host.Ensured != 1 || w.Host.Git(t, "rev-parse", "HEAD") != w.Head("main") {
		t.Errorf("got %d tether connections, checkout at %s", w.Host.Ensured, w.Host.Git(t, "rev-parse", "HEAD"))
	}
	if src := w.Host.Prepared[0].Source; src.Token != "token-of-vm-1" || src.URL != "http://127.0.0.1:9/git/acme/slug" || src.Ref != "refs/heads/main" {
		t.Errorf("got fetch source %+v of the VM", src)
	}
	all := fmt.Sprintf("%+v", spec)
	if strings.Contains(all, workflowtest.Secret) || strings.Contains(all, "ghs_") || !strings.Contains(all, "token-of-"+run.ID) {
		t.Error("the run's environment has one of errand's secrets, or lacks its token")
	}
}

func TestLaunchWithoutMatchingRun(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	if e := w.Do(state.JobLaunch); e.Kind() != event.KindNothing {
		t.Errorf("without a run: got %+v", e)
	}
	w.Launching(state.RunPlan).State = state.RunActive
	if e := w.Do(state.JobLaunch); e.Kind() != event.KindNothing || len(w.Host.Started) != 0 {
		t.Errorf("active run: got %+v, started %v", e, w.Host.Started)
	}
	w.Task.Run.State = state.RunLaunching
	if e := w.Do(state.JobLaunch, func(j *state.Job) { j.Run = "another" }); e.Kind() != event.KindNothing || len(w.Host.Started) != 0 {
		t.Errorf("another run: got %+v, started %v", e, w.Host.Started)
	}
}

// TestLaunchChecksTheApprovalAgain: an approval can be withdrawn until the start, not afterwards.
func TestLaunchChecksTheApprovalAgain(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	p := w.Planned(state.PlanPreliminary)
	workflowtest.Check(t, w.As("bob").React(workflowtest.RepoName, p.Comment, "+1"))
	a := w.Candidate(p, "bob", state.ViaReaction).Approval
	w.Task.Approval, w.Task.Phase = &a, state.PhasePlanning
	workflowtest.Check(t, w.As("bob").Unreact(workflowtest.RepoName, p.Comment, "+1"))
	w.Launching(state.RunPlan)
	e := w.Do(state.JobLaunch)
	if e.Kind() != event.KindApprovalRejected || event.Of[event.ApprovalRejected](e).Rejection != state.RejectedRevoked || e.Candidate() == nil || e.Candidate().Hash != p.Hash || len(w.Host.Started) != 0 {
		t.Fatalf("got event %s (%s), started %v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, w.Host.Started)
	}
	workflowtest.Check(t, w.As("bob").React(workflowtest.RepoName, p.Comment, "+1"))
	w.Launched()
	w.Task.Run.Plan = p.Hash
	w.EndRun(state.RunRetryable, "")
	workflowtest.Check(t, w.As("bob").Unreact(workflowtest.RepoName, p.Comment, "+1"))
	first := &w.Task.Runs[len(w.Task.Runs)-1]
	first.Uncertain = true // whether that was a start is not known
	w.Launching(state.RunPlan)
	if e := w.Do(state.JobLaunch); e.Kind() != event.KindApprovalRejected {
		t.Errorf("after a run that may not have begun: got event %s", e.Kind())
	}
	first.Uncertain = false
	w.Launched()
	if !strings.Contains(w.Prompt(), "Do it.") {
		t.Errorf("the prompt lacks the approved plan:\n%s", w.Prompt())
	}
}

func TestLaunchWaitsForAVM(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Launching(state.RunPreliminary)
	w.Host.Errs["Acquire"] = fmt.Errorf("%w: all 4 are taken", workspace.ErrNoVM)
	if e := w.Do(state.JobLaunch); e.Kind() != event.KindStepBlocked || e.Waiting().Kind != state.WaitVM || !strings.Contains(e.Waiting().Detail, "all 4 are taken") {
		t.Errorf("got event %s, waiting %+v", e.Kind(), e.Waiting())
	}
	for _, method := range []string{"Acquire", "Place", "Ensure", "Prepare", "Start"} {
		w.Host.Errs = map[string]error{method: errors.New("boom")}
		if e, err := w.Try(state.JobLaunch); err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("failure of %s: got %+v, %v", method, e, err)
		}
	}
	w.Host.Errs = map[string]error{}
	w.Launched()
}

func TestRealAgentNeedsIsolation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ real, allowed, isolated, starts bool }{
		"the stand-in":      {starts: true},
		"without isolation": {real: true},
		"allowed to":        {real: true, allowed: true, starts: true},
		"isolated":          {real: true, isolated: true, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t, func(cfg *workflow.Config) { cfg.RealAgent, cfg.AllowUnsandboxed = c.real, c.allowed })
			w.Host.Isolated = c.isolated
			w.Launching(state.RunPreliminary)
			_, err := w.Try(state.JobLaunch)
			if c.starts {
				workflowtest.Check(t, err)
			} else {
				workflowtest.WantProblem(t, err, "vm", true)
			}
			if got := len(w.Host.Started) > 0; got != c.starts {
				t.Errorf("started: %v", got)
			}
		})
	}
}

// TestLaunchResumesOnTheSameVM: the agent's session is on the VM. On another VM a new session starts, with the
// conversation in the prompt.
func TestLaunchResumesOnTheSameVM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vm      string
		resumed bool
	}{"same VM": {"vm-1", true}, "another VM": {"vm-2", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Phase = state.PhasePreliminaryPlanning
			w.Launching(state.RunPreliminary)
			w.Launched()
			w.EndRun(state.RunSucceeded, workflowtest.Session)
			w.Task.Plans = []state.Plan{workflowtest.Hashed(state.Plan{Kind: state.PlanPreliminary, Revision: 1, Text: "The old plan.", Comment: 1})}
			w.Task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.Person("bob"), Body: "Otherwise."}}
			w.Host.VM.Name = c.vm
			if !c.resumed {
				w.Host.Dir = filepath.Join(t.TempDir(), "other")
			}
			w.Launching(state.RunPreliminary).Session = workflowtest.Session
			l := w.Launched()
			argv := strings.Join(w.Host.Started[1].Argv, " ")
			if l.Resumed != c.resumed || strings.Contains(argv, "--resume "+workflowtest.Session) != c.resumed {
				t.Errorf("got resumed %v, started with %s", l.Resumed, argv)
			}
			p := w.Prompt()
			if !strings.Contains(p, "Otherwise.") || !strings.Contains(p, "The old plan.") || strings.Contains(p, "This VM is not the one of the last run") == c.resumed {
				t.Errorf("got prompt:\n%s", p)
			}
		})
	}
}

// TestPromptHasACommentOnce: a comment posted while a plan was written may also be in the discussion that is read
// later; the prompt has it once.
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
			w := workflowtest.New(t)
			w.Task.Phase = state.PhasePreliminaryPlanning
			w.Launching(state.RunPreliminary)
			w.Task.Context.Comments = []state.DiscussionComment{{ID: c.id, By: w.Person("bob"), Body: "Mind the tests."}, {ID: 7, By: w.Person("ada"), Body: "And the docs."}}
			w.Task.Feedback = []state.Feedback{{ID: "comment:5", Kind: "comment", By: w.Person("bob"), Body: "Mind the tests.", TakenBy: c.taken}}
			w.Launched()
			want := map[bool]int{true: 1, false: 2}[c.id == 5]
			if p := w.Prompt(); strings.Count(p, "Mind the tests.") != want || !strings.Contains(p, "And the docs.") {
				t.Errorf("got it %d times, want %d:\n%s", strings.Count(p, "Mind the tests."), want, p)
			}
		})
	}
}

// TestLaunchKeepsUnpublishedWork: the work of an interrupted attempt is continued; files of a planning run, and work
// from before a new plan was requested, are discarded.
func TestLaunchKeepsUnpublishedWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before state.RunKind
		since  state.Phase // phases of the task since the run
		kept   bool
	}{
		"same kind":                       {state.RunImplement, state.PhaseImplementing, true},
		"planning run":                    {state.RunPlan, state.PhaseImplementing, false},
		"before the issue was read again": {state.RunImplement, state.PhaseQueued, false},
		"before a new preliminary plan":   {state.RunImplement, state.PhasePreliminaryPlanning, false},
		"before a new plan":               {state.RunImplement, state.PhasePlanning, false},
		"before a short interruption":     {state.RunImplement, state.PhaseInterrupted, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Phase = state.PhaseImplementing
			w.Launching(c.before)
			l := w.Launched()
			w.Task.Branch.BaseSHA = l.BaseSHA
			w.Host.Write(t, map[string]string{"half.txt": "half\n"})
			head := w.Host.Commit(t, "Half of it", map[string]string{"a.txt": "a\n"})
			w.Host.Write(t, map[string]string{"loose.txt": "loose\n"})
			w.EndRun(state.RunRetryable, workflowtest.Session)
			w.Task.History = []state.PhaseChange{{Phase: state.PhasePlanning, At: w.Task.Runs[0].Started.Add(-time.Minute)}, {Phase: c.since, At: time.Now()}}
			w.Push("ada", "main", map[string]string{"newer.txt": "n\n"})
			w.Launching(state.RunImplement)
			w.Launched()
			_, err := os.Stat(filepath.Join(w.Host.Dir, "loose.txt"))
			if kept := err == nil; kept != c.kept {
				t.Errorf("got uncommitted files: %v", kept)
			}
			want := w.Head("main")
			if c.kept {
				want = head
			}
			if at := w.Host.Git(t, "rev-parse", "HEAD"); at != want {
				t.Errorf("got checkout at %s, want %s", at, want)
			}
		})
	}
}

func TestLaunchChecks(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Settings.Check = []settings.Command{{Run: "make test", Timeout: 2 * time.Minute}, {Name: "lint", Run: "make lint", BeforePR: true}}
	w.Task.Settings.Gates = settings.Gates{Coverage: 85, Reports: []string{"out/*"}}
	w.Building()
	w.Task.Work.LocalHead = w.Head("main")
	w.Launching(state.RunCheck)
	l := w.Launched()
	spec := w.Host.Started[0]
	if len(l.FeedbackIDs) != 0 || l.Model != "" || !slices.Equal(spec.Argv, []string{"{runner}", "check"}) || spec.Duration < 12*time.Minute {
		t.Errorf("got launch %+v, started %+v", l, spec)
	}
	for _, want := range []string{w.Task.Work.LocalHead, `"make test"`, `"lint"`, `"before_pr":true`, `"gates":{"coverage":85,"reports":["out/*"]}`, `"gate_base":"` + w.Task.Branch.BaseSHA} {
		if !strings.Contains(spec.Stdin, want) {
			t.Errorf("got prompt %s, which lacks %s", spec.Stdin, want)
		}
	}
}

// Gates judge what the pull request changes: commits of the base that the published branch has are not part of it.
func TestGatesCompareWithTheMergedBase(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Settings.Check = []settings.Command{{Run: "make test"}}
	w.Task.Settings.Gates = settings.Gates{Mutation: 70}
	w.Building()
	old := w.Head("main")
	base := w.Push("ada", "main", map[string]string{"other.txt": "o\n"})
	b := &w.Task.Branch
	b.Head = w.Push("ada", b.Name, map[string]string{"slug.go": "package slug // ours\n"})
	b.Root, b.BaseSHA = b.Head, old
	w.Task.Work.LocalHead = b.Head
	w.Launching(state.RunCheck)
	w.Launched()
	if spec := w.Host.Started[0]; !strings.Contains(spec.Stdin, `"gate_base":"`+base) || !strings.Contains(spec.Stdin, `"base":"`+old) {
		t.Errorf("got %s, want gates that compare with %s and checks that compare with %s", spec.Stdin, base, old)
	}
}

func TestLaunchReportsBaseChanges(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Phase = state.PhaseImplementing
	p := w.Planned(state.PlanThorough)
	p.Files = []string{"slug.go", "docs"}
	a := w.Candidate(p, "ada", state.ViaCommand).Approval
	a.With = "Keep it short."
	w.Task.Approval = &a
	w.Task.Feedback = []state.Feedback{{ID: "with:" + p.Hash, Kind: "condition", By: a.By, Body: a.With}}
	w.Push("ada", "main", map[string]string{"slug.go": "package slug // newer\n", "docs/a.md": "a\n", "other.txt": "o\n"})
	w.Launching(state.RunImplement)
	l := w.Launched()
	if len(l.Notes) != 2 || strings.Contains(strings.Join(l.Notes, " "), "other.txt") {
		t.Errorf("got notes %q", l.Notes)
	}
	if got := w.Prompt(); !strings.Contains(got, "// newer") || !strings.Contains(got, "Keep it short.") || !strings.Contains(got, "Do it.") {
		t.Errorf("got prompt:\n%s", got)
	}
}
