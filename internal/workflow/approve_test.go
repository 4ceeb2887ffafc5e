package workflow_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// planned posts a plan as errand does, and waits for its approval.
func (w *world) planned(kind state.PlanKind) *state.Plan {
	w.t.Helper()
	p := hashed(state.Plan{Kind: kind, Revision: 1, Text: "Do it.", Run: "r-1", Made: time.Now(), Approaches: w.approaches, BaseSHA: w.task.Branch.BaseSHA, IssueHash: w.task.Frozen.Hash})
	w.task.Plans = append(w.task.Plans, p)
	w.task.Phase = state.PhaseAwaitingPreliminaryApproval
	if kind == state.PlanThorough {
		w.task.Phase = state.PhaseAwaitingPlanApproval
	}
	e := w.do(state.JobPost, func(j *state.Job) {
		j.Key, j.Post = "1.plan-"+p.Hash, &state.Post{Kind: state.PostPlan, Hash: p.Hash}
	})
	plan := w.task.NewestPlan()
	plan.Comment, plan.CommentNode, plan.PostedAt, plan.BodyHash = e.Posted.ID, e.Posted.Node, e.Posted.At, e.Hash
	return plan
}

// candidate is a person's approval of a plan.
func (w *world) candidate(p *state.Plan, login string, via state.ApprovalVia) *state.Candidate {
	return &state.Candidate{Comment: p.Comment, Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: w.person(login), Via: via, Given: time.Now()}}
}

func (w *world) approve(k *state.Candidate) (state.Event, error) {
	return w.try(state.JobApprove, func(j *state.Job) { j.Candidate = k })
}

// tick is the plan's comment with its first empty box ticked.
func tick(w *world, p *state.Plan) string {
	w.t.Helper()
	for _, c := range w.issue().Comments {
		if c.ID == p.Comment && strings.Contains(c.Body, "- [ ] ") {
			return strings.Replace(c.Body, "- [ ] ", "- [x] ", 1)
		}
	}
	w.t.Fatal("the plan comment has no empty box")
	return ""
}

func TestApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by   string
		via  state.ApprovalVia
		act  func(w *world, p *state.Plan) error
		want string // why not; empty: approved
	}{
		"a 👍 by a writer":       {"bob", state.ViaReaction, func(w *world, p *state.Plan) error { return w.As("bob").React(full, p.Comment, "+1") }, ""},
		"a command by an admin": {"ada", state.ViaCommand, nil, ""},
		"a tick":                {"bob", state.ViaBox, func(w *world, p *state.Plan) error { return w.As("bob").EditComment(full, p.Comment, tick(w, p)) }, ""},
		"by an outsider":        {"eve", state.ViaReaction, func(w *world, p *state.Plan) error { return w.As("eve").React(full, p.Comment, "+1") }, state.NotNoPermission},
		"by triage":             {"errand-bot", state.ViaCommand, nil, state.NotNoPermission},
		"by a bot":              {"ci[bot]", state.ViaCommand, nil, state.NotBot},
		"lost the permission":   {"bob", state.ViaCommand, func(w *world, _ *state.Plan) error { return w.ada.SetPermission(full, "bob", simgithub.RoleRead) }, state.NotNoPermission},
		"renamed meanwhile":     {"bob", state.ViaCommand, func(w *world, _ *state.Plan) error { return w.RenameUser("bob", "robert") }, state.NotNoPermission}, // in doubt not
		"the login of another by now": {"bob", state.ViaCommand, func(w *world, _ *state.Plan) error {
			if err := w.ada.SetPermission(full, "bob", simgithub.RoleRead); err != nil {
				return err
			}
			if err := w.RenameUser("bob", "robert"); err != nil {
				return err
			}
			w.AddUser("bob")
			return w.ada.SetPermission(full, "bob", simgithub.RoleAdmin)
		}, state.NotNoPermission},
		"the plan was edited": {"ada", state.ViaCommand, func(w *world, p *state.Plan) error {
			return w.As("bob").EditComment(full, p.Comment, strings.Replace(tick(w, p), "Do it.", "Do more.", 1))
		}, state.NotEdited},
		"the plan was deleted": {"ada", state.ViaCommand, func(w *world, p *state.Plan) error { return w.ada.DeleteComment(full, p.Comment) }, state.NotDeleted},
		"the title changed": {"ada", state.ViaCommand, func(w *world, _ *state.Plan) error {
			return w.ada.EditIssue(full, 1, simgithub.IssueEdit{Title: ptr("Other")})
		}, state.NotIssueChanged},
		"the text changed": {"ada", state.ViaCommand, func(w *world, _ *state.Plan) error {
			return w.ada.EditIssue(full, 1, simgithub.IssueEdit{Body: ptr("Other")})
		}, state.NotIssueChanged},
		"the issue is closed":  {"ada", state.ViaCommand, func(w *world, _ *state.Plan) error { return w.ada.Close(full, 1, "") }, state.NotClosed},
		"the 👍 was taken back": {"ada", state.ViaReaction, nil, state.NotRevoked},
		"another's 👍":          {"ada", state.ViaReaction, func(w *world, p *state.Plan) error { return w.As("bob").React(full, p.Comment, "+1") }, state.NotRevoked},
		"a 👎":                  {"ada", state.ViaReaction, func(w *world, p *state.Plan) error { return w.ada.React(full, p.Comment, "-1") }, state.NotRevoked},
		"a 👍 before the plan": {"ada", state.ViaReaction, func(w *world, p *state.Plan) error {
			p.PostedAt = p.PostedAt.Add(time.Hour)
			return w.ada.React(full, p.Comment, "+1")
		}, state.NotRevoked},
		"of an unknown revision": {"ada", state.ViaCommand, func(w *world, p *state.Plan) error { p.Hash = "ffffffff"; return nil }, state.NotSuperseded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.AddBot("ci[bot]")
			p := w.planned(state.PlanPreliminary)
			k := w.candidate(p, c.by, c.via)
			if c.act != nil {
				check(t, c.act(w, p))
			}
			e, err := w.approve(k)
			check(t, err)
			want := state.EventNoApproval
			if c.want == "" {
				want = state.EventApproved
			}
			if e.Kind != want || e.Detail != c.want || e.Candidate == nil || e.Candidate.By.ID != k.By.ID {
				t.Errorf("%s (%s), candidate %+v; want %s (%s)", e.Kind, e.Detail, e.Candidate, want, c.want)
			}
			if c.want == "" && !e.Candidate.Permission.CanWrite() {
				t.Errorf("approved with permission %q", e.Candidate.Permission)
			}
		})
	}
}

// TestApproveDecidesNothingWithoutAnAnswer: while GitHub does not answer nothing is approved and
// nothing is refused.
func TestApproveDecidesNothingWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"permission": "/collaborators/", "comment, issue and reactions": "/graphql"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.planned(state.PlanPreliminary)
			check(t, w.ada.React(full, p.Comment, "+1"))
			k := w.candidate(p, "ada", state.ViaReaction)
			w.fault(simgithub.Fault{Path: path, Status: http.StatusBadGateway})
			e, err := w.approve(k)
			if err == nil {
				t.Fatalf("an event %s (%s) without an answer", e.Kind, e.Detail)
			}
			wantProblem(t, err, "github", false)
			w.ClearFaults()
			if e, err = w.approve(k); err != nil || e.Kind != state.EventApproved {
				t.Errorf("afterwards %s (%s), error %v", e.Kind, e.Detail, err)
			}
		})
	}
}

// TestTickWaitsUntilItsCommentIsKnown: what was ticked before the store knew the comment of the plan counts once it does; what was
// ticked in a second copy of it does not.
func TestTickWaitsUntilItsCommentIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.planned(state.PlanPreliminary)
	check(t, w.As("bob").EditComment(full, p.Comment, tick(w, p)))
	k := w.candidate(p, "bob", state.ViaBox)
	known := *p
	p.Comment, p.CommentNode, p.PostedAt, p.BodyHash = 0, "", time.Time{}, ""
	if e, err := w.approve(k); err == nil {
		t.Fatalf("%s (%s) before the comment is known", e.Kind, e.Detail)
	}
	*p = known
	if e, err := w.approve(k); err != nil || e.Kind != state.EventApproved {
		t.Fatalf("%s (%s), %v", e.Kind, e.Detail, err)
	}
	k.Comment++
	if e, err := w.approve(k); err != nil || e.Kind != state.EventNoApproval || e.Detail != state.NotTicked {
		t.Errorf("in a second copy: %s (%s), %v", e.Kind, e.Detail, err)
	}
}

func TestUntick(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(body string) string
		want func(before, edited string) string
	}{
		"a tick is taken back":         {func(s string) string { return strings.Replace(s, "- [ ]", "- [x]", 1) }, func(before, _ string) string { return before }},
		"a person's edit is theirs":    {func(s string) string { return strings.Replace(s, "- [ ]", "- [x]", 1) + "\nmine" }, func(_, edited string) string { return edited }},
		"nothing ticked, nothing done": {func(s string) string { return s }, func(before, _ string) string { return before }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.planned(state.PlanPreliminary)
			before := w.ours(1)[0]
			edited := c.edit(before)
			if edited != before {
				check(t, w.ada.EditComment(full, p.Comment, edited))
			}
			edits := len(w.issue().Comments[0].Edits)
			for range 2 {
				w.do(state.JobUntick, args("comment", itoa(p.Comment)))
			}
			got := w.issue().Comments[0]
			if want := c.want(before, edited); got.Body != want {
				t.Errorf("comment is\n%s\nwant\n%s", got.Body, want)
			}
			if n := len(got.Edits) - edits; n > 1 {
				t.Errorf("%d edits by us", n)
			}
		})
	}
	w := newWorld(t)
	p := w.planned(state.PlanPreliminary)
	check(t, w.ada.DeleteComment(full, p.Comment))
	w.do(state.JobUntick, args("comment", itoa(p.Comment)))
	w.do(state.JobMinimise, args("node", p.CommentNode))
	w.do(state.JobMinimise)
}

func TestMinimise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.planned(state.PlanPreliminary)
	for range 2 {
		w.do(state.JobMinimise, args("node", p.CommentNode))
	}
	if c := w.issue().Comments[0]; !c.Minimized || !strings.EqualFold(c.MinimizedReason, "outdated") {
		t.Errorf("folded %v because %q", c.Minimized, c.MinimizedReason)
	}
	if comment.BodyHash(w.ours(1)[0]) != p.BodyHash {
		t.Error("folding changed the text")
	}
}
