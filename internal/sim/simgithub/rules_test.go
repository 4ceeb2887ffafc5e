package simgithub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// A pull request cannot be merged before the checks that its base requires have succeeded on its head, and the rules of the base name them.
func TestRequiredChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "topic", Message: "Fix", Files: map[string]string{"calc.go": fixed}})
	check(t, err)
	p, err := w.Owner.OpenPull(repo, simgithub.NewPull{Title: "A", Head: "topic"})
	check(t, err)
	sha := p.Pull.HeadSHA
	check(t, w.Sim.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "build"}, simgithub.RequiredCheck{Context: "lint", App: 15368}))
	refused := func(with string) {
		t.Helper()
		var e *simgithub.Error
		if err := w.Owner.Merge(repo, p.Number, simgithub.Merge{}); !errors.As(err, &e) || e.Status != 405 || !strings.Contains(e.Message, with) {
			t.Errorf("got %v, want a refusal with %q", err, with)
		}
		if v, err := w.Owner.PullView(repo, p.Number); err != nil || v.State != "blocked" {
			t.Errorf("got %s, %v, want blocked", v.State, err)
		}
	}
	refused(`"build" is expected`)
	check(t, w.Sim.CheckRun(repo, sha, "build", "failure", ""))
	refused(`"build" is failing`)
	check(t, w.Sim.CheckRun(repo, sha, "build", "", ""))
	refused(`"build" is in progress`)
	check(t, w.Sim.CheckRun(repo, sha, "build", "skipped", ""))
	refused(`"lint" is expected`)
	check(t, w.Sim.CheckRun(repo, sha, "lint", "success", ""))
	check(t, w.Sim.CheckRun(repo, sha, "docs", "failure", ""))
	check(t, w.Sim.Job(repo, sha, simgithub.Job{Workflow: "release.yml", Name: "build", Conclusion: "failure"})) // another workflow's job of the same name counts, too
	refused(`"build" is failing`)
	check(t, w.Sim.CheckRun(repo, sha, "build", "success", ""))
	refused(`"build" is failing`)
	check(t, w.Sim.Job(repo, sha, simgithub.Job{Workflow: "release.yml", Name: "build", Conclusion: "success"}))
	check(t, w.Owner.Merge(repo, p.Number, simgithub.Merge{}))
}

// Everybody who may read the files sees which checks the protection of a branch requires, but not what rulesets require.
func TestProtectionOfABranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		list []simgithub.RequiredCheck
		want string
	}{
		{nil, "false [] []"},
		{[]simgithub.RequiredCheck{{Context: "build"}}, "true [] []"},
		{[]simgithub.RequiredCheck{{Context: "build"}, {Context: "lint", Classic: true}, {Context: "e2e", App: 7, Classic: true}}, "true [lint e2e] [0 7]"},
	} {
		check(t, w.Sim.RequireChecks(repo, "main", c.list...))
		b, _, err := w.bot.Repositories.GetBranch(t.Context(), "octo", "calc", "main", 1)
		check(t, err)
		apps := []int64{}
		for _, k := range *b.GetProtection().GetRequiredStatusChecks().Checks {
			apps = append(apps, k.GetAppID())
		}
		if got := fmt.Sprint(b.GetProtected(), *b.GetProtection().GetRequiredStatusChecks().Contexts, apps); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
