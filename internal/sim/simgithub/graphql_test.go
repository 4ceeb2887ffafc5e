package simgithub_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// pollQuery is the query for approvals.
const pollQuery = `query($ids:[ID!]!){ nodes(ids:$ids){ __typename ... on IssueComment{ id databaseId lastEditedAt editor{login} body
    author{ login ... on Bot{ databaseId } }
    isMinimized issue{ id number state lastEditedAt updatedAt locked }
    reactions(content:THUMBS_UP, first:20, orderBy:{field:CREATED_AT,direction:DESC}){ totalCount pageInfo{ hasNextPage endCursor }
      nodes{ id content createdAt user{ databaseId login } } } } }
  rateLimit{ cost remaining resetAt limit } }`

type polled struct {
	Nodes []*struct {
		Typename     string `json:"__typename"`
		ID           string
		LastEditedAt *string
		Editor       *struct{ Login string }
		Author       struct {
			Login      string
			DatabaseID int64
		}
		IsMinimized bool
		Issue       struct{ Number int }
		Reactions   struct {
			TotalCount int
			Nodes      []struct {
				Content   string
				CreatedAt string
				User      *struct {
					Login      string
					DatabaseID int64
				}
			}
		}
	}
	RateLimit struct{ Cost, Limit, Remaining int }
}

func TestPollForApprovals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("Plan me").Number
	k, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", n, &github.IssueComment{Body: ptr("plan 1")})
	check(t, err)
	gone, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calc", n, &github.IssueComment{Body: ptr("plan 0")})
	check(t, err)
	_, err = w.bot.Issues.DeleteComment(t.Context(), "octo", "calc", gone.GetID())
	check(t, err)
	for _, login := range []string{"alice", "rob"} {
		check(t, w.Sim.As(login).React(repo, k.GetID(), "+1"))
	}
	check(t, w.Sim.As("alice").React(repo, k.GetID(), "eyes"))
	_, _, err = w.bot.Reactions.CreateIssueCommentReaction(t.Context(), "octo", "calc", k.GetID(), "+1")
	check(t, err)
	check(t, w.Sim.As("alice").EditComment(repo, k.GetID(), "plan 1, with a tick"))
	var got polled
	errs := w.graphql(pollQuery, map[string]any{"ids": []string{k.GetNodeID(), gone.GetNodeID()}}, &got)
	if len(errs) != 1 || errs[0].Type != "NOT_FOUND" || len(got.Nodes) != 2 || got.Nodes[1] != nil {
		t.Fatalf("a deleted comment is null with an error: %+v, %+v", errs, got)
	}
	if diff := cmp.Diff([]any{"nodes", 1.0}, errs[0].Path); diff != "" {
		t.Errorf("path of the error (-want +got):\n%s", diff)
	}
	c := got.Nodes[0]
	if c.Typename != "IssueComment" || c.LastEditedAt == nil || c.Editor.Login != "alice" ||
		c.Author.Login != "errand" || c.Author.DatabaseID != w.Sim.App().BotID {
		t.Errorf("got comment %+v", c)
	}
	var who []string
	for _, r := range c.Reactions.Nodes {
		if r.User == nil {
			who = append(who, "(a bot)")
			continue
		}
		who = append(who, r.User.Login)
	}
	if diff := cmp.Diff([]string{"(a bot)", "rob", "alice"}, who); diff != "" || c.Reactions.TotalCount != 3 {
		t.Errorf("got %d thumbs, newest first (-want +got):\n%s", c.Reactions.TotalCount, diff)
	}
	if got.RateLimit.Cost != 1 || got.RateLimit.Limit != 5000 || got.RateLimit.Remaining != 4999 {
		t.Errorf("got rate limit %+v", got.RateLimit)
	}
	ids := slices.Repeat([]string{k.GetNodeID()}, 101)
	if errs := w.graphql(pollQuery, map[string]any{"ids": ids}, nil); len(errs) != 1 || errs[0].Type != "ARGUMENT_LIMIT" {
		t.Errorf("101 ids: %+v", errs)
	}
}

func TestReactionsArePagedByCursor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("Popular").Number
	k, err := w.Owner.Comment(repo, n, "vote")
	check(t, err)
	for _, login := range strings.Fields("a b c d e") {
		check(t, w.Sim.As(login).React(repo, k.ID, "+1"))
	}
	var seen []string
	var after *string
	for range 5 {
		var out struct {
			Node struct {
				Reactions struct {
					PageInfo struct {
						HasNextPage bool
						EndCursor   *string
					}
					Nodes []struct{ User struct{ Login string } }
				}
			}
		}
		errs := w.graphql(`query($id:ID!,$after:String){ node(id:$id){ ... on IssueComment{ reactions(first:2, after:$after){
			pageInfo{ hasNextPage endCursor } nodes{ user{ login } } } } } }`, map[string]any{"id": k.NodeID, "after": after}, &out)
		if len(errs) != 0 {
			t.Fatalf("got %+v", errs)
		}
		for _, r := range out.Node.Reactions.Nodes {
			seen = append(seen, r.User.Login)
		}
		after = out.Node.Reactions.PageInfo.EndCursor
		if !out.Node.Reactions.PageInfo.HasNextPage {
			break
		}
	}
	if diff := cmp.Diff(strings.Fields("a b c d e"), seen); diff != "" {
		t.Errorf("all pages (-want +got):\n%s", diff)
	}
}

func TestMinimizeAndReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Issue("Old plan").Number
	k, err := w.Owner.Comment(repo, n, "old")
	check(t, err)
	minimize := `mutation($id:ID!){ minimizeComment(input:{subjectId:$id, classifier:OUTDATED}){ minimizedComment{ isMinimized minimizedReason } } }`
	if errs := w.graphql(minimize, map[string]any{"id": k.NodeID}, nil); len(errs) != 0 {
		t.Fatalf("minimize: %+v", errs)
	}
	i, err := w.Owner.Issue(repo, n)
	check(t, err)
	if !i.Comments[0].Minimized || i.Comments[0].MinimizedReason != "outdated" {
		t.Errorf("got comment %+v", i.Comments[0])
	}
	if errs := w.graphql(minimize, map[string]any{"id": "IC_nonsense"}, nil); len(errs) != 1 || errs[0].Type != "NOT_FOUND" {
		t.Errorf("minimize nothing: %+v", errs)
	}
	p := w.Pull("octo", "fix", map[string]string{"a": "a\n"}, "Closes #1")
	root, err := w.Sim.As("alice").CommentOnLine(repo, p.Number, simgithub.NewReviewComment{Path: "a", Line: 1, Body: "hm"})
	check(t, err)
	id := w.threads(p.Number)[0].ID
	errs := w.graphql(`mutation($id:ID!){ addPullRequestReviewThreadReply(input:{pullRequestReviewThreadId:$id, body:"Changed."}){ comment{ databaseId replyTo{ databaseId } } } }`,
		map[string]any{"id": id}, nil)
	if len(errs) != 0 {
		t.Fatalf("reply: %+v", errs)
	}
	got := w.threads(p.Number)[0].Comments.Nodes
	if len(got) != 2 || got[1].Body != "Changed." || got[1].Author.Login != "errand" || got[0].DatabaseID != root.ID {
		t.Errorf("got thread %+v", got)
	}
}

func TestReadingByGraphQL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("One")
	p := w.Pull("octo", "fix", map[string]string{"a": "a\n"}, "Closes #1")
	var out struct {
		Repository struct {
			PullRequest struct {
				ClosingIssuesReferences struct{ Nodes []struct{ Number int } }
				Mergeable               string
			}
			Ref    struct{ Target struct{ Oid string } }
			Object struct{ Text string }
		}
	}
	read := func() []gqlError {
		return w.graphql(`query($n:Int!){ repository(owner:"octo",name:"calc"){ pullRequest(number:$n){ mergeable closingIssuesReferences(first:5){ nodes{ number } } }
		ref(qualifiedName:"refs/heads/fix"){ target{ oid } } object(expression:"fix:a"){ ... on Blob{ text } } } }`, map[string]any{"n": p.Number}, &out)
	}
	if errs := read(); len(errs) != 0 || out.Repository.PullRequest.Mergeable != "UNKNOWN" {
		t.Errorf("got %+v, at first %s", errs, out.Repository.PullRequest.Mergeable)
	}
	errs := read()
	if len(errs) != 0 || out.Repository.PullRequest.ClosingIssuesReferences.Nodes[0].Number != 1 ||
		out.Repository.Ref.Target.Oid != w.head("fix") || out.Repository.Object.Text != "a\n" || out.Repository.PullRequest.Mergeable != "MERGEABLE" {
		t.Errorf("got %+v %+v", errs, out)
	}
}

func TestGraphQLPermissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "other", Name: "secret", Private: true, NotInstalled: true})
	check(t, err)
	i, err := w.Sim.As("other").OpenIssue("other/secret", simgithub.NewIssue{Title: "hidden"})
	check(t, err)
	for _, id := range []string{secret.NodeID, i.NodeID} {
		if errs := w.graphql(`query($id:ID!){ node(id:$id){ id } }`, map[string]any{"id": id}, nil); len(errs) != 1 || errs[0].Type != "NOT_FOUND" {
			t.Errorf("a hidden node: %+v", errs)
		}
	}
	w.Sim.GrantPermissions("octo", map[string]string{"metadata": "read", "contents": "read"})
	w.Settled()
	w.Issue("Not for this App")
	if got := w.Settled(); len(got) != 0 {
		t.Errorf("events that the App may not see: %v", got)
	}
	w.Sim.ExpireTokens()
	w.clients()
	state, _ := w.Sim.Snapshot().Repo(repo)
	errs := w.graphql(`mutation($in:UpdateRefsInput!){ updateRefs(input:$in){ clientMutationId } }`, map[string]any{"in": map[string]any{
		"repositoryId": state.NodeID, "refUpdates": []map[string]any{{"name": "refs/heads/x", "afterOid": w.head("main")}},
	}}, nil)
	if len(errs) != 1 || errs[0].Type != "FORBIDDEN" {
		t.Errorf("moving a reference with read: %+v", errs)
	}
}
