package initrepo

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/scan"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// TestOutcome: how a command ended, in words.
func TestOutcome(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end       ended
		elsewhere bool
		denied    []string
		want      scan.Outcome
	}{
		"success":            {end: ended{took: 1240 * time.Millisecond}, denied: []string{"x is not on the list"}, want: scan.Outcome{Status: scan.Succeeded, Seconds: 1.2}},
		"failure":            {end: ended{code: 2, tail: "secret no"}, want: scan.Outcome{Status: scan.Failed, Reason: "exit code 2", Output: "*** no"}},
		"too late":           {end: ended{code: -1, late: true}, want: scan.Outcome{Status: scan.Failed, Reason: "it took longer than 10m0s; if that is usual, write it as {run: …, timeout: 30m}"}},
		"missing":            {end: ended{code: 127, tail: "/bin/sh: 1: npm: not found"}, want: scan.Outcome{Status: scan.Failed, Reason: "npm was not found in the sandbox; agents work in such ones, too: install it on errand's host, or add its folder to local.path", Output: "/bin/sh: 1: npm: not found"}},
		"missing, VMs":       {end: ended{code: 127, tail: "sh: npm: command not found"}, elsewhere: true, want: scan.Outcome{Status: scan.Untried, Reason: "npm was not found in the sandbox on errand's host; agents work on other VMs", Output: "sh: npm: command not found"}},
		"script's own":       {end: ended{code: 127, tail: "sh: 1: jest: not found"}, want: scan.Outcome{Status: scan.Failed, Reason: "exit code 127: jest was not found in the sandbox", Output: "sh: 1: jest: not found"}},
		"make's own":         {end: ended{code: 2, tail: "make: linter: No such file or directory"}, want: scan.Outcome{Status: scan.Failed, Reason: "exit code 2: linter was not found in the sandbox", Output: "make: linter: No such file or directory"}},
		"script's own, VMs":  {end: ended{code: 2, tail: "/bin/sh: 1: go: not found\nmake: *** [test] Error 127"}, elsewhere: true, want: scan.Outcome{Status: scan.Untried, Reason: "go was not found in the sandbox on errand's host; agents work on other VMs", Output: "/bin/sh: 1: go: not found\nmake: *** [test] Error 127"}},
		"make's own, VMs":    {end: ended{code: 2, tail: "make: go: No such file or directory"}, elsewhere: true, want: scan.Outcome{Status: scan.Untried, Reason: "go was not found in the sandbox on errand's host; agents work on other VMs", Output: "make: go: No such file or directory"}},
		"page, VMs":          {end: ended{code: 1, tail: "got: not found in the list"}, elsewhere: true, want: scan.Outcome{Status: scan.Failed, Reason: "exit code 1", Output: "got: not found in the list"}},
		"not allowed":        {end: ended{code: 126, tail: "/bin/sh: 1: npm: Permission denied"}, elsewhere: true, want: scan.Outcome{Status: scan.Failed, Reason: "npm may not be executed in the sandbox: check its permissions", Output: "/bin/sh: 1: npm: Permission denied"}},
		"another's, allowed": {end: ended{code: 126, tail: "/bin/sh: 1: x: Permission denied"}, want: scan.Outcome{Status: scan.Failed, Reason: "exit code 126", Output: "/bin/sh: 1: x: Permission denied"}},
		"host not reachable": {end: ended{code: 1}, denied: []string{"a is not on the list", "b is not on the list"}, want: scan.Outcome{Status: scan.Failed, Reason: "exit code 1; requests were refused: a is not on the list; b is not on the list"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := &trial{Box: &Box{Elsewhere: row.elsewhere, Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "***") }}}
			at := time.Now()
			tr.requested(egress.Request{At: at, Host: "ok.example.org", Allowed: true})
			for _, h := range row.denied {
				tr.requested(egress.Request{At: at, Host: "a.example.org", Reason: h})
				tr.requested(egress.Request{At: at, Host: "a.example.org", Reason: h})
			}
			tr.requested(egress.Request{At: at.Add(time.Hour), Host: "b.example.org", Reason: "of the next command"})
			row.end.at = at.Add(time.Second)
			got := tr.outcome(scan.Command{Run: "npm test", Tool: "npm"}, row.end)
			if diff := cmp.Diff(&row.want, got); diff != "" {
				t.Error(diff)
			}
			if next := tr.refusals(at.Add(2 * time.Hour)); len(next) != 1 || next[0] != "of the next command" {
				t.Errorf("the next command is blamed for %q", next)
			}
		})
	}
}

// brokenFleet has sandboxes that cannot be deleted.
type brokenFleet struct{ isolation fleet.Isolation }

func (f brokenFleet) Describe(context.Context) (fleet.Description, error) {
	return fleet.Description{Isolation: f.isolation}, nil
}

func (brokenFleet) Acquire(context.Context, fleet.AcquireSpec) (fleet.VM, error) { return fleetVM, nil }

func (brokenFleet) Release(context.Context, string, fleet.Reason) error {
	return errors.New("it is stuck")
}

// brokenTether connects no sandbox.
type brokenTether struct{ workspace.Tether }

func (brokenTether) Ensure(context.Context, string, state.TaskKey) error {
	return errors.New("no connection")
}

// TestTrialWithoutEnd: after an error no command has an outcome, as the file says that none was tried. A sandbox that cannot be
// deleted is only a warning.
func TestTrialWithoutEnd(t *testing.T) {
	t.Parallel()
	var warned []string
	b := &Box{
		Fleet: brokenFleet{fleet.IsolationFull}, Warn: func(err error) { warned = append(warned, err.Error()) },
		Open: func(*state.Task, func(egress.Request)) (*workspace.Opener, func()) {
			return &workspace.Opener{Tether: brokenTether{}}, func() {}
		},
	}
	done := &scan.Outcome{Status: scan.Succeeded}
	r := scan.Report{Setup: []scan.Command{{Outcome: done}}, Check: []scan.Command{{Outcome: done}, {Outcome: done}}}
	err := b.Try(t.Context(), Target{}, &r, nil)
	if err == nil || err.Error() != "connect to the sandbox: no connection" || len(warned) != 1 || warned[0] != "delete the sandbox: it is stuck" {
		t.Errorf("got %v and the warnings %q", err, warned)
	}
	for _, c := range slices.Concat(r.Setup, r.Check) {
		if c.Outcome != nil {
			t.Errorf("a command has the outcome %+v", c.Outcome)
		}
	}
}

var fleetVM = fleet.VM{Name: "vm", Kind: "bwrap"}

// oneTask is a store with one task.
type oneTask struct{ task *state.Task }

func (o oneTask) Task(context.Context, state.TaskKey) (*state.Task, error) { return o.task, nil }

// TestTaskMayNotCallModels: the tether knows the sandbox and its run, but answers neither calls of models nor of errand's tools.
func TestTaskMayNotCallModels(t *testing.T) {
	t.Parallel()
	task := taskOf(Target{}, fleetVM)
	h := tether.New(tether.Config{Tasks: oneTask{task}, Key: []byte("a secret of the test"), Log: zerolog.Nop(), Callback: func(w http.ResponseWriter, _ *http.Request, _ *state.Task, _ string) {
		w.WriteHeader(http.StatusOK)
	}})
	for path, want := range map[string]int{"/llm/anthropic/v1/messages": 401, "/callback/ask": 401, "/": 404} {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header.Set("Authorization", "Bearer "+h.RunToken(task.Run.ID))
		rec := httptest.NewRecorder()
		h.For(tether.Peer{VM: fleetVM.Name, Task: task.Key}).ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("%s: got %d %s, want %d", path, rec.Code, rec.Body, want)
		}
	}
}

// TestTaskKnowsTheForge: git in the sandbox finds the configured submodules by the address of the repository's page.
func TestTaskKnowsTheForge(t *testing.T) {
	t.Parallel()
	target := Target{Found: forge.Found{URL: "https://github.example/acme/app"}}
	if got := taskOf(target, fleetVM).Repo; got.URL != target.URL {
		t.Errorf("got %+v", got)
	}
}

// TestCode: a text of a repository cannot leave its code span or its cell, or add a line. A list shows it as it is.
func TestCode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"make test":           {"`make test`", "`make test`"},
		"a || b":              {"`a || b`", "`a \\|\\| b`"},
		`a \| b`:              {"`a \\| b`", "`a \\¦ b`"},
		"a`b":                 {"`` a`b ``", "`` a`b ``"},
		"a``` | @ada\n\n# x":  {"```` a``` | @ada # x ````", "```` a``` \\| @ada # x ````"},
		"\x1b[31m<b>\u202ehi": {"`[31m<b> hi`", "`[31m<b> hi`"},
	} {
		if got := [2]string{code(text), cell(text)}; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestBody: the description names everything that was found and tried, within GitHub's limit.
func TestBody(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("`|x", 300)
	r := scan.Report{SignOff: true, HasSettings: true, Notes: []string{"A note."}}
	for range 30 {
		r.Rules = append(r.Rules, scan.Fact{Name: long, Origin: long})
		r.CI, r.Layout = append(r.CI, scan.Fact{Name: long, Origin: long}), append(r.Layout, scan.Fact{Name: long, Origin: long})
	}
	for range 20 {
		c := scan.Command{Run: long, Origin: long, Outcome: &scan.Outcome{Status: scan.Failed, Reason: long}}
		r.Setup, r.Check = append(r.Setup, c), append(r.Check, c)
	}
	p := &Proposer{Start: "Assign an issue to `worker`."}
	got := p.body(Request{Target: Target{Commit: "abc", Found: forge.Found{DefaultBranch: "main"}}, Draft: scan.Draft{Report: r, Tried: "in a sandbox"}})
	if len(got) > 65536 {
		t.Errorf("%d bytes", len(got))
	}
	for _, want := range []string{"commit abc and tried the commands in a sandbox.", "**This replaces the present `.errand.yml`:**", "- Note: `A note.`", "| `setup` | ", "❌ failed after 0 s: ", "`git commit --amend --signoff`", "3. Assign an issue to `worker`."} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}

// TestCheckBranch: only plain names of other branches are accepted.
func TestCheckBranch(t *testing.T) {
	t.Parallel()
	for branch, ok := range map[string]bool{
		"errand/init": true, "settings": true, "a-b/c.d_e": true,
		"main": false, "": false, "-x": false, "a..b": false, "a//b": false, "/a": false, "a/": false, "a/.b": false, "a.lock": false, "refs/heads/a": false, "a b": false, "a~1": false, "ä": false,
	} {
		if err := CheckBranch(branch, "main"); (err == nil) != ok {
			t.Errorf("%q: got %v", branch, err)
		}
	}
}
