package intake_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// checksOf is GitHub with other checks.
type checksOf struct {
	*forge.Forge
	head, base []green.Check
	rerun      error
	reran      []string
	broken     error // of reading why a check failed
	noLog      bool  // the logs' host fails
	logs       []bool
	took       time.Duration // of reading a check
	now        time.Time
}

func (g *checksOf) Checks(_ context.Context, _ forge.Repo, _ int, head string) (green.Report, error) {
	return green.Report{Head: head, Checks: g.head, Total: len(g.head)}, nil
}

func (g *checksOf) CommitChecks(_ context.Context, _ forge.Repo, ref string) ([]green.Check, error) {
	if ref != "main" {
		return nil, fmt.Errorf("not the base: %s", ref)
	}
	return g.base, nil
}

func (g *checksOf) FailedCheck(_ context.Context, _ forge.Repo, c green.Check, withLog bool) (green.Cause, error) {
	g.logs = append(g.logs, withLog)
	if g.took > 0 {
		g.now = g.now.Add(g.took)
	}
	if g.broken == nil && (g.noLog || !withLog) {
		var err error
		if withLog {
			err = fmt.Errorf("read log: %w", forge.ErrLogUnavailable)
		}
		return green.Cause{Step: "Run tests"}, err
	}
	return green.Cause{
		Step: "Run tests", Log: "FAIL " + c.Name + "\nkey: " + workflowtest.Secret + "\n",
		Annotations: []green.Annotation{{Path: "slug.go", Line: 3, Level: "failure", Message: "undefined: x"}},
		Note:        "The log has expired.",
	}, g.broken
}

func (g *checksOf) RerunCheck(_ context.Context, _ forge.Repo, c green.Check) error {
	g.reran = append(g.reran, c.Name)
	return g.rerun
}

// failing returns a failing job of GitHub Actions.
func failing(name string, id int64, change ...func(*green.Check)) green.Check {
	c := green.Check{ID: id, Name: name, App: 15368, Group: "ci", State: green.Failure, Result: "failure"}
	for _, f := range change {
		f(&c)
	}
	return c
}

func concluded(result string) func(*green.Check) { return func(c *green.Check) { c.Result = result } }
func succeeded(c *green.Check)                   { c.State, c.Result = green.Success, "success" }
func runs(c *green.Check)                        { c.State, c.Result = green.Pending, "in progress" }
func expected(c *green.Check) {
	c.State, c.Result, c.Status, c.Expected = green.Pending, "expected", true, true
}
func byOther(c *green.Check)  { c.App = 3 }
func asStatus(c *green.Check) { c.ID, c.App, c.Group, c.Status, c.Result = 0, 0, "", true, "error" }

type checks []green.Check

func TestExamine(t *testing.T) {
	t.Parallel()
	build, again := checks{failing("build", 1)}, checks{failing("build", 2)}
	rerun := func(id int64, ago time.Duration) *state.CIRepair {
		return &state.CIRepair{Reran: []state.Rerun{{Check: build[0].Key(), Name: "build", Head: "HEAD", ID: id, At: time.Now().Add(-ago)}}}
	}
	intended := func(list checks) *state.CIRepair {
		r := &state.CIRepair{}
		for _, c := range list {
			r.Reran = append(r.Reran, state.Rerun{Check: c.Key(), Name: c.Name, Head: "HEAD", ID: c.ID, At: time.Now().Add(-time.Hour), Intended: true})
		}
		return r
	}
	waited := func(waits int) *state.CIRepair { r := intended(build); r.Waits = waits; return r }
	onOld := &state.CIRepair{Reran: []state.Rerun{{Check: build[0].Key(), Head: "old", ID: 1, At: time.Now()}}}
	cannot := fmt.Errorf("x: %w", forge.ErrCannotRerun)
	people := checks{
		failing("a", 1, concluded("cancelled")), failing("b", 2, concluded("stale")), failing("c", 3, concluded("startup failure")),
		failing("d", 4, concluded("action required")), failing("DCO", 5), failing("e", 6, concluded("invented")),
	}
	for name, c := range map[string]struct {
		head, base checks
		err        error           // of a re-run
		repair     *state.CIRepair // HEAD stands for the head
		phase      state.Phase
		intends    string
		reran      string
		again      time.Duration
		notes      string // name:fault
		causes     int
		none       bool          // nothing happened
		since      time.Duration // how long ago checks were noticed that are pending
	}{
		"intended first":            {head: build, intends: "build"},
		"run again":                 {head: build, repair: intended(build), reran: "build", again: 10 * time.Minute},
		"run again before a crash":  {head: again, repair: intended(build), notes: "build:fails", causes: 1},
		"one of two intended":       {head: checks{build[0], failing("lint", 3)}, repair: intended(build), reran: "build", intends: "lint"},
		"it has not begun":          {head: build, repair: rerun(1, 4*time.Minute), again: 6 * time.Minute},
		"it never began":            {head: build, repair: rerun(1, 11*time.Minute), notes: "build:fails", causes: 1},
		"it failed again":           {head: again, repair: rerun(1, time.Minute), notes: "build:fails", causes: 1},
		"of another head":           {head: again, repair: onOld, intends: "build"},
		"may not run it again":      {head: build, repair: intended(build), err: notGranted(), reran: "build", notes: "build:fails:rerun", causes: 1},
		"cannot run it again":       {head: build, repair: intended(build), err: cannot, reran: "build", notes: "build:fails", causes: 1},
		"the workflow still runs":   {head: build, repair: intended(build), err: forge.ErrStillRunning, reran: "build", again: time.Minute},
		"it runs for long":          {head: build, err: forge.ErrStillRunning, repair: waited(4), reran: "build", again: 16 * time.Minute},
		"it runs for hours":         {head: build, err: forge.ErrStillRunning, repair: waited(7), reran: "build", notes: "build:fails", causes: 1},
		"timed out":                 {head: checks{failing("build", 1, concluded("timed out"))}, repair: intended(build), reran: "build", again: 10 * time.Minute},
		"a status":                  {head: checks{failing("ci/old", 0, asStatus)}, notes: "ci/old:fails", causes: 1},
		"on the base, too":          {head: again, base: checks{failing("build", 9)}, repair: rerun(1, time.Minute), notes: "build:base"},
		"another App's on the base": {head: again, base: checks{failing("build", 9, byOther)}, repair: rerun(1, time.Minute), notes: "build:fails", causes: 1},
		"one of two on the base": {
			head: again, base: checks{failing("build", 8), failing("build", 9, succeeded)}, repair: rerun(1, time.Minute), notes: "build:fails", causes: 1,
		},
		"canceled on the base": {
			head: again, base: checks{failing("build", 9, concluded("cancelled"))}, repair: rerun(1, time.Minute), notes: "build:fails", causes: 1,
		},
		"for people": {head: people, notes: "DCO:dco a:result b:result c:result d:result e:result"},
		"some for people": {
			head: checks{failing("a", 1, concluded("cancelled")), again[0]}, repair: rerun(1, time.Minute), notes: "a:result build:fails", causes: 1,
		},
		"one still runs":    {head: checks{build[0], failing("lint", 2, runs)}, none: true},
		"one runs for long": {head: checks{build[0], failing("lint", 2, runs)}, repair: rerun(0, time.Hour), since: 90 * time.Minute, notes: "build:fails lint:pending:in progress", causes: 1},
		"it runs for long, with its workflow": {
			head: checks{build[0], failing("lint", 2, runs)}, repair: intended(build), err: forge.ErrStillRunning, since: 90 * time.Minute,
			reran: "build", notes: "build:fails lint:pending:in progress", causes: 1,
		},
		"one runs for an hour": {head: checks{failing("lint", 2, runs)}, since: 90 * time.Minute, none: true},
		"one never ends":       {head: checks{failing("lint", 2, runs), failing("unit", 3, succeeded)}, since: 7 * time.Hour, notes: "lint:pending:in progress"},
		"none reports":         {head: checks{failing("lint", 0, expected)}, since: 7 * time.Hour, notes: "lint:pending"},
		"all succeed by now":   {head: checks{failing("build", 1, succeeded)}, none: true},
		"a round began":        {head: build, phase: state.PhaseAddressingReview, none: true},
		"tried at this head":   {head: checks{failing("ci/old", 0, asStatus)}, repair: &state.CIRepair{Tried: "HEAD"}, notes: "ci/old:fails"},
		"more than it reads":   {head: many(30, asStatus), notes: strings.Join(manyNotes(30), " "), causes: 10},
		"more than it wants":   {head: many(30), intends: strings.Join(manyNames(20), " ")},
		"more than it runs":    {head: many(30), repair: intended(many(20)), reran: strings.Join(manyNames(20), " "), again: 10 * time.Minute, notes: strings.Join(manyNotes(30)[20:], " ")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &checksOf{head: c.head, base: c.base, rerun: c.err}
			w := examining(t, g, c.repair)
			if c.phase != "" {
				w.Task.Phase = c.phase
			}
			if c.since > 0 {
				w.Task.PR.Undecided = time.Now().Add(-c.since)
			}
			e, err := w.Try(state.JobExamine)
			workflowtest.Check(t, err)
			x, ok := e.Payload.(event.ChecksExamined)
			if ok == c.none {
				t.Fatalf("got %+v", e)
			}
			var intends []string
			for _, r := range x.Reran {
				if r.Intended {
					intends = append(intends, r.Name)
				}
			}
			if diff := cmp.Diff([]string{c.notes, c.intends, c.reran}, []string{notesOf(x), strings.Join(intends, " "), strings.Join(g.reran, " ")}); diff != "" {
				t.Error(diff)
			}
			if in := time.Until(x.Again); x.Again.IsZero() != (c.again == 0) || c.again > 0 && (in > c.again || in < c.again-time.Minute) {
				t.Errorf("to be read again in %s", in)
			}
			if len(x.Failures) != c.causes {
				t.Errorf("got %d causes", len(x.Failures))
			}
		})
	}
}

// examining returns a world with a pull request whose checks are those of g.
func examining(t *testing.T, g *checksOf, repair *state.CIRepair) *workflowtest.World {
	t.Helper()
	w := workflowtest.New(t, func(cfg *workflow.Config) {
		g.Forge, _ = cfg.GitHub.(*forge.Forge)
		cfg.GitHub, cfg.ChecksQuiet = g, 2*time.Minute
	})
	w.OpenPull()
	w.Task.Phase = state.PhasePROpen
	if repair != nil {
		r := *repair
		r.Reran = nil
		for _, x := range repair.Reran {
			x.Head = strings.Replace(x.Head, "HEAD", w.Task.Branch.Head, 1)
			r.Reran = append(r.Reran, x)
		}
		r.Tried = strings.Replace(r.Tried, "HEAD", w.Task.Branch.Head, 1)
		w.Task.PR.Repair = &r
	}
	return w
}

func notesOf(x event.ChecksExamined) string {
	var list []string
	for _, n := range x.Notes {
		s := n.Name + ":" + string(n.Fault)
		if n.Rerun {
			s += ":rerun"
		}
		if n.Fault == state.CheckPending && n.Result != "" {
			s += ":" + n.Result
		}
		list = append(list, s)
	}
	return strings.Join(list, " ")
}

// notGranted is GitHub's answer to an App without a permission.
func notGranted() error {
	return &github.ErrorResponse{
		Response: &http.Response{StatusCode: http.StatusForbidden, Request: &http.Request{Method: "POST", URL: &url.URL{}}},
		Message:  "Resource not accessible by integration",
	}
}

func many(n int, change ...func(*green.Check)) (list checks) {
	for _, name := range manyNames(n) {
		list = append(list, failing(name, 1, change...))
	}
	return list
}

func manyNames(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("job%02d", i))
	}
	return list
}

func manyNotes(n int) (list []string) {
	for _, name := range manyNames(n) {
		list = append(list, name+":fails")
	}
	return list
}

// ranAgain returns that checks were run again, so that they are not run again another time.
func ranAgain(names ...string) *state.CIRepair {
	r := &state.CIRepair{}
	for _, name := range names {
		r.Reran = append(r.Reran, state.Rerun{Check: failing(name, 0).Key(), Name: name, Head: "HEAD"})
	}
	return r
}

// The agent gets the cause as data without secrets.
func TestCausesAreData(t *testing.T) {
	t.Parallel()
	g := &checksOf{head: checks{failing("build", 2)}}
	w := examining(t, g, ranAgain("build"))
	x := event.Of[event.ChecksExamined](w.Do(state.JobExamine))
	if len(x.Failures) != 1 {
		t.Fatalf("got %+v", x)
	}
	f := x.Failures[0]
	want := "check: build\nresult: failure\nfailing step: Run tests\nnot available: The log has expired.\n\nannotations:\n" +
		"- slug.go:3: failure: undefined: x\n\nthe end of the log:\nFAIL build\nkey: [redacted: known-value]\n"
	if diff := cmp.Diff(want, f.Body); diff != "" || f.Kind != state.FeedbackCI || f.By.ID != 0 {
		t.Errorf("%s\n%+v", diff, f)
	}
	g.broken = errors.New("boom")
	if _, err := w.Try(state.JobExamine); err == nil || !strings.Contains(err.Error(), `why the check "build" failed: boom`) {
		t.Errorf("got %v", err)
	}
}

// If the host of the logs fails, it is asked a limited number of times; then the agent gets the checks without their logs, and learns that they
// are missing. So it does if reading them takes too long.
func TestLogsCannotBeRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures int
		noLog    bool
		took     time.Duration
		wait     bool     // the job is repeated
		logs     []bool   // whether each log was requested
		says     []string // of the causes
	}{
		"at first":     {noLog: true, wait: true, logs: []bool{true}},
		"the next try": {failures: 1, noLog: true, wait: true, logs: []bool{true}},
		"again": {failures: 2, noLog: true, logs: []bool{true, false, false}, says: []string{
			"not available: The request to GitHub failed.", "not available: The request to GitHub failed.", "not available: The request to GitHub failed."}},
		"slowly": {took: 25 * time.Second, logs: []bool{true, true, false}, says: []string{"FAIL a", "FAIL b", "not available: The log was not read, because"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &checksOf{head: checks{failing("a", 1), failing("b", 2), failing("c", 3)}, noLog: c.noLog, took: c.took, now: time.Now()}
			w := workflowtest.New(t, func(cfg *workflow.Config) {
				g.Forge, _ = cfg.GitHub.(*forge.Forge)
				cfg.GitHub, cfg.Now = g, func() time.Time { return g.now }
			})
			w.OpenPull()
			w.Task.Phase, w.Task.PR.Repair = state.PhasePROpen, ranAgain("a", "b", "c")
			for i := range w.Task.PR.Repair.Reran {
				w.Task.PR.Repair.Reran[i].Head = w.Task.Branch.Head
			}
			e, err := w.Try(state.JobExamine, func(j *state.Job) { j.Failures = c.failures })
			if (err != nil) != c.wait || err != nil && !errors.Is(err, forge.ErrLogUnavailable) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(c.logs, g.logs); diff != "" {
				t.Error(diff)
			}
			for i, f := range event.Of[event.ChecksExamined](e).Failures {
				if !strings.Contains(f.Body, c.says[i]) || !strings.Contains(f.Body, "failing step: Run tests") {
					t.Errorf("got %s", f.Body)
				}
			}
			if got := len(event.Of[event.ChecksExamined](e).Failures); got != len(c.says) {
				t.Errorf("got %d causes", got)
			}
		})
	}
}
