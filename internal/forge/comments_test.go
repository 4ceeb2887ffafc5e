package forge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// issueOf reads the issue's title from a webhook's payload.
func issueOf(t *testing.T, payload []byte) string {
	t.Helper()
	var p struct {
		Issue struct {
			Title string `json:"title"`
		} `json:"issue"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		t.Fatal(err)
	}
	return p.Issue.Title
}

func TestCommentIsCreatedEditedAndDeleted(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	posted := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, n, "first"))(t)
	if posted.ID == 0 || posted.Node == "" || posted.URL == "" || posted.CreatedAt.IsZero() || posted.Body != "first" {
		t.Errorf("got %+v", posted)
	}
	fresh := forgetest.Must(w.Forge.Comment(t.Context(), w.Repo, posted.ID))(t)
	if fresh.ID != posted.ID || fresh.Author.ID != w.App().BotID || fresh.Author.Login != "errand[bot]" || !fresh.Author.Bot || fresh.Editor != nil || !fresh.EditedAt.IsZero() {
		t.Errorf("got %+v", fresh)
	}
	forgetest.Must(w.Forge.EditComment(t.Context(), w.Repo, posted.ID, "second"))(t)
	if err := w.Forge.Minimize(t.Context(), w.Repo.Installation, posted.Node); err != nil {
		t.Fatal(err)
	}
	fresh = forgetest.Must(w.Forge.Comment(t.Context(), w.Repo, posted.ID))(t)
	if fresh.Body != "second" || fresh.Editor == nil || fresh.Editor.ID != w.App().BotID || fresh.EditedAt.IsZero() || !fresh.Minimized {
		t.Errorf("got %+v", fresh)
	}
	for range 2 {
		if err := w.Forge.DeleteComment(t.Context(), w.Repo, posted.ID); err != nil {
			t.Error(err)
		}
	}
	if _, err := w.Forge.Comment(t.Context(), w.Repo, posted.ID); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := w.Forge.Minimize(t.Context(), w.Repo.Installation, posted.Node); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestFindComments(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	const marker = "<!-- errand:post-1 -->"
	forgetest.Must(w.As("sam").Comment(forgetest.FullName, n, "a copied "+marker))(t)
	find := func() *forge.Comment {
		t.Helper()
		list := forgetest.Must(w.Forge.FindComments(t.Context(), w.Repo, n, marker, time.Time{}))(t)
		if len(list) == 0 {
			return nil
		}
		return &list[0]
	}
	if got := find(); got != nil {
		t.Errorf("found a comment of another author: %+v", got)
	}
	forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, n, "another <!-- errand:post-12 -->"))(t)
	mine := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, n, "mine\n"+marker))(t)
	duplicate := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, n, "duplicate\n"+marker))(t)
	if got := find(); got == nil || got.ID != mine.ID {
		t.Errorf("got %+v", got)
	}
	list := forgetest.Must(w.Forge.FindComments(t.Context(), w.Repo, n, marker, mine.CreatedAt.Add(-time.Minute)))(t)
	if len(list) != 2 || list[1].ID != duplicate.ID {
		t.Errorf("got %+v", list)
	}
	if got := forgetest.Must(w.Forge.FindComments(t.Context(), w.Repo, n, marker, time.Now().Add(time.Hour)))(t); len(got) > 0 {
		t.Errorf("found %+v, created before the given time", got)
	}
}

func TestCommentIsFoundAfterUnknownOutcome(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	forgetest.Must(w.Forge.Self(t.Context()))(t)
	w.Inject(t, simgithub.Fault{Method: "POST", Path: "/comments$", Count: 1, After: true, Cut: true})
	_, err := w.Forge.CreateComment(t.Context(), w.Repo, n, "hello <!-- errand:k -->")
	if class, _ := forge.Classify(err); class != forge.ClassUnknown {
		t.Fatalf("got class %s: %v", class, err)
	}
	if got := forgetest.Must(w.Forge.FindComments(t.Context(), w.Repo, n, "<!-- errand:k -->", time.Time{}))(t); len(got) != 1 {
		t.Error("the comment was not found")
	}
}

func TestIssueSnapshotHasAllComments(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	const many = 103 // more than one page
	var last *simgithub.Comment
	for i := range many {
		last = forgetest.Must(w.As("sam").Comment(forgetest.FullName, n, fmt.Sprintf("number %d", i)))(t)
	}
	if err := w.As("wendy").EditComment(forgetest.FullName, last.ID, "number 102, edited"); err != nil {
		t.Fatal(err)
	}
	if err := w.As("wendy").React(forgetest.FullName, last.ID, "+1"); err != nil {
		t.Fatal(err)
	}
	list := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, n, ".errand.yml"))(t).Comments
	if len(list) != many {
		t.Fatalf("%d comments, want %d", len(list), many)
	}
	for i, c := range list[:many-1] {
		if c.Body != fmt.Sprintf("number %d", i) || c.Author.Login != "sam" || c.Editor != nil || len(c.ThumbsUp) != 0 {
			t.Fatalf("comment %d: got %+v", i, c)
		}
	}
	c := list[many-1]
	if c.ID != last.ID || c.Body != "number 102, edited" || c.Editor == nil || c.Editor.Login != "wendy" || c.EditedAt.IsZero() {
		t.Errorf("got %+v", c)
	}
	if len(c.ThumbsUp) != 1 || c.ThumbsUp[0].By.ID != w.AddUser("wendy").ID || c.ThumbsUp[0].At.IsZero() {
		t.Errorf("got reactions %+v", c.ThumbsUp)
	}
}

func TestCommentsOnPullRequest(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	theirs := forgetest.Must(w.As("wendy").Comment(forgetest.FullName, p.Number, "hm"))(t)
	ours := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, p.Number, "ours <!-- errand:r1 -->"))(t)
	if got := forgetest.Must(w.Forge.Comment(t.Context(), w.Repo, theirs.ID))(t); got.Body != "hm" || got.Author.Login != "wendy" {
		t.Errorf("got %+v", got)
	}
	if found := forgetest.Must(w.Forge.FindComments(t.Context(), w.Repo, p.Number, "<!-- errand:r1 -->", ours.CreatedAt))(t); len(found) != 1 || found[0].ID != ours.ID {
		t.Errorf("got %+v", found)
	}
	if err := w.Forge.React(t.Context(), w.Repo, forge.Target{Kind: forge.TargetIssue, ID: int64(p.Number)}, "rocket"); err != nil {
		t.Error(err)
	}
	if i := forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, p.Number))(t); !i.IsPR {
		t.Errorf("got %+v", i)
	}
}

// TestCommentsSinceReportsEdits checks that a comment has EditedAt if and only if it was updated after its creation,
// and that comments from before the given time are omitted although GitHub lists them when they are updated.
func TestCommentsSinceReportsEdits(t *testing.T) {
	t.Parallel()
	created, edited := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
		forgetest.Answer(w, 200, []m{
			{"id": 1, "created_at": created.Add(-time.Hour), "updated_at": edited},
			{"id": 2, "created_at": created, "updated_at": created},
			{"id": 3, "created_at": created, "updated_at": edited},
		})
	})
	list := forgetest.Must(forgetest.New(t, gh.URL).CommentsSince(t.Context(), forgetest.Repo(), 1, created))(t)
	if len(list) != 2 || list[0].ID != 2 || !list[0].EditedAt.IsZero() || list[1].ID != 3 || !list[1].EditedAt.Equal(edited) {
		t.Errorf("got %+v", list)
	}
}

// TestPollOf100CommentsCostsOnePoint checks that a poll of 100 comments is one request of one point: each comment has
// one connection, and GitHub divides the number of connections by 100.
func TestPollOf100CommentsCostsOnePoint(t *testing.T) {
	t.Parallel()
	var requests []string
	w := forgetest.NewWorld(t, func(c *forge.Config) {
		next := c.Transport
		c.Transport = forgetest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if strings.HasSuffix(req.URL.Path, "/graphql") {
				body, err := req.GetBody()
				if err != nil {
					return nil, err
				}
				text, err := io.ReadAll(body)
				if err != nil {
					return nil, err
				}
				requests = append(requests, string(text))
			}
			return next.RoundTrip(req)
		})
	})
	issue := w.OpenIssue(t, "A bug")
	var nodes []string
	for i := range 100 {
		nodes = append(nodes, forgetest.Must(w.As("sam").Comment(forgetest.FullName, issue.Number, fmt.Sprint(i)))(t).NodeID)
	}
	if got := forgetest.Must(w.Forge.PollReactions(forge.WithPurpose(t.Context(), forge.ForPoll), w.Repo.Installation, nodes))(t); got.Cost != 1 {
		t.Errorf("got cost %d points", got.Cost)
	}
	if len(requests) != 1 || strings.Count(requests[0], "reactions(")-strings.Count(requests[0], "... on ") != 0 || strings.Count(requests[0], "first:") != strings.Count(requests[0], "reactions(") {
		t.Errorf("%d requests: %s", len(requests), requests)
	}
}

func TestPollReactions(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	issue := w.OpenIssue(t, "A bug")
	n := issue.Number
	var nodes []string
	var ids []int64
	for i := range 102 {
		c := forgetest.Must(w.As("sam").Comment(forgetest.FullName, n, fmt.Sprint(i)))(t)
		nodes, ids = append(nodes, c.NodeID), append(ids, c.ID)
	}
	for i := range 25 { // a crowd in front of wendy, and one after her
		react(t, w, fmt.Sprintf("fan%d", i), ids[0])
	}
	react(t, w, "wendy", ids[0])
	react(t, w, "rita", ids[101])
	if err := w.As("wendy").ReactToIssue(forgetest.FullName, n, "+1"); err != nil {
		t.Fatal(err)
	}
	if err := w.As("sam").DeleteComment(forgetest.FullName, ids[5]); err != nil {
		t.Fatal(err)
	}
	got := forgetest.Must(w.Forge.PollReactions(t.Context(), w.Repo.Installation, append(nodes, issue.NodeID)))(t)
	if diff := cmp.Diff([]string{nodes[5]}, got.Deleted); diff != "" {
		t.Error(diff)
	}
	if len(got.Reactions) != 3 || len(got.Reactions[nodes[0]]) != 26 || len(got.Reactions[nodes[101]]) != 1 || len(got.Reactions[issue.NodeID]) != 1 {
		t.Errorf("got %d things, %d 👍 on the first", len(got.Reactions), len(got.Reactions[nodes[0]]))
	}
	if !slices.ContainsFunc(got.Reactions[nodes[0]], func(k forge.Reaction) bool { return k.By.Login == "wendy" && k.By.ID == w.AddUser("wendy").ID }) {
		t.Error("wendy's 👍 is missing")
	}
	if got.Cost < 1 || got.Remaining < 1 {
		t.Errorf("got cost %d, remaining %d", got.Cost, got.Remaining)
	}
}

func react(t *testing.T, w *forgetest.World, login string, comment int64) {
	t.Helper()
	if err := w.As(login).React(forgetest.FullName, comment, "+1"); err != nil {
		t.Fatal(err)
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	n := w.OpenIssue(t, "A bug").Number
	c := forgetest.Must(w.As("sam").Comment(forgetest.FullName, n, "hi"))(t)
	if err := w.As("sam").React(forgetest.FullName, c.ID, "eyes"); err != nil {
		t.Fatal(err)
	}
	for _, target := range []forge.Target{{Kind: forge.TargetIssue, ID: int64(n)}, {Kind: forge.TargetComment, ID: c.ID}} {
		count := func() int {
			i := forgetest.Must(w.As("octo").Issue(forgetest.FullName, n))(t)
			if target.Kind == forge.TargetIssue {
				return len(i.Reactions)
			}
			return len(i.Comments[0].Reactions) - 1 // sam's
		}
		for range 2 {
			if err := w.Forge.React(t.Context(), w.Repo, target, "eyes"); err != nil {
				t.Fatal(err)
			}
		}
		if count() != 1 {
			t.Errorf("%d reactions of the App on the %s", count(), target.Kind)
		}
	}
	for range 2 { // sam's reaction stays
		if err := w.Forge.Unreact(t.Context(), w.Repo, forge.Target{Kind: forge.TargetComment, ID: c.ID}, "eyes"); err != nil {
			t.Fatal(err)
		}
		if got := forgetest.Must(w.As("octo").Issue(forgetest.FullName, n))(t).Comments[0].Reactions; len(got) != 1 || got[0].User != "sam" {
			t.Errorf("got reactions %v, want sam's only", got)
		}
	}
}
