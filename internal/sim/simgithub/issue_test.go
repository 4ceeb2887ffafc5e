package simgithub_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

func TestIssueLifeThroughGoGitHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settled()
	alice := w.human("alice")
	ctx := t.Context()
	i, _, err := alice.Issues.Create(ctx, "octo", "calc", &github.IssueRequest{
		Title: ptr("Add is wrong"), Body: ptr("2+2=0"), Labels: &[]string{"bug"}, Assignees: &[]string{"alice", "rob", "errand[bot]", "stranger"},
	})
	check(t, err)
	if diff := cmp.Diff([]string{"alice", "rob"}, logins(i.Assignees)); diff != "" {
		t.Errorf("bots and strangers are silently not assigned (-want +got):\n%s", diff)
	}
	k, _, err := w.bot.Issues.CreateComment(ctx, "octo", "calc", i.GetNumber(), &github.IssueComment{Body: ptr("Hello")})
	check(t, err)
	if k.GetUser().GetLogin() != "errand[bot]" || k.GetUser().GetType() != "Bot" || k.GetUser().GetID() != w.Sim.App().BotID {
		t.Errorf("got comment by %v", k.GetUser())
	}
	_, _, err = w.bot.Issues.EditComment(ctx, "octo", "calc", k.GetID(), &github.IssueComment{Body: ptr("Hello again")})
	check(t, err)
	_, _, err = w.bot.Issues.RemoveAssignees(ctx, "octo", "calc", i.GetNumber(), []string{"rob"})
	check(t, err)
	_, _, err = alice.Issues.Edit(ctx, "octo", "calc", i.GetNumber(), &github.IssueRequest{State: ptr("closed")})
	check(t, err)
	want := []string{
		"issues.opened", "issues.labeled", "issues.assigned", "issues.assigned", "issue_comment.created",
		"issue_comment.edited", "issues.unassigned", "issues.closed",
	}
	if diff := cmp.Diff(want, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	got, _, err := w.bot.Issues.Get(ctx, "octo", "calc", i.GetNumber())
	check(t, err)
	if got.GetState() != "closed" || got.GetStateReason() != "completed" || got.GetComments() != 1 {
		t.Errorf("got issue %s, %s, with %d comments", got.GetState(), got.GetStateReason(), got.GetComments())
	}
}

func logins(users []*github.User) []string {
	var out []string
	for _, u := range users {
		out = append(out, u.GetLogin())
	}
	return out
}

func TestActsNeedPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("One").Number
	theirs, err := w.Owner.Comment(repo, n, "by the owner")
	check(t, err)
	for name, c := range map[string]struct {
		as   string
		act  func(p simgithub.Person) error
		want int
	}{
		"a reader comments":             {"rob", func(p simgithub.Person) error { _, err := p.Comment(repo, n, "hi"); return err }, 0},
		"a reader may not label":        {"rob", func(p simgithub.Person) error { return p.AddLabels(repo, n, "x") }, 403},
		"triage labels":                 {"tina", func(p simgithub.Person) error { return p.AddLabels(repo, n, "x") }, 0},
		"triage may not edit a comment": {"tina", func(p simgithub.Person) error { return p.EditComment(repo, theirs.ID, "no") }, 403},
		"a writer edits any comment":    {"alice", func(p simgithub.Person) error { return p.EditComment(repo, theirs.ID, "yes") }, 0},
		"a writer may not set roles":    {"alice", func(p simgithub.Person) error { return p.SetPermission(repo, "rob", "admin") }, 403},
		"no such issue":                 {"alice", func(p simgithub.Person) error { return p.AddLabels(repo, 999, "x") }, 404},
		"no such reaction":              {"alice", func(p simgithub.Person) error { return p.React(repo, theirs.ID, "meh") }, 422},
		"a stranger reacts on public":   {"eve", func(p simgithub.Person) error { return p.React(repo, theirs.ID, "+1") }, 0},
		"a stranger may not push": {"eve", func(p simgithub.Person) error {
			_, err := p.PushCommit(repo, simgithub.Commit{Branch: "x"})
			return err
		}, 403},
		"a blank comment": {"alice", func(p simgithub.Person) error { _, err := p.Comment(repo, n, " \n"); return err }, 422},
		"a comment that is too long": {"alice", func(p simgithub.Person) error {
			_, err := p.Comment(repo, n, strings.Repeat("x", 70000))
			return err
		}, 422},
	} {
		t.Run(name, func(t *testing.T) {
			if got := status(c.act(w.Sim.As(c.as))); got != c.want {
				t.Errorf("got status %d, want %d", got, c.want)
			}
		})
	}
}

func TestPrivateRepositoriesAreHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "other", Name: "secret", Private: true, NotInstalled: true})
	check(t, err)
	for name, c := range map[string]struct {
		client *github.Client
		want   int
	}{
		"its owner": {w.human("other"), 0}, "a stranger": {w.human("eve"), 404}, "the App elsewhere": {w.bot, 404},
		"nobody": {w.client(nil), 404}, "a bad token": {w.client(nil).WithAuthToken("ghp_nonsense"), 401},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := c.client.Repositories.Get(t.Context(), "other", "secret")
			if got := status(err); got != c.want {
				t.Errorf("got status %d, want %d", got, c.want)
			}
		})
	}
}

func TestLockedConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("Heated").Number
	check(t, w.Owner.Lock(repo, n, "too heated"))
	if _, err := w.Sim.As("rob").Comment(repo, n, "still here"); status(err) != 403 {
		t.Errorf("a reader comments on a locked issue: %v", err)
	}
	if _, err := w.Sim.As("alice").Comment(repo, n, "calm down"); err != nil {
		t.Errorf("a writer comments on a locked issue: %v", err)
	}
}

func TestListsAreFilteredSortedAndPaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, title := range []string{"a", "b", "c", "d", "e"} {
		w.Issue(title)
	}
	check(t, w.Owner.AddLabels(repo, 2, "Ready"))
	check(t, w.Owner.Assign(repo, 3, "alice"))
	check(t, w.Owner.Close(repo, 4, "not_planned"))
	numbers := func(o *github.IssueListByRepoOptions) []int {
		t.Helper()
		var out []int
		for {
			list, resp, err := w.bot.Issues.ListByRepo(t.Context(), "octo", "calc", o)
			check(t, err)
			for _, i := range list {
				out = append(out, i.GetNumber())
			}
			if resp.NextPage == 0 {
				return out
			}
			o.Page = resp.NextPage
		}
	}
	for name, c := range map[string]struct {
		o    github.IssueListByRepoOptions
		want []int
	}{
		"open, newest first, in pages": {github.IssueListByRepoOptions{ListOptions: github.ListOptions{PerPage: 2}}, []int{5, 3, 2, 1}},
		"all, oldest first":            {github.IssueListByRepoOptions{State: "all", Direction: "asc"}, []int{1, 2, 3, 4, 5}},
		"by label without case":        {github.IssueListByRepoOptions{Labels: []string{"ready"}}, []int{2}},
		"by assignee":                  {github.IssueListByRepoOptions{Assignee: "alice"}, []int{3}},
		"closed":                       {github.IssueListByRepoOptions{State: "closed"}, []int{4}},
	} {
		if diff := cmp.Diff(c.want, numbers(&c.o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHistoryOfAnIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.Issue("First"), w.Issue("Second")
	check(t, w.Owner.EditIssue(repo, first.Number, simgithub.IssueEdit{Title: ptr("First, renamed"), Body: ptr("new text")}))
	check(t, w.Owner.AddLabels(repo, first.Number, "bug"))
	_, err := w.Owner.Comment(repo, second.Number, "see #1")
	check(t, err)
	events, _, err := w.bot.Issues.ListIssueEvents(t.Context(), "octo", "calc", first.Number, nil)
	check(t, err)
	var got []string
	for _, e := range events {
		got = append(got, e.GetEvent())
	}
	if diff := cmp.Diff([]string{"renamed", "labeled"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	timeline, _, err := w.bot.Issues.ListIssueTimeline(t.Context(), "octo", "calc", first.Number, nil)
	check(t, err)
	var source int
	for _, e := range timeline {
		if e.GetEvent() == "cross-referenced" {
			source = e.Source.Issue.GetNumber()
		}
	}
	if source != second.Number {
		t.Errorf("got cross-reference from #%d, want #%d", source, second.Number)
	}
	snap, ok := w.Sim.Snapshot().Repo(repo)
	if !ok || len(snap.Issues[1].Edits) != 1 || snap.Issues[1].Edits[0].From != "It is broken." {
		t.Errorf("the edit is not in the history: %+v", snap.Issues[1].Edits)
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("Vote").Number
	k, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", n, &github.IssueComment{Body: ptr("plan")})
	check(t, err)
	w.Settled()
	alice := w.human("alice")
	one, resp, err := alice.Reactions.CreateIssueCommentReaction(t.Context(), "octo", "calc", k.GetID(), "+1")
	check(t, err)
	again, resp2, err := alice.Reactions.CreateIssueCommentReaction(t.Context(), "octo", "calc", k.GetID(), "+1")
	check(t, err)
	if resp.StatusCode != 201 || resp2.StatusCode != 200 || one.GetID() != again.GetID() {
		t.Errorf("adding the same reaction twice: got %d, %d, ids %d and %d", resp.StatusCode, resp2.StatusCode, one.GetID(), again.GetID())
	}
	_, err = w.bot.Reactions.DeleteIssueCommentReaction(t.Context(), "octo", "calc", k.GetID(), one.GetID())
	if status(err) != 403 {
		t.Errorf("removing another account's reaction: got %v", err)
	}
	got, _, err := w.bot.Issues.GetComment(t.Context(), "octo", "calc", k.GetID())
	check(t, err)
	if got.Reactions.GetPlusOne() != 1 || !got.GetUpdatedAt().Equal(k.GetUpdatedAt()) {
		t.Errorf("got %d reactions, want 1 and an unchanged updated_at", got.Reactions.GetPlusOne())
	}
	if hooks := w.Settled(); len(hooks) != 0 {
		t.Errorf("reactions sent webhooks: %v", hooks)
	}
}

func TestDependenciesAndSubIssues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.Issue("First"), w.Issue("Second")
	w.Settled()
	check(t, w.Owner.AddBlockedBy(repo, first.Number, second.ID))
	check(t, w.Owner.AddSubIssue(repo, first.Number, second.ID))
	want := []string{
		"issue_dependencies.blocked_by_added", "issue_dependencies.blocking_added",
		"sub_issues.sub_issue_added", "sub_issues.parent_issue_added",
	}
	if diff := cmp.Diff(want, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if err := w.Owner.AddBlockedBy(repo, second.Number, first.ID); status(err) != 422 {
		t.Errorf("circular dependencies: %v", err)
	}
	req, err := w.bot.NewRequest("GET", "repos/octo/calc/issues/1/dependencies/blocked_by", nil)
	check(t, err)
	var list []*github.Issue
	_, err = w.bot.Do(t.Context(), req, &list)
	check(t, err)
	if len(list) != 1 || list[0].GetID() != second.ID {
		t.Errorf("got blockers %v", list)
	}
}
