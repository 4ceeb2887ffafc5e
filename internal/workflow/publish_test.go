package workflow_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// building has an agent's checkout at the base, its run over.
func (w *world) building() *host {
	w.t.Helper()
	w.task.Phase, w.task.Branch.BaseSHA = state.PhaseImplementing, w.head("main")
	w.task.Work = &state.Work{Run: "r-1", Summary: "Mended it.", Text: "Mended it."}
	w.host.checkout(w.t, w.task.Branch.BaseSHA)
	return w.host
}

// collected takes the job collect and stores what it found, as the transition table does.
func (w *world) collected() state.Event {
	w.t.Helper()
	e := w.do(state.JobCollect)
	if e.Kind != state.EventCollected {
		w.t.Fatalf("event %s", e.Kind)
	}
	if e.Work != nil {
		w.task.Work = e.Work
	}
	return e
}

// committed takes the job commit likewise.
func (w *world) committed() *state.Work {
	w.t.Helper()
	e := w.do(state.JobCommit)
	if e.Kind != state.EventCommitted || e.Work.Head == "" {
		w.t.Fatalf("event %+v", e)
	}
	w.task.Work = e.Work
	return e.Work
}

func TestAChangesetIsPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.building()
	first := h.commit(t, "Mend it\n\nCloses #99, thanks @octocat", map[string]string{"slug.go": "package slug\n"})
	h.write(t, map[string]string{"left.txt": "uncommitted\n"})
	e := w.collected()
	if len(e.Refusals) != 0 || e.Run != "r-1" || e.Work.Commits != 2 || e.Work.Paths != 2 || e.Work.Base != w.task.Branch.BaseSHA || e.Work.Ref == "" {
		t.Fatalf("refusals %v, work %+v", e.Refusals, e.Work)
	}
	if again := w.collected(); again.Work.LocalHead != e.Work.LocalHead || again.Work.Ref != e.Work.Ref {
		t.Errorf("collected twice: %s, then %s", e.Work.LocalHead, again.Work.LocalHead)
	}
	work := w.committed()
	if work.IDs[first] == "" || work.IDs[work.LocalHead] != work.Head || work.Tree != work.LocalTree {
		t.Errorf("published as %+v", work)
	}
	_, before := w.Calls()
	if again := w.committed(); again.Head != work.Head {
		t.Errorf("a repeated commit made %s of what was %s", again.Head, work.Head)
	}
	if _, after := w.Calls(); after-before > 3 {
		t.Errorf("a repeated commit took %d calls", after-before)
	}
	for range 2 { // the answer may be lost
		if e := w.do(state.JobMove); e.Kind != state.EventMoved || e.Run != "r-1" {
			t.Fatalf("event %+v", e)
		}
	}
	if got := w.head(w.task.Branch.Name); got != work.Head {
		t.Errorf("the branch is at %s, want %s", got, work.Head)
	}
	view, _, err := w.ada.CommitFiles(full, work.IDs[first])
	check(t, err)
	if !view.Verified || strings.Contains(view.Message, "Closes #99") || strings.Contains(view.Message, " @octocat") || !strings.HasPrefix(view.Message, "Mend it") {
		t.Errorf("published commit %+v", view)
	}
	if at := h.git(t, "rev-parse", "HEAD"); at != work.Head || h.git(t, "status", "--porcelain") != "" {
		t.Errorf("the VM's checkout is at %s, want the published %s", at, work.Head)
	}
}

func TestNoNetChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.building()
	if e := w.collected(); e.Work != nil && e.Work.Paths != 0 || len(e.Refusals) != 0 {
		t.Errorf("of nothing: %+v", e)
	}
	h.commit(t, "There", map[string]string{"a.txt": "a\n"})
	h.commit(t, "And back", map[string]string{"a.txt": ""})
	if e := w.collected(); e.Work != nil && e.Work.Paths != 0 {
		t.Errorf("of a change that was taken back: %+v", e.Work)
	}
}

func TestTheGateJudges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings func(*state.Settings)
		files    map[string]string
		want     string // rule and path; empty: nothing is refused
	}{
		"fine":                             {nil, map[string]string{"docs/a.md": "a\n"}, ""},
		"a workflow":                       {nil, map[string]string{".github/workflows/x.yml": "on: push\n"}, "protected-paths .github/workflows/x.yml"},
		"our settings":                     {nil, map[string]string{".errand.yml": "plan: none\n"}, "protected-paths .errand.yml"},
		"configured":                       {func(s *state.Settings) { s.Gate.Protected = []string{"deploy/**"} }, map[string]string{"deploy/prod.tf": "x\n"}, "protected-paths deploy/prod.tf"},
		"configured for an older version":  {func(s *state.Settings) { s.Protected = []string{"deploy/**"} }, map[string]string{"deploy/prod.tf": "x\n"}, "protected-paths deploy/prod.tf"},
		"excepted by the repository alone": {func(s *state.Settings) { s.Gate.Unprotected = []string{"**"} }, map[string]string{"AGENTS.md": "x\n"}, "protected-paths AGENTS.md"},
		"an exception of the repository's": {func(s *state.Settings) { s.Protected = []string{"!.github/**", "!**"} }, map[string]string{".github/workflows/x.yml": "on: push\n"}, "protected-paths .github/workflows/x.yml"},
		"the operator's secret":            {nil, map[string]string{"a.txt": "key = " + secret + "\n"}, "secrets a.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if c.settings != nil {
				c.settings(&w.task.Settings)
			}
			h := w.building()
			h.commit(t, "Change", c.files)
			e := w.collected()
			var got []string
			for _, r := range e.Refusals {
				got = append(got, r.Rule+" "+r.Path)
				if r.Detail == "" || r.Remedy == "" || strings.Contains(r.Detail, secret) {
					t.Errorf("refusal %+v", r)
				}
			}
			if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
				t.Errorf("refused %q, want %q", got, c.want)
			}
		})
	}
}

// TestOnlyMergesOfTheBaseAreTaken: the second parent of a merge is said by the VM. Only the base's
// newest commit, which we read ourselves, may be one.
func TestOnlyMergesOfTheBaseAreTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allow   bool
		hostile bool
		refused bool
	}{
		"of the base":           {true, false, false},
		"of something else":     {true, true, true},
		"forged in a changeset": {false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.task.Settings.MergeCommits = c.allow
			h := w.building()
			newer := w.push("ada", "main", map[string]string{"newer.txt": "n\n"})
			other := w.push("bob", "other", map[string]string{".github/workflows/x.yml": "on: push\n"})
			h.git(t, "fetch", "--quiet", "origin")
			h.commit(t, "Mine", map[string]string{"a.txt": "a\n"})
			h.git(t, "merge", "--quiet", "--no-edit", newer)
			if c.hostile {
				h.collect = func(cs *changeset.Changeset) {
					last := &cs.Commits[len(cs.Commits)-1]
					last.Parents = []string{last.Parents[0], other}
				}
			}
			e := w.collected()
			if refused := len(e.Refusals) > 0; refused != c.refused {
				t.Fatalf("refusals %+v, want some: %v", e.Refusals, c.refused)
			}
			if !c.refused {
				w.committed()
				w.do(state.JobMove)
				if got, err := w.ada.File(full, w.task.Branch.Name, "newer.txt"); err != nil || string(got) != "n\n" {
					t.Errorf("newer.txt is %q, %v", got, err)
				}
			}
		})
	}
}

func TestMoveHoldsOnlyWhereWeLeftTheBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world) string // returns the head that is reported
		kind state.EventKind       // empty: a problem
		says string
	}{
		"overtaken": {func(w *world) string {
			w.task.Branch.Head = w.push("bob", w.task.Branch.Name, map[string]string{"b.txt": "1\n"})
			return w.push("bob", w.task.Branch.Name, map[string]string{"b.txt": "2\n"})
		}, state.EventOvertaken, ""},
		"somebody else's branch": {func(w *world) string {
			return w.push("bob", w.task.Branch.Name, map[string]string{"b.txt": "1\n"})
		}, "", "exists already"},
		"deleted": {func(w *world) string {
			w.task.Branch.Head = w.push("bob", w.task.Branch.Name, map[string]string{"b.txt": "1\n"})
			check(w.t, w.ada.DeleteBranch(full, w.task.Branch.Name))
			return ""
		}, "", "was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.building()
			h.commit(t, "Mend it", map[string]string{"a.txt": "a\n"})
			w.collected()
			w.committed()
			head := c.act(w)
			e, err := w.try(state.JobMove)
			if c.kind == "" {
				if p := wantProblem(t, err, "github", true); !strings.Contains(p.Reason, c.says) || !strings.Contains(p.Reason, w.task.Branch.Name) {
					t.Errorf("reason %q", p.Reason)
				}
			} else if err != nil || e.Kind != c.kind || e.Head != head {
				t.Errorf("event %+v, error %v; want %s at %s", e, err, c.kind, head)
			}
			if got := w.head(w.task.Branch.Name); got != head {
				t.Errorf("the branch was moved from %s to %s", head, got)
			}
		})
	}
}

func TestMoveAfterALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.building()
	h.commit(t, "Mend it", map[string]string{"a.txt": "a\n"})
	w.collected()
	work := w.committed()
	w.fault(simgithub.Fault{Method: "POST", Path: "/graphql|/git/refs", Actor: "app", Count: 1, After: true, Cut: true})
	if e, err := w.try(state.JobMove); err == nil && e.Kind != state.EventMoved {
		t.Fatalf("event %+v", e)
	}
	if e := w.do(state.JobMove, again); e.Kind != state.EventMoved || w.head(w.task.Branch.Name) != work.Head {
		t.Errorf("event %+v, branch at %s", e, w.head(w.task.Branch.Name))
	}
}

func TestRebaseOntoWhatWasPushed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		theirs   map[string]string
		conflict []string
	}{
		"beside":   {map[string]string{"theirs.txt": "t\n"}, nil},
		"conflict": {map[string]string{"slug.go": "package slug\n\n// theirs\n"}, []string{"slug.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.task.Branch.Head = w.push("bob", w.task.Branch.Name, map[string]string{"first.txt": "1\n"})
			w.task.Phase = state.PhaseAddressingReview
			w.task.Work = &state.Work{Run: "r-1"}
			w.host.checkout(t, w.task.Branch.Head)
			w.host.commit(t, "Mend it", map[string]string{"slug.go": "package slug\n\n// ours\n"})
			w.collected()
			w.committed()
			theirs := w.push("bob", w.task.Branch.Name, c.theirs)
			if e := w.do(state.JobMove); e.Kind != state.EventOvertaken || e.Head != theirs {
				t.Fatalf("event %+v", e)
			}
			w.task.Branch.Head = theirs
			e := w.do(state.JobRebase, args("onto", theirs))
			if c.conflict != nil {
				if e.Kind != state.EventConflict || !slices.Equal(e.Paths, c.conflict) || e.Head != theirs {
					t.Errorf("event %+v", e)
				}
				return
			}
			if e.Kind != state.EventCollected || e.Work.Base != theirs || len(e.Refusals) != 0 {
				t.Fatalf("event %+v, work %+v", e, e.Work)
			}
			w.task.Work = e.Work
			w.committed()
			if e := w.do(state.JobMove); e.Kind != state.EventMoved {
				t.Fatalf("event %+v", e)
			}
			for _, path := range []string{"theirs.txt", "slug.go", "first.txt"} {
				if _, err := w.ada.File(full, w.task.Branch.Name, path); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
		})
	}
}

func TestWithoutTheVMThereIsNoWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Work = &state.Work{Run: "r-1"}
	for _, kind := range []state.JobKind{state.JobCollect, state.JobRebase} {
		_, err := w.try(kind)
		wantProblem(t, err, "vm", true)
	}
}
