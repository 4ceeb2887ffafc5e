package publish_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

func TestChangesetIsPublished(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	h := w.Building()
	first := h.Commit(t, "Mend it\n\nCloses #99, thanks @octocat", map[string]string{"slug.go": "package slug\n"})
	h.Write(t, map[string]string{"left.txt": "uncommitted\n"})
	e := w.Collected()
	if len(event.Of[event.Collected](e).Refusals) != 0 || e.Run != "r-1" || e.Work().Commits != 2 || e.Work().Paths != 2 || e.Work().Base != w.Task.Branch.BaseSHA || e.Work().Ref == "" {
		t.Fatalf("got refusals %v, work %+v", event.Of[event.Collected](e).Refusals, e.Work())
	}
	if again := w.Collected(); again.Work().LocalHead != e.Work().LocalHead || again.Work().Ref != e.Work().Ref {
		t.Errorf("repeated collection: got %s, then %s", e.Work().LocalHead, again.Work().LocalHead)
	}
	work := w.Committed()
	if work.IDs[first] == "" || work.IDs[work.LocalHead] != work.Head || work.Tree != work.LocalTree {
		t.Errorf("got publication %+v", work)
	}
	_, before := w.Calls()
	if again := w.Committed(); again.Head != work.Head {
		t.Errorf("repeated commit: got %s, want %s", again.Head, work.Head)
	}
	if _, after := w.Calls(); after-before > 3 {
		t.Errorf("repeated commit: got %d calls", after-before)
	}
	for range 2 { // the answer may be lost
		if e := w.Do(state.JobMove); e.Kind() != event.KindBranchMoved || e.Run != "r-1" {
			t.Fatalf("got event %+v", e)
		}
	}
	if got := w.Head(w.Task.Branch.Name); got != work.Head {
		t.Errorf("got branch at %s, want %s", got, work.Head)
	}
	view, _, err := w.Ada.CommitFiles(workflowtest.RepoName, work.IDs[first])
	workflowtest.Check(t, err)
	if !view.Verified || strings.Contains(view.Message, "Closes #99") || strings.Contains(view.Message, " @octocat") || !strings.HasPrefix(view.Message, "Mend it") {
		t.Errorf("got published commit %+v", view)
	}
	if at := h.Git(t, "rev-parse", "HEAD"); at != work.Head || h.Git(t, "status", "--porcelain") != "" {
		t.Errorf("got the VM's checkout at %s, want the published %s", at, work.Head)
	}
}

func TestNoNetChange(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	h := w.Building()
	if e := w.Collected(); e.Work() != nil && e.Work().Paths != 0 || len(event.Of[event.Collected](e).Refusals) != 0 {
		t.Errorf("without changes: got %+v", e)
	}
	h.Commit(t, "There", map[string]string{"a.txt": "a\n"})
	h.Commit(t, "And back", map[string]string{"a.txt": ""})
	if e := w.Collected(); e.Work() != nil && e.Work().Paths != 0 {
		t.Errorf("reverted change: got %+v", e.Work())
	}
}

func TestPushGate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings func(*settings.Settings)
		files    map[string]string
		want     string // rule and path; empty: no refusal
	}{
		"fine":                             {nil, map[string]string{"docs/a.md": "a\n"}, ""},
		"a workflow":                       {nil, map[string]string{".github/workflows/x.yml": "on: push\n"}, "protected-paths .github/workflows/x.yml"},
		"our settings":                     {nil, map[string]string{".errand.yml": "plan: none\n"}, "protected-paths .errand.yml"},
		"configured":                       {func(s *settings.Settings) { s.Gate.Protected = []string{"deploy/**"} }, map[string]string{"deploy/prod.tf": "x\n"}, "protected-paths deploy/prod.tf"},
		"configured for an older version":  {func(s *settings.Settings) { s.Protected = []string{"deploy/**"} }, map[string]string{"deploy/prod.tf": "x\n"}, "protected-paths deploy/prod.tf"},
		"exception only by the repository": {func(s *settings.Settings) { s.Gate.Unprotected = []string{"**"} }, map[string]string{"AGENTS.md": "x\n"}, "protected-paths AGENTS.md"},
		"an exception by the repository":   {func(s *settings.Settings) { s.Protected = []string{"!.github/**", "!**"} }, map[string]string{".github/workflows/x.yml": "on: push\n"}, "protected-paths .github/workflows/x.yml"},
		"the operator's secret":            {nil, map[string]string{"a.txt": "key = " + workflowtest.Secret + "\n"}, "secrets a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			if c.settings != nil {
				c.settings(&w.Task.Settings)
			}
			h := w.Building()
			h.Commit(t, "Change", c.files)
			e := w.Collected()
			var got []string
			for _, r := range event.Of[event.Collected](e).Refusals {
				got = append(got, r.Rule+" "+r.Path)
				if r.Detail == "" || r.Remedy == "" || strings.Contains(r.Detail, workflowtest.Secret) {
					t.Errorf("got refusal %+v", r)
				}
			}
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
				t.Errorf("got refusals %q, want %q", got, c.want)
			}
		})
	}
}

// TestOnlyMergesOfTheBaseAreAccepted: the second parent of a merge is reported by the VM. It must be the base's newest
// commit, which errand reads itself.
func TestOnlyMergesOfTheBaseAreAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allow   bool
		hostile bool
		refused bool
	}{
		"of the base":           {true, false, false},
		"of another branch":     {true, true, true},
		"forged in a changeset": {false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Settings.MergeCommits = c.allow
			h := w.Building()
			newer := w.Push("ada", "main", map[string]string{"newer.txt": "n\n"})
			other := w.Push("bob", "other", map[string]string{".github/workflows/x.yml": "on: push\n"})
			h.Git(t, "fetch", "--quiet", "origin")
			h.Commit(t, "Mine", map[string]string{"a.txt": "a\n"})
			h.Git(t, "merge", "--quiet", "--no-edit", newer)
			if c.hostile {
				h.Tamper = func(cs *changeset.Changeset) {
					last := &cs.Commits[len(cs.Commits)-1]
					last.Parents = []string{last.Parents[0], other}
				}
			}
			e := w.Collected()
			if refused := len(event.Of[event.Collected](e).Refusals) > 0; refused != c.refused {
				t.Fatalf("got refusals %+v, want some: %v", event.Of[event.Collected](e).Refusals, c.refused)
			}
			if !c.refused {
				w.Committed()
				w.Do(state.JobMove)
				if got, err := w.Ada.File(workflowtest.RepoName, w.Task.Branch.Name, "newer.txt"); err != nil || string(got) != "n\n" {
					t.Errorf("got newer.txt %q, %v", got, err)
				}
			}
		})
	}
}

func TestMoveRequiresTheExpectedHead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *workflowtest.World) string // returns the expected head
		kind event.Kind                         // empty: a problem
		says string
	}{
		"overtaken": {func(w *workflowtest.World) string {
			w.Task.Branch.Head = w.Push("bob", w.Task.Branch.Name, map[string]string{"b.txt": "1\n"})
			return w.Push("bob", w.Task.Branch.Name, map[string]string{"b.txt": "2\n"})
		}, event.KindBranchAhead, ""},
		"somebody else's branch": {func(w *workflowtest.World) string {
			return w.Push("bob", w.Task.Branch.Name, map[string]string{"b.txt": "1\n"})
		}, "", "exists already"},
		"deleted": {func(w *workflowtest.World) string {
			w.Task.Branch.Head = w.Push("bob", w.Task.Branch.Name, map[string]string{"b.txt": "1\n"})
			workflowtest.Check(w.T, w.Ada.DeleteBranch(workflowtest.RepoName, w.Task.Branch.Name))
			return ""
		}, "", "was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			h := w.Building()
			h.Commit(t, "Mend it", map[string]string{"a.txt": "a\n"})
			w.Collected()
			w.Committed()
			head := c.act(w)
			e, err := w.Try(state.JobMove)
			if c.kind == "" {
				if p := workflowtest.WantProblem(t, err, "github", true); !strings.Contains(p.Reason, c.says) || !strings.Contains(p.Reason, w.Task.Branch.Name) {
					t.Errorf("got reason %q", p.Reason)
				}
			} else if err != nil || e.Kind() != c.kind || event.Of[event.BranchAhead](e).Head != head {
				t.Errorf("got event %+v, error %v; want %s at %s", e, err, c.kind, head)
			}
			if got := w.Head(w.Task.Branch.Name); got != head {
				t.Errorf("got the branch moved from %s to %s", head, got)
			}
		})
	}
}

func TestMoveAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	h := w.Building()
	h.Commit(t, "Mend it", map[string]string{"a.txt": "a\n"})
	w.Collected()
	work := w.Committed()
	w.MustFault(simgithub.Fault{Method: "POST", Path: "/graphql|/git/refs", Actor: "app", Count: 1, After: true, Cut: true})
	if e, err := w.Try(state.JobMove); err == nil && e.Kind() != event.KindBranchMoved {
		t.Fatalf("got event %+v", e)
	}
	if e := w.Do(state.JobMove, workflowtest.Again); e.Kind() != event.KindBranchMoved || w.Head(w.Task.Branch.Name) != work.Head {
		t.Errorf("got event %+v, branch at %s", e, w.Head(w.Task.Branch.Name))
	}
}

// TestNothingUnreviewedIsMergedByItself: before a push to an open pull request errand disables auto-merge, and removes the pull request from the merge
// queue. If GitHub refuses that, nothing is pushed.
func TestNothingUnreviewedIsMergedByItself(t *testing.T) {
	t.Parallel()
	const repo, autoMerge, queued = workflowtest.RepoName, "auto-merge", "queue"
	for name, c := range map[string]struct {
		how    string
		refuse bool
		want   event.MergePending
	}{
		"neither":                {},
		"auto-merge":             {how: autoMerge, want: event.MergePending{AutoMerge: "ada"}},
		"auto-merge, refused":    {how: autoMerge, refuse: true},
		"the queue":              {how: queued, want: event.MergePending{Queued: true}},
		"the queue, refused":     {how: queued, refuse: true},
		"neither, and no rights": {refuse: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			pull := w.OpenPull().Number
			before := w.Head(w.Task.Branch.Name)
			next, err := w.Ada.PushCommit(repo, simgithub.Commit{Branch: "next", From: w.Task.Branch.Name, Message: "Next", Files: map[string]string{"b.txt": "b\n"}})
			workflowtest.Check(t, err)
			w.Task.Phase, w.Task.Work = state.PhaseAddressingReview, &state.Work{Run: "r-2", Head: next}
			switch c.how {
			case autoMerge:
				workflowtest.Check(t, w.AllowAutoMerge(repo, true))
				workflowtest.Check(t, w.RequireChecks(repo, "main", simgithub.RequiredCheck{Context: "unit"}))
				workflowtest.Check(t, w.Ada.EnableAutoMerge(repo, pull, "squash"))
			case queued:
				workflowtest.Check(t, w.RequireMergeQueue(repo, "main", true))
				workflowtest.Check(t, w.Ada.Enqueue(repo, pull, false))
			}
			if c.refuse {
				w.MustFault(simgithub.Fault{Method: "POST", Path: "/graphql (disablePullRequestAutoMerge|dequeuePullRequest)", Actor: "app", Status: 403, Body: `{"message":"Must have admin rights"}`})
			}
			if c.how != "" { // people are told first
				e := w.Do(state.JobMove)
				if got := event.Of[event.MergePending](e); c.want != (event.MergePending{}) && got != c.want || e.Kind() != event.KindMergePending || w.Head(w.Task.Branch.Name) != before {
					t.Fatalf("got %+v, branch at %s", e, w.Head(w.Task.Branch.Name))
				}
				w.Task.PR.PreventMerge = true
			}
			e, err := w.Try(state.JobMove)
			if c.refuse && c.how != "" {
				workflowtest.WantProblem(t, err, "github", true)
				if w.Head(w.Task.Branch.Name) != before {
					t.Errorf("the branch is at %s", w.Head(w.Task.Branch.Name))
				}
				return
			}
			if err != nil || e.Kind() != event.KindBranchMoved || w.Head(w.Task.Branch.Name) != next {
				t.Errorf("got %+v, %v", e, err)
			}
			if c.how != "" && w.IssueAt(pull).Pull.AutoMerge != nil || w.IssueAt(pull).Pull.Queued != nil {
				t.Errorf("got %+v", w.IssueAt(pull).Pull)
			}
		})
	}
}

func TestRebaseOntoPushedCommits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		theirs   map[string]string
		conflict []string
	}{
		"in other files": {map[string]string{"theirs.txt": "t\n"}, nil},
		"conflict":       {map[string]string{"slug.go": "package slug\n\n// theirs\n"}, []string{"slug.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Branch.Head = w.Push("bob", w.Task.Branch.Name, map[string]string{"first.txt": "1\n"})
			w.Task.Phase = state.PhaseAddressingReview
			w.Task.Work = &state.Work{Run: "r-1"}
			w.Host.Checkout(t, w.Task.Branch.Head)
			w.Host.Commit(t, "Mend it", map[string]string{"slug.go": "package slug\n\n// ours\n"})
			w.Collected()
			w.Committed()
			theirs := w.Push("bob", w.Task.Branch.Name, c.theirs)
			if e := w.Do(state.JobMove); event.Of[event.BranchAhead](e).Head != theirs {
				t.Fatalf("got event %+v", e)
			}
			w.Task.Branch.Head = theirs
			e := w.Do(state.JobRebase, workflowtest.Args(state.JobArgs{Onto: theirs}))
			if c.conflict != nil {
				if failed := event.Of[event.Conflict](e); !slices.Equal(failed.Paths, c.conflict) || failed.Head != theirs {
					t.Errorf("got event %+v", e)
				}
				return
			}
			if e.Kind() != event.KindCollected || e.Work().Base != theirs || len(event.Of[event.Collected](e).Refusals) != 0 {
				t.Fatalf("got event %+v, work %+v", e, e.Work())
			}
			w.Task.Work = e.Work()
			w.Committed()
			if e := w.Do(state.JobMove); e.Kind() != event.KindBranchMoved {
				t.Fatalf("got event %+v", e)
			}
			for _, path := range []string{"theirs.txt", "slug.go", "first.txt"} {
				if _, err := w.Ada.File(workflowtest.RepoName, w.Task.Branch.Name, path); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

func TestWithoutTheVMThereIsNoWork(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Work = &state.Work{Run: "r-1"}
	for _, kind := range []state.JobKind{state.JobCollect, state.JobRebase} {
		_, err := w.Try(kind)
		workflowtest.WantProblem(t, err, "vm", true)
	}
}
