package forge_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// merging reads the pull request until GitHub knows whether it can be merged.
func merging(t *testing.T, w *forgetest.World, number int) (m forge.Merging) {
	t.Helper()
	forgetest.Poll(t, "mergeability", func() bool {
		m = forgetest.Must(w.Forge.Merging(t.Context(), w.Repo, number))(t)
		return m.Mergeable != nil
	})
	return m
}

// TestDraftIsMarkedReady: a draft is marked ready, again without an effect; in a repository without drafts the mark in the title is removed.
func TestDraftIsMarkedReady(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	pushBranch(t, w, "errand/1")
	p := forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, forge.NewPR{Head: "errand/1", Base: "main", Title: "Fix it", Draft: true}))(t)
	m := merging(t, w, p.Number)
	if !m.Draft || m.Title != "Fix it" || m.Head != p.Head || m.Base != "main" || !*m.Mergeable || !slices.Equal(m.Methods, []string{"MERGE", "SQUASH", "REBASE"}) {
		t.Errorf("got %+v", m)
	}
	for range 2 {
		if err := w.Forge.MarkReady(t.Context(), w.Repo, p.Number, m); err != nil {
			t.Fatal(err)
		}
	}
	if m = merging(t, w, p.Number); m.Draft {
		t.Errorf("got %+v", m)
	}
	p = openPR(t, w, "errand/2")
	if _, err := w.Forge.EditPR(t.Context(), w.Repo, p.Number, "[WIP] Fix it", ""); err != nil {
		t.Fatal(err)
	}
	if m = merging(t, w, p.Number); !m.Draft {
		t.Errorf("got %+v", m)
	}
	if err := w.Forge.MarkReady(t.Context(), w.Repo, p.Number, m); err != nil {
		t.Fatal(err)
	}
	if m = merging(t, w, p.Number); m.Draft || m.Title != "Fix it" {
		t.Errorf("got %+v", m)
	}
}

// TestOnlyTheExpectedHeadIsMerged: GitHub refuses to merge another commit than the one that errand names, and to merge past a queue.
func TestOnlyTheExpectedHeadIsMerged(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	if err := w.AllowMerges(forgetest.FullName, "squash", "rebase"); err != nil {
		t.Fatal(err)
	}
	p := openPR(t, w, "errand/1")
	m := merging(t, w, p.Number)
	refused := func(what string, err error) {
		t.Helper()
		if class, _ := forge.Classify(err); err == nil || class != forge.ClassPermanent {
			t.Errorf("%s: got %v", what, err)
		}
	}
	refused("another head", w.Forge.MergePR(t.Context(), w.Repo, m.Node, forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t), "SQUASH"))
	refused("a method that is not allowed", w.Forge.MergePR(t.Context(), w.Repo, m.Node, m.Head, "MERGE"))
	if err := w.RequireMergeQueue(forgetest.FullName, "main", true); err != nil {
		t.Fatal(err)
	}
	refused("past the queue", w.Forge.MergePR(t.Context(), w.Repo, m.Node, m.Head, m.Methods[0]))
	if q := merging(t, w, p.Number); !q.NeedsQueue || q.Queued {
		t.Errorf("got %+v", q)
	}
	refused("another head in the queue", w.Forge.EnqueuePR(t.Context(), w.Repo, m.Node, forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)))
	if err := w.Forge.EnqueuePR(t.Context(), w.Repo, m.Node, m.Head); err != nil {
		t.Fatal(err)
	}
	if q := merging(t, w, p.Number); !q.NeedsQueue || !q.Queued {
		t.Errorf("got %+v", q)
	}
	if err := w.Forge.DequeuePR(t.Context(), w.Repo, m.Node); err != nil {
		t.Fatal(err)
	}
	if q := merging(t, w, p.Number); q.Queued {
		t.Errorf("got %+v", q)
	}
	if err := w.RequireMergeQueue(forgetest.FullName, "main", false); err != nil {
		t.Fatal(err)
	}
	if err := w.Forge.MergePR(t.Context(), w.Repo, m.Node, m.Head, m.Methods[0]); err != nil {
		t.Fatal(err)
	}
	if p = forgetest.Must(w.Forge.PR(t.Context(), w.Repo, p.Number))(t); !p.Merged {
		t.Errorf("got %+v", p)
	}
}

// TestAutoMergeIsDisabled: errand sees whose auto-merge is enabled, and disables it.
func TestAutoMergeIsDisabled(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	if err := w.AllowAutoMerge(forgetest.FullName, true); err != nil {
		t.Fatal(err)
	}
	p := openPR(t, w, "errand/1")
	if err := w.RequireUpToDate(forgetest.FullName, "main", true); err != nil {
		t.Fatal(err)
	}
	forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "News", Files: map[string]string{"NEWS": "1"}}))(t)
	merging(t, w, p.Number)
	if err := w.As("wendy").EnableAutoMerge(forgetest.FullName, p.Number, "squash"); err != nil {
		t.Fatal(err)
	}
	m := merging(t, w, p.Number)
	if m.AutoMerge != "wendy" {
		t.Fatalf("got %+v", m)
	}
	if err := w.Forge.DisableAutoMerge(t.Context(), w.Repo, m.Node); err != nil {
		t.Fatal(err)
	}
	if m = merging(t, w, p.Number); m.AutoMerge != "" {
		t.Errorf("got %+v", m)
	}
}

// TestServersWithoutMergeQueues: an old Enterprise Server does not know the fields, and is asked again without them.
func TestServersWithoutMergeQueues(t *testing.T) {
	t.Parallel()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "isInMergeQueue") {
			forgetest.Answer(w, 200, m{"errors": []m{{"message": "Field 'isInMergeQueue' doesn't exist on type 'PullRequest'"}}})
			return
		}
		forgetest.Answer(w, 200, m{"data": m{"repository": m{"squashMergeAllowed": true, "pullRequest": m{"id": "PR_1", "state": "OPEN", "headRefOid": "aa", "mergeable": "MERGEABLE"}}}})
	})
	got, err := forgetest.New(t, gh.URL).Merging(t.Context(), forgetest.Repo(), 3)
	if err != nil || got.Node != "PR_1" || !got.Open || got.Head != "aa" || got.NeedsQueue || got.Queued || !slices.Equal(got.Methods, []string{"SQUASH"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
