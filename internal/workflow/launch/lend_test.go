package launch_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// lending configures the operator's variables and files for the repository's tests.
func lending(c *workflow.Config) {
	c.TestsFor = func(repo string) workspace.Tests {
		if repo != "acme/slug" {
			return workspace.Tests{}
		}
		return workspace.Tests{Env: map[string]string{"PASSWORD": "tulip-marmelade"}, Files: map[string]string{"config/test.key": "orchid-compote"}}
	}
}

// Agents and checks get variables and files; the saved work of a suspended task contains neither, and they are provided
// again after the restore.
func TestLend(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t, lending)
	w.Task.Settings.Env = map[string]string{"HOST": "localhost", "PASSWORD": "from the repository"}
	w.Task.Settings.Keep = []string{"config"}
	w.Rest()
	spec, key := w.Host.Started[0], filepath.Join(w.Host.Dir, "config", "test.key")
	if spec.Env["HOST"] != "localhost" || spec.Env["PASSWORD"] != "tulip-marmelade" {
		t.Errorf("got environment of the agent %v", spec.Env)
	}
	if data, err := os.ReadFile(key); err != nil || string(data) != "orchid-compote" {
		t.Fatalf("got file %q of the agent, %v", data, err)
	}
	w.Suspend()
	if _, err := os.Lstat(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the saved work contains it: %v", err)
	}
	w.NewVM()
	w.Task.Phase = state.PhaseImplementing
	w.Launching(state.RunImplement)
	l := w.Launched()
	if data, err := os.ReadFile(filepath.Join(w.Host.Dir, "config", "test.key")); err != nil || string(data) != "orchid-compote" {
		t.Errorf("on the next VM: got file %q, %v", data, err)
	}
	if p := w.Prompt(); !strings.Contains(p, `"PASSWORD"`) || !strings.Contains(p, `"config/test.key"`) || strings.Contains(p, "tulip") || strings.Contains(p, "orchid") {
		t.Errorf("got prompt:\n%s", p)
	}
	w.EndRun(state.RunSucceeded, workflowtest.Session)
	w.Task.VM, w.Task.Branch.Root = &l.VM, w.Head("main")
	w.Task.Work = &state.Work{LocalHead: w.Host.Git(t, "rev-parse", "HEAD")}
	w.Task.Settings.Check = []settings.Command{{Run: "true {changed_files}"}}
	w.Launching(state.RunCheck)
	w.Launched()
	var in work.CheckSpec
	workflowtest.Check(t, json.Unmarshal([]byte(w.Host.Started[2].Stdin), &in))
	if len(in.Files) != 1 || string(in.Files[0].Content) != "orchid-compote" || in.Env["PASSWORD"] != "tulip-marmelade" || in.Env["HOST"] != "localhost" || in.Base != w.Task.Branch.BaseSHA {
		t.Errorf("got environment of checks %+v", in)
	}
}

// A configured file with the name of a file in the repository is refused.
func TestLendRefusesExistingFiles(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t, func(c *workflow.Config) {
		c.TestsFor = func(string) workspace.Tests {
			return workspace.Tests{Files: map[string]string{"README.md": "lent", "key": "lent"}}
		}
	})
	w.Task.Phase = state.PhaseImplementing
	w.Launching(state.RunImplement)
	_, err := w.Try(state.JobLaunch)
	var p *step.Problem
	if !errors.As(err, &p) || !p.Permanent || !strings.Contains(p.Reason, "`README.md`") {
		t.Errorf("launch: %v", err)
	}
	if len(w.Host.Started) != 0 {
		t.Error("got a started run")
	}
}

// Work is not saved if the files for tests could not be removed from it.
func TestLentFilesAreNotSaved(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t, lending)
	w.Rest()
	w.Host.Errs["Lend"] = errors.New("the VM said no")
	if _, err := w.Try(state.JobSuspend, workflowtest.Args(state.JobArgs{VM: w.Host.VM.Name})); err == nil || !strings.Contains(err.Error(), "take the test files out") {
		t.Errorf("sleep: %v", err)
	}
}
