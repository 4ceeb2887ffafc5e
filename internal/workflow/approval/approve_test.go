package approval_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by   string
		via  state.ApprovalVia
		act  func(w *workflowtest.World, p *state.Plan) error
		want string // reason of the refusal; empty: approved
	}{
		"a 👍 by a writer": {"bob", state.ViaReaction, func(w *workflowtest.World, p *state.Plan) error {
			return w.As("bob").React(workflowtest.RepoName, p.Comment, "+1")
		}, ""},
		"a command by an admin": {"ada", state.ViaCommand, nil, ""},
		"a tick": {"bob", state.ViaBox, func(w *workflowtest.World, p *state.Plan) error {
			return w.As("bob").EditComment(workflowtest.RepoName, p.Comment, workflowtest.Ticked(w, p))
		}, ""},
		"by a user without write access": {"eve", state.ViaReaction, func(w *workflowtest.World, p *state.Plan) error {
			return w.As("eve").React(workflowtest.RepoName, p.Comment, "+1")
		}, state.RejectedNoPermission},
		"by triage": {"errand-bot", state.ViaCommand, nil, state.RejectedNoPermission},
		"by a bot":  {"ci[bot]", state.ViaCommand, nil, state.RejectedBot},
		"lost the permission": {"bob", state.ViaCommand, func(w *workflowtest.World, _ *state.Plan) error {
			return w.Ada.SetPermission(workflowtest.RepoName, "bob", simgithub.RoleRead)
		}, state.RejectedNoPermission},
		"renamed meanwhile": {"bob", state.ViaCommand, func(w *workflowtest.World, _ *state.Plan) error { return w.RenameUser("bob", "robert") }, state.RejectedNoPermission}, // refused in doubt
		"the login now belongs to another account": {"bob", state.ViaCommand, func(w *workflowtest.World, _ *state.Plan) error {
			if err := w.Ada.SetPermission(workflowtest.RepoName, "bob", simgithub.RoleRead); err != nil {
				return err
			}
			if err := w.RenameUser("bob", "robert"); err != nil {
				return err
			}
			w.AddUser("bob")
			return w.Ada.SetPermission(workflowtest.RepoName, "bob", simgithub.RoleAdmin)
		}, state.RejectedNoPermission},
		"the plan was edited": {"ada", state.ViaCommand, func(w *workflowtest.World, p *state.Plan) error {
			return w.As("bob").EditComment(workflowtest.RepoName, p.Comment, strings.Replace(workflowtest.Ticked(w, p), "Do it.", "Do more.", 1))
		}, state.RejectedPlanEdited},
		"the plan was deleted": {"ada", state.ViaCommand, func(w *workflowtest.World, p *state.Plan) error {
			return w.Ada.DeleteComment(workflowtest.RepoName, p.Comment)
		}, state.RejectedPlanDeleted},
		"the title changed": {"ada", state.ViaCommand, func(w *workflowtest.World, _ *state.Plan) error {
			return w.Ada.EditIssue(workflowtest.RepoName, 1, simgithub.IssueEdit{Title: workflowtest.Ptr("Other")})
		}, state.RejectedIssueChanged},
		"the text changed": {"ada", state.ViaCommand, func(w *workflowtest.World, _ *state.Plan) error {
			return w.Ada.EditIssue(workflowtest.RepoName, 1, simgithub.IssueEdit{Body: workflowtest.Ptr("Other")})
		}, state.RejectedIssueChanged},
		"the issue is closed": {"ada", state.ViaCommand, func(w *workflowtest.World, _ *state.Plan) error { return w.Ada.Close(workflowtest.RepoName, 1, "") }, state.RejectedIssueClosed},
		"the 👍 was removed":   {"ada", state.ViaReaction, nil, state.RejectedRevoked},
		"another's 👍": {"ada", state.ViaReaction, func(w *workflowtest.World, p *state.Plan) error {
			return w.As("bob").React(workflowtest.RepoName, p.Comment, "+1")
		}, state.RejectedRevoked},
		"a 👎": {"ada", state.ViaReaction, func(w *workflowtest.World, p *state.Plan) error {
			return w.Ada.React(workflowtest.RepoName, p.Comment, "-1")
		}, state.RejectedRevoked},
		"a 👍 before the plan": {"ada", state.ViaReaction, func(w *workflowtest.World, p *state.Plan) error {
			p.PostedAt = p.PostedAt.Add(time.Hour)
			return w.Ada.React(workflowtest.RepoName, p.Comment, "+1")
		}, state.RejectedRevoked},
		"of an unknown revision": {"ada", state.ViaCommand, func(w *workflowtest.World, p *state.Plan) error { p.Hash = "ffffffff"; return nil }, state.RejectedSuperseded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.AddBot("ci[bot]")
			p := w.Planned(state.PlanPreliminary)
			k := w.Candidate(p, c.by, c.via)
			if c.act != nil {
				workflowtest.Check(t, c.act(w, p))
			}
			e, err := w.Approve(k)
			workflowtest.Check(t, err)
			want := event.KindApprovalRejected
			if c.want == "" {
				want = event.KindApproved
			}
			if e.Kind() != want || event.Of[event.ApprovalRejected](e).Rejection != c.want || e.Candidate() == nil || e.Candidate().By.ID != k.By.ID {
				t.Errorf("got %s (%s), candidate %+v; want %s (%s)", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, e.Candidate(), want, c.want)
			}
			if c.want == "" && !e.Candidate().Permission.CanWrite() {
				t.Errorf("got permission %q", e.Candidate().Permission)
			}
		})
	}
}

// TestApproveDecidesNothingWithoutAnAnswer: while GitHub does not answer, an approval is neither accepted nor refused.
func TestApproveDecidesNothingWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"permission": "/collaborators/", "comment, issue and reactions": "/graphql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanPreliminary)
			workflowtest.Check(t, w.Ada.React(workflowtest.RepoName, p.Comment, "+1"))
			k := w.Candidate(p, "ada", state.ViaReaction)
			w.MustFault(simgithub.Fault{Path: path, Status: http.StatusBadGateway})
			e, err := w.Approve(k)
			if err == nil {
				t.Fatalf("got event %s (%s) without an answer", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection)
			}
			workflowtest.WantProblem(t, err, "github", false)
			w.ClearFaults()
			if e, err = w.Approve(k); err != nil || e.Kind() != event.KindApproved {
				t.Errorf("after the answer: got %s (%s), error %v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, err)
			}
		})
	}
}

// TestTickWaitsUntilItsCommentIsKnown: a tick in a plan's comment that the store does not know yet counts once it does;
// a tick in a second copy of the comment does not count.
func TestTickWaitsUntilItsCommentIsKnown(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	p := w.Planned(state.PlanPreliminary)
	workflowtest.Check(t, w.As("bob").EditComment(workflowtest.RepoName, p.Comment, workflowtest.Ticked(w, p)))
	k := w.Candidate(p, "bob", state.ViaBox)
	known := *p
	p.Comment, p.CommentNode, p.PostedAt, p.BodyHash = 0, "", time.Time{}, ""
	if e, err := w.Approve(k); err == nil {
		t.Fatalf("got %s (%s) before the comment is known", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection)
	}
	*p = known
	if e, err := w.Approve(k); err != nil || e.Kind() != event.KindApproved {
		t.Fatalf("got %s (%s), %v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, err)
	}
	k.Comment++
	if e, err := w.Approve(k); err != nil || e.Kind() != event.KindApprovalRejected || event.Of[event.ApprovalRejected](e).Rejection != state.RejectedUnticked {
		t.Errorf("in a second copy: got %s (%s), %v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, err)
	}
}

func TestUntick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(body string) string
		want func(before, edited string) string
	}{
		"a tick is removed":         {func(s string) string { return strings.Replace(s, "- [ ]", "- [x]", 1) }, func(before, _ string) string { return before }},
		"an edit by a person stays": {func(s string) string { return strings.Replace(s, "- [ ]", "- [x]", 1) + "\nmine" }, func(_, edited string) string { return edited }},
		"nothing ticked":            {func(s string) string { return s }, func(before, _ string) string { return before }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanPreliminary)
			before := w.Ours(1)[0]
			edited := c.edit(before)
			if edited != before {
				workflowtest.Check(t, w.Ada.EditComment(workflowtest.RepoName, p.Comment, edited))
			}
			edits := len(w.Issue().Comments[0].Edits)
			for range 2 {
				w.Do(state.JobUntick, workflowtest.Args(state.JobArgs{Comment: p.Comment}))
			}
			got := w.Issue().Comments[0]
			if want := c.want(before, edited); got.Body != want {
				t.Errorf("comment is\n%s\nwant\n%s", got.Body, want)
			}
			if n := len(got.Edits) - edits; n > 1 {
				t.Errorf("got %d edits by errand", n)
			}
		})
	}
	w := workflowtest.New(t)
	p := w.Planned(state.PlanPreliminary)
	workflowtest.Check(t, w.Ada.DeleteComment(workflowtest.RepoName, p.Comment))
	w.Do(state.JobUntick, workflowtest.Args(state.JobArgs{Comment: p.Comment}))
	w.Do(state.JobMinimize, workflowtest.Args(state.JobArgs{Node: p.CommentNode}))
	w.Do(state.JobMinimize)
}

func TestMinimize(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	p := w.Planned(state.PlanPreliminary)
	for range 2 {
		w.Do(state.JobMinimize, workflowtest.Args(state.JobArgs{Node: p.CommentNode}))
	}
	if c := w.Issue().Comments[0]; !c.Minimized || !strings.EqualFold(c.MinimizedReason, "outdated") {
		t.Errorf("got folded %v with reason %q", c.Minimized, c.MinimizedReason)
	}
	if comment.BodyHash(w.Ours(1)[0]) != p.BodyHash {
		t.Error("folding changed the text")
	}
}
