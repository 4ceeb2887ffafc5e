package simgithub_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// The branch of a pull request is updated by people who may write, from the head that they know, if there is something to add and
// it fits. A merge is authored by the actor and made by GitHub; a rebase keeps the authors.
func TestUpdateBranch(t *testing.T) {
	t.Parallel()
	const free, lines, ci = "free.go", "calc.go", ".github/workflows/ci.yml"
	merge, rebase := simgithub.BranchUpdate{}, simgithub.BranchUpdate{Rebase: true}
	for name, c := range map[string]struct {
		by       string
		base     string // a file that the base changes
		in       simgithub.BranchUpdate
		refused  string // a part of the message
		parents  int
		authored string
	}{
		"a merge":              {by: "octo", base: free, in: merge, parents: 2, authored: "octo"},
		"a rebase":             {by: "octo", base: free, in: rebase, parents: 1, authored: "octo"},
		"by a reader":          {by: "eve", base: free, in: merge, refused: "Must have"},
		"of an old head":       {by: "octo", base: free, in: simgithub.BranchUpdate{Head: strings.Repeat("0", 40)}, refused: "expected head sha"},
		"without news":         {by: "octo", in: merge, refused: "no new commits"},
		"in conflict":          {by: "octo", base: lines, in: merge, refused: "merge conflict"},
		"a rebase in conflict": {by: "octo", base: lines, in: rebase, refused: "merge conflict"},
		"a workflow":           {by: "octo", base: ci, in: merge, parents: 2, authored: "octo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.Sim.AddUser("eve")
			_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "topic", Message: "Fix", Files: map[string]string{"calc.go": fixed}})
			check(t, err)
			p, err := w.Owner.OpenPull(repo, simgithub.NewPull{Title: "A", Head: "topic"})
			check(t, err)
			if c.base != "" {
				_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "News", Files: map[string]string{c.base: "package calc // other\n"}})
				check(t, err)
			}
			by := w.Sim.As(c.by)
			err = by.UpdateBranch(repo, p.Number, c.in)
			now, lookErr := w.Owner.Issue(repo, p.Number)
			check(t, lookErr)
			if c.refused != "" {
				var e *simgithub.Error
				if !errors.As(err, &e) || !strings.Contains(e.Message, c.refused) || now.Pull.HeadSHA != p.Pull.HeadSHA {
					t.Errorf("got %v, head %s, want a refusal with %q", err, now.Pull.HeadSHA, c.refused)
				}
				return
			}
			check(t, err)
			r, err := w.Owner.Repo(repo)
			check(t, err)
			got := r.Git.Commit(now.Pull.HeadSHA)
			if len(got.Parents) != c.parents || got.Author.Name != c.authored || (got.Committer.Name == "GitHub") != (c.parents == 2) {
				t.Errorf("got %+v", got)
			}
			if !r.Git.IsAncestor(r.Git.Branch("main"), got.SHA) || r.Git.Object(got.SHA+":calc.go") == r.Git.Object("main:calc.go") {
				t.Error("the branch lacks the commits of one side")
			}
			if err := by.UpdateBranch(repo, p.Number, c.in); err == nil {
				t.Error("updated again without new commits")
			}
		})
	}
}

// Where the base requires its newest commits, a pull request is behind until it has them, if nothing else is missing.
func TestUpToDateRequired(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "topic", Message: "Fix", Files: map[string]string{"calc.go": fixed}})
	check(t, err)
	p, err := w.Owner.OpenPull(repo, simgithub.NewPull{Title: "A", Head: "topic"})
	check(t, err)
	check(t, w.Sim.RequireUpToDate(repo, "main", true))
	state := func(want string) {
		t.Helper()
		if v, err := w.Owner.PullView(repo, p.Number); err != nil || v.State != want {
			t.Errorf("got %s, %v, want %s", v.State, err, want)
		}
	}
	state("clean")
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "News", Files: map[string]string{"free.go": "package calc\n"}})
	check(t, err)
	state("behind")
	if err := w.Owner.Merge(repo, p.Number, simgithub.Merge{}); err == nil {
		t.Error("merged without the newest commits of the base")
	}
	check(t, w.Sim.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "build"}))
	state("blocked")
	check(t, w.Sim.RequireChecks(repo, "main"))
	check(t, w.Owner.UpdateBranch(repo, p.Number, simgithub.BranchUpdate{}))
	state("clean")
	check(t, w.Owner.Merge(repo, p.Number, simgithub.Merge{}))
}
