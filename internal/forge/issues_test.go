package forge_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

func readAll(t *testing.T, r *http.Request) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

func TestIssue(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	opened := forgetest.Must(w.As("wendy").OpenIssue(forgetest.FullName, simgithub.NewIssue{Title: "A bug", Body: "It breaks.", Labels: []string{"bug"}, Assignees: []string{"tom"}, Type: "Bug"}))(t)
	i := forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, opened.Number))(t)
	if i.Title != "A bug" || i.Body != "It breaks." || i.Node != opened.NodeID || i.Author.Login != "wendy" || !cmp.Equal(i.Labels, []string{"bug"}) ||
		len(i.Assignees) != 1 || i.Assignees[0].Login != "tom" || i.Type != "Bug" || i.Closed || i.IsPR || i.CreatedAt.IsZero() || i.URL == "" {
		t.Errorf("got %+v", i)
	}
	text := forgetest.Must(w.Forge.IssueText(t.Context(), w.Repo, i.Node))(t)
	if text.ID != 0 || text.Body != "It breaks." || text.Author.Login != "wendy" || text.Editor != nil {
		t.Errorf("got %+v", text)
	}
	body := "It breaks often."
	if err := w.As("octo").EditIssue(forgetest.FullName, i.Number, simgithub.IssueEdit{Body: &body}); err != nil {
		t.Fatal(err)
	}
	text = forgetest.Must(w.Forge.IssueText(t.Context(), w.Repo, i.Node))(t)
	if text.Body != body || text.Editor == nil || text.Editor.Login != "octo" || text.EditedAt.IsZero() {
		t.Errorf("got %+v", text)
	}
	if open := forgetest.Must(w.Forge.IssueState(t.Context(), w.Repo.Installation, "octo", "app", i.Number))(t); !open {
		t.Error("an open issue is reported as closed")
	}
	if err := w.As("octo").Close(forgetest.FullName, i.Number, "completed"); err != nil {
		t.Fatal(err)
	}
	if open := forgetest.Must(w.Forge.IssueState(t.Context(), w.Repo.Installation, "octo", "app", i.Number))(t); open {
		t.Error("a closed issue is reported as open")
	}
	if _, err := w.Forge.Issue(t.Context(), w.Repo, 999); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestOpenIssuesFor(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	ask := func(want forge.IssueFilter) (numbers []int) {
		t.Helper()
		for _, i := range forgetest.Must(w.Forge.OpenIssuesFor(t.Context(), w.Repo, want))(t) {
			numbers = append(numbers, i.Number)
		}
		return numbers
	}
	var want []int
	for i := range 101 { // two pages
		n := forgetest.Must(w.As("wendy").OpenIssue(forgetest.FullName, simgithub.NewIssue{Title: fmt.Sprint(i), Labels: []string{"errand"}}))(t).Number
		want = append(want, n)
	}
	w.OpenIssue(t, "no label")
	openPR(t, w, "a-pull-request")
	assigned := forgetest.Must(w.As("wendy").OpenIssue(forgetest.FullName, simgithub.NewIssue{Title: "x", Assignees: []string{"tom"}}))(t).Number
	if diff := cmp.Diff(want, ask(forge.IssueFilter{Label: "errand"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{assigned}, ask(forge.IssueFilter{Assignee: "tom"})); diff != "" {
		t.Error(diff)
	}
}

func TestIssueActor(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	if err := w.As("octo").Assign(forgetest.FullName, n, "mia"); err != nil {
		t.Fatal(err)
	}
	if err := w.As("wendy").Assign(forgetest.FullName, n, "tom"); err != nil {
		t.Fatal(err)
	}
	if err := w.As("tom").AddLabels(forgetest.FullName, n, "errand"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ what, subject, want string }{{"assigned", "TOM", "wendy"}, {"assigned", "mia", "octo"}, {"labeled", "errand", "tom"}} {
		by, at, err := w.Forge.IssueActor(t.Context(), w.Repo, n, tt.what, tt.subject)
		if err != nil || by.Login != tt.want || by.ID != w.AddUser(tt.want).ID || at.IsZero() {
			t.Errorf("%s %s by %+v at %s: %v", tt.what, tt.subject, by, at, err)
		}
	}
	if _, _, err := w.Forge.IssueActor(t.Context(), w.Repo, n, "labeled", "other"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestBlockers(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	a, b, c := w.OpenIssue(t, "a"), w.OpenIssue(t, "b"), w.OpenIssue(t, "c")
	if got := forgetest.Must(w.Forge.Blockers(t.Context(), w.Repo, a.Number))(t); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	if err := w.As("wendy").AddBlockedBy(forgetest.FullName, a.Number, b.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.As("wendy").AddSubIssue(forgetest.FullName, a.Number, c.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.As("wendy").Close(forgetest.FullName, c.Number, "completed"); err != nil {
		t.Fatal(err)
	}
	want := []forge.Blocker{
		{Owner: "octo", Name: "app", Number: b.Number, Title: "b", Open: true, Via: "dependency"},
		{Owner: "octo", Name: "app", Number: c.Number, Title: "c", Open: false, Via: "sub-issue"},
	}
	got := forgetest.Must(w.Forge.Blockers(t.Context(), w.Repo, a.Number))(t)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := got[0].String(); s != fmt.Sprintf("octo/app#%d", b.Number) {
		t.Errorf("got %s", s)
	}
}

func TestBlockersWithoutSupportByGitHub(t *testing.T) {
	t.Parallel()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) { forgetest.Answer(w, 404, m{"message": "Not Found"}) })
	if got := forgetest.Must(forgetest.New(t, gh.URL).Blockers(t.Context(), forgetest.Repo(), 3))(t); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestIssueSnapshotHasLinkedPullRequests(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	pushBranch(t, w, "closes")
	pushBranch(t, w, "mentions")
	other := w.OpenIssue(t, "Another")
	forgetest.Must(w.As("wendy").Comment(forgetest.FullName, other.Number, fmt.Sprintf("see #%d", i.Number)))(t) // no pull request
	closes := forgetest.Must(w.As("wendy").OpenPull(forgetest.FullName, simgithub.NewPull{Title: "Fix", Body: fmt.Sprintf("Fixes #%d", i.Number), Head: "closes"}))(t)
	mentions := forgetest.Must(w.As("tom").OpenPull(forgetest.FullName, simgithub.NewPull{Title: "See", Body: fmt.Sprintf("About #%d", i.Number), Head: "mentions"}))(t)
	got := map[int]forge.LinkedPR{}
	list := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t).Linked
	for _, p := range list {
		got[p.Number] = p
	}
	a, b := got[closes.Number], got[mentions.Number]
	if len(list) != 2 || !a.Closes || !a.Open || a.Merged || a.By.Login != "wendy" || a.Repo != forgetest.FullName || a.Title != "Fix" || a.URL == "" {
		t.Errorf("got %+v", list)
	}
	if b.Closes || !b.Open || b.By.Login != "tom" || b.Repo != forgetest.FullName || b.Title != "See" {
		t.Errorf("got %+v", b)
	}
}

func TestBranches(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	head := pushBranch(t, w, "errand/12-fix")
	pushBranch(t, w, "errand/2-other")
	got := forgetest.Must(w.Forge.Branches(t.Context(), w.Repo, "errand/12-"))(t)
	if diff := cmp.Diff([]forge.Branch{{Name: "errand/12-fix", SHA: head}}, got); diff != "" {
		t.Error(diff)
	}
	if got := forgetest.Must(w.Forge.Branches(t.Context(), w.Repo, "nothing/"))(t); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	big := strings.Repeat("0123456789abcde\n", 70_000)
	head := forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "side", From: "main", Message: "x", Files: map[string]string{"README.md": "changed\n", "big": big, "empty": ""}}))(t)
	tests := map[string]struct{ ref, path, want string }{
		"default branch": {"", "README.md", "# app\n"},
		"branch":         {"side", "README.md", "changed\n"},
		"commit":         {head, "dir/a.txt", "a\n"},
		"over 1 MB":      {head, "big", big},
		"empty":          {head, "empty", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			content, sha, err := w.Forge.File(t.Context(), w.Repo, tt.ref, tt.path)
			if err != nil || string(content) != tt.want || len(sha) != 40 {
				t.Errorf("got %d bytes, id %q: %v", len(content), sha, err)
			}
		})
	}
	for _, path := range []string{"nothing", "dir"} {
		if _, _, err := w.Forge.File(t.Context(), w.Repo, "", path); !errors.Is(err, forge.ErrNotFound) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestPRTemplate(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	if got := forgetest.Must(w.Forge.PRTemplate(t.Context(), w.Repo, ""))(t); got != "## Why\n" {
		t.Errorf("got %q", got)
	}
	seed := func(name string, files map[string]string) forge.Repo {
		t.Helper()
		r := forgetest.Must(w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: name, Files: files}))(t)
		return forge.Repo{Installation: w.Repo.Installation, Owner: "octo", Name: name, ID: r.ID}
	}
	bare := seed("bare", map[string]string{"x": "x"})
	if got := forgetest.Must(w.Forge.PRTemplate(t.Context(), bare, ""))(t); got != "" {
		t.Errorf("got %q", got)
	}
	docs := seed("docs", map[string]string{"docs/pull_request_template.md": "from docs\n"})
	if got := forgetest.Must(w.Forge.PRTemplate(t.Context(), docs, ""))(t); got != "from docs\n" {
		t.Errorf("got %q", got)
	}
	seed(".github", map[string]string{"PULL_REQUEST_TEMPLATE.md": "the owner's\n"})
	if got := forgetest.Must(w.Forge.PRTemplate(t.Context(), bare, ""))(t); got != "the owner's\n" {
		t.Errorf("got %q", got)
	}
}

func TestChangedSince(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	base := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	head := forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{
		Branch: "side", From: "main", Message: "x", Files: map[string]string{"README.md": "# new\n", "new.txt": "n\n"}, Delete: []string{"old.txt"},
	}))(t)
	got := forgetest.Must(w.Forge.ChangedSince(t.Context(), w.Repo, base, head))(t)
	status := map[string]string{}
	for _, c := range got.Files {
		status[c.Path] = c.Status
		if c.Path == "README.md" && !strings.Contains(c.Patch, "+# new") {
			t.Errorf("got patch %q", c.Patch)
		}
	}
	if got.AheadBy != 1 || got.BehindBy != 0 || got.MergeBase != base || got.Truncated {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff(map[string]string{"README.md": "modified", "new.txt": "added", "old.txt": "removed"}, status); diff != "" {
		t.Error(diff)
	}
	if back := forgetest.Must(w.Forge.ChangedSince(t.Context(), w.Repo, "side", "main"))(t); back.AheadBy != 0 || back.BehindBy != 1 {
		t.Errorf("got %+v", back)
	}
}
