package approval_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func untick(body string) string { return strings.Replace(body, "- [x] ", "- [ ] ", 1) }

// TestWithdrawnCommentsDoNotApprove: an approving comment counts only while it exists with its original text, both when
// it is checked and right before the approved work starts.
func TestWithdrawnCommentsDoNotApprove(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words string
		act   func(w *workflowtest.World, k *state.Candidate) error
		want  string
	}{
		"unchanged": {"@errand approve", nil, ""},
		"deleted by its author": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			return w.As("bob").DeleteComment(workflowtest.RepoName, k.Comment)
		}, state.RejectedCommentDeleted},
		"deleted by an admin": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			return w.Ada.DeleteComment(workflowtest.RepoName, k.Comment)
		}, state.RejectedCommentDeleted},
		"hidden": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			return w.Forge.Minimize(w.T.Context(), w.Task.Installation, k.Node)
		}, state.RejectedCommentDeleted},
		"edited to wait": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			return w.As("bob").EditComment(workflowtest.RepoName, k.Comment, "Wait.")
		}, state.RejectedCommentEdited},
		"edited to other conditions": {"@errand approve with: use tabs", func(w *workflowtest.World, k *state.Candidate) error {
			return w.As("bob").EditComment(workflowtest.RepoName, k.Comment, "@errand approve with: use spaces")
		}, state.RejectedCommentEdited},
		"edited to another choice": {"@errand approve 1", func(w *workflowtest.World, k *state.Candidate) error {
			return w.As("bob").EditComment(workflowtest.RepoName, k.Comment, "@errand approve 2")
		}, state.RejectedCommentEdited},
		"words added": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			return w.As("bob").EditComment(workflowtest.RepoName, k.Comment, "Not before Monday.\n\n@errand approve")
		}, state.RejectedCommentEdited},
		"edited by somebody else": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			return w.Ada.EditComment(workflowtest.RepoName, k.Comment, "@errand cancel")
		}, state.RejectedCommentEdited},
		"edited and edited back": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			if err := w.As("bob").EditComment(workflowtest.RepoName, k.Comment, "Wait."); err != nil {
				return err
			}
			return w.As("bob").EditComment(workflowtest.RepoName, k.Comment, "@errand approve")
		}, ""},
		"line ends of another kind": {"@errand approve\r\n\r\nThanks!\r\n", func(w *workflowtest.World, k *state.Candidate) error {
			k.CommentHash = state.CommentHash("@errand approve\n\nThanks!")
			return nil
		}, ""},
		"somebody else's comment": {"@errand approve", func(w *workflowtest.World, k *state.Candidate) error {
			*k = *w.Said(&w.Task.Plans[0], "eve", "@errand approve")
			k.By = w.Person("bob")
			return nil
		}, state.RejectedCommentEdited},
		"an issue that is locked": {"@errand approve", func(w *workflowtest.World, _ *state.Candidate) error {
			return w.Ada.Lock(workflowtest.RepoName, 1, "too heated")
		}, ""},
		"stored by an older version": {"@errand approve", func(_ *workflowtest.World, k *state.Candidate) error { k.Node, k.CommentHash = "", ""; return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanThorough)
			k := w.Said(p, "bob", c.words)
			if c.act != nil {
				workflowtest.Check(t, c.act(w, k))
			}
			e, err := w.Approve(k)
			workflowtest.Check(t, err)
			if (e.Kind() == event.KindApproved) != (c.want == "") || event.Of[event.ApprovalRejected](e).Rejection != c.want {
				t.Errorf("at the check: got %s (%s), want %q", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, c.want)
			}
			if e = w.LaunchApproved(p, &k.Approval); event.Of[event.ApprovalRejected](e).Rejection != c.want || (e.Kind() == event.KindApprovalRejected) != (c.want != "") {
				t.Errorf("before the start: got %s (%s), want %q", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, c.want)
			}
		})
	}
}

// TestWithdrawnTicksDoNotApprove: a tick counts if its box is the only ticked one, and no other account has changed a
// box since.
func TestWithdrawnTicksDoNotApprove(t *testing.T) {
	t.Parallel()
	box := func(n string) func(string) string {
		return func(body string) string {
			return strings.Replace(body, "- [ ] **Approve with approach "+n, "- [x] **Approve with approach "+n, 1)
		}
	}
	for name, c := range map[string]struct {
		act           func(w *workflowtest.World, p *state.Plan) []error
		want, started string
	}{
		"ticked": {func(w *workflowtest.World, p *state.Plan) []error { return []error{w.Edit(p, "bob", box("2"))} }, "", ""},
		"emptied again": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "bob", untick)}
		}, state.RejectedUnticked, state.RejectedUnticked},
		"cleared by somebody else": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "ada", untick)}
		}, state.RejectedUnticked, state.RejectedUnticked},
		"ticked again by the same person": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "bob", untick), w.Edit(p, "bob", box("2"))}
		}, "", ""},
		"ticked again by somebody else": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "bob", untick), w.Edit(p, "ada", box("2"))}
		}, state.RejectedUnticked, ""},
		"ticked again by a bot": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "bob", untick), w.Edit(p, "ci[bot]", box("2"))}
		}, state.RejectedUnticked, state.RejectedUnticked},
		"another approach ticked instead": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "bob", untick), w.Edit(p, "bob", box("1"))}
		}, state.RejectedUnticked, state.RejectedUnticked},
		"another approach ticked as well": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Edit(p, "bob", box("1"))}
		}, state.RejectedSeveralTicked, ""},
		"the plan deleted": {func(w *workflowtest.World, p *state.Plan) []error {
			return []error{w.Edit(p, "bob", box("2")), w.Ada.DeleteComment(workflowtest.RepoName, p.Comment)}
		}, state.RejectedPlanDeleted, state.RejectedUnticked},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Approaches = []string{"Append", "Rewrite"}
			w.AddBot("ci[bot]")
			workflowtest.Check(t, w.Ada.SetPermission(workflowtest.RepoName, "ci[bot]", simgithub.RoleWrite))
			p := w.Planned(state.PlanThorough)
			workflowtest.Check(t, errors.Join(c.act(w, p)...))
			k := w.Candidate(p, "bob", state.ViaBox)
			k.Choice = 2
			e, err := w.Approve(k)
			workflowtest.Check(t, err)
			if (e.Kind() == event.KindApproved) != (c.want == "") || event.Of[event.ApprovalRejected](e).Rejection != c.want {
				t.Errorf("at the check: got %s (%s), want %q", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, c.want)
			}
			if e = w.LaunchApproved(p, &k.Approval); event.Of[event.ApprovalRejected](e).Rejection != c.started || (e.Kind() == event.KindApprovalRejected) != (c.started != "") {
				t.Errorf("before the start: got %s (%s), want %q", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, c.started)
			}
		})
	}
}

// TestApprovalsAreNotDecidedInDoubt: while GitHub cannot return the comment or the box, an approval is neither accepted
// nor refused.
func TestApprovalsAreNotDecidedInDoubt(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]simgithub.Fault{
		"a bad gateway":      {Path: "/graphql", Status: http.StatusBadGateway},
		"a 404":              {Path: "/graphql", Status: http.StatusNotFound},
		"an unusual refusal": {Path: "/graphql", Status: http.StatusOK, Body: `{"data":{"node":null,"said":null,"repository":null},"errors":[{"type":"SERVICE_UNAVAILABLE","path":["said"],"message":"timeout"}]}`},
		"no access":          {Path: "/graphql", Status: http.StatusOK, Body: `{"data":{"node":null,"said":null,"repository":{"id":"R_1"}},"errors":[{"type":"FORBIDDEN","path":["said"],"message":"Resource not accessible by integration"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanPreliminary)
			k := w.Said(p, "bob", "@errand approve")
			w.MustFault(f)
			if e, err := w.Approve(k); err == nil {
				t.Errorf("got event %s (%s) without an answer", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection)
			} else {
				workflowtest.WantProblem(t, err, "github", false)
			}
			w.ClearFaults()
			if e, err := w.Approve(k); err != nil || e.Kind() != event.KindApproved {
				t.Errorf("after the answer: got %s (%s), error %v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, err)
			}
		})
	}
}

// TestCommandBeforeThePlanWasPosted: a command with the hash of a revision does not approve it if the command is older
// than the revision's comment.
func TestCommandBeforeThePlanWasPosted(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	p := w.Planned(state.PlanPreliminary)
	k := w.Said(p, "bob", "@errand approve "+p.Hash)
	k.Named, p.PostedAt = p.Hash, k.Given.Add(1)
	if e, err := w.Approve(k); err != nil || e.Kind() != event.KindApprovalRejected || event.Of[event.ApprovalRejected](e).Rejection != state.RejectedTooEarly {
		t.Errorf("got %s (%s), error %v", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection, err)
	}
}

// TestAcceptedTickStays: removing another tick does not remove the accepted one, so that the approval is still valid at
// the start.
func TestAcceptedTickStays(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Approaches = []string{"Append", "Rewrite"}
	p := w.Planned(state.PlanThorough)
	workflowtest.Check(t, w.Edit(p, "bob", func(s string) string { return strings.ReplaceAll(s, "- [ ] **Approve with", "- [x] **Approve with") }))
	k := w.Candidate(p, "bob", state.ViaBox)
	k.Choice = 2
	w.Task.Approval = &k.Approval
	w.Do(state.JobUntick, workflowtest.Args(state.JobArgs{Comment: p.Comment}))
	if e := w.LaunchApproved(p, &k.Approval); e.Kind() == event.KindApprovalRejected {
		t.Errorf("%s (%s)", e.Kind(), event.Of[event.ApprovalRejected](e).Rejection)
	}
	if body := w.Ours(1)[0]; strings.Count(body, "- [x] ") != 1 {
		t.Errorf("got comment\n%s", body)
	}
}

// TestWithdrawnCommentsAreVetted: a comment's text is read again together with its author's permission, unless the
// comment has no effect or another step checks it.
func TestWithdrawnCommentsAreVetted(t *testing.T) {
	t.Parallel()
	orders := func(o ...state.Order) []state.Order { return o }
	budget, message := state.Order{Verb: state.VerbBudget, MicroUSD: 5_000_000}, state.Order{Verb: state.VerbMessage, Text: "use tabs"}
	for name, c := range map[string]struct {
		by, words string
		orders    []state.Order
		act       func(w *workflowtest.World, c *simgithub.Comment) error
		withdrawn string
		body      string
		calls     int
	}{
		"an unchanged command": {"bob", "@errand budget +5", orders(budget), nil, "", "@errand budget +5", 2},
		"a command, deleted":   {"bob", "@errand budget +5", orders(budget), deletes("bob"), state.RejectedCommentDeleted, "@errand budget +5", 2},
		"by an admin":          {"bob", "@errand budget +5", orders(budget), deletes("ada"), state.RejectedCommentDeleted, "@errand budget +5", 2},
		"hidden": {"bob", "@errand budget +5", orders(budget), func(w *workflowtest.World, c *simgithub.Comment) error {
			return w.Forge.Minimize(w.T.Context(), w.Task.Installation, c.NodeID)
		}, state.RejectedCommentDeleted, "@errand budget +5", 2},
		"raised":                                  {"bob", "@errand budget +5", orders(budget), edits("bob", "@errand budget +500"), state.RejectedCommentEdited, "@errand budget +5", 2},
		"edited to a message":                     {"bob", "@errand budget +5", orders(budget), edits("bob", "Never mind."), state.RejectedCommentEdited, "@errand budget +5", 2},
		"words corrected":                         {"bob", "use tbas", nil, edits("bob", "use tabs"), "", "use tabs", 2},
		"a message corrected":                     {"bob", "@errand use tbas", orders(message), edits("bob", "@errand use tabs"), "", "@errand use tabs", 2},
		"message edited by another account":       {"bob", "use tabs", nil, edits("ada", "delete it all"), state.RejectedCommentEdited, "use tabs", 2},
		"message edited to a command":             {"bob", "use tabs", nil, edits("bob", "@errand budget +500"), state.RejectedCommentEdited, "use tabs", 2},
		"words, deleted":                          {"bob", "use tabs", nil, deletes("bob"), state.RejectedCommentDeleted, "use tabs", 2},
		"deleted, by a user without write access": {"eve", "@errand budget +5", orders(budget), deletes("eve"), "", "@errand budget +5", 1},
		"help, deleted":                           {"bob", "@errand help", orders(state.Order{Verb: state.VerbHelp}), deletes("bob"), "", "@errand help", 1},
		"approve, deleted":                        {"bob", "@errand approve", orders(state.Order{Verb: state.VerbApprove}), deletes("bob"), "", "@errand approve", 1},
		"approval with conditions":                {"bob", "@errand approve with: x", orders(state.Order{Verb: state.VerbApprove, With: "x"}), deletes("bob"), state.RejectedCommentDeleted, "@errand approve with: x", 2},
		"help and cancel":                         {"bob", "@errand help\n@errand cancel", orders(state.Order{Verb: state.VerbHelp}, state.Order{Verb: state.VerbCancel}), deletes("bob"), state.RejectedCommentDeleted, "@errand help\n@errand cancel", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			said, err := w.As(c.by).Comment(workflowtest.RepoName, 1, c.words)
			workflowtest.Check(t, err)
			if c.act != nil {
				workflowtest.Check(t, c.act(w, said))
			}
			in := event.Event{Task: w.Task.Key, By: w.Person(c.by), Payload: event.Commented{Orders: c.orders, Comment: &state.Comment{ID: said.ID, Node: said.NodeID, Body: c.words, Mention: strings.HasPrefix(c.words, "@errand")}}}
			workflowtest.Check(t, workflowtest.Err(w.Forge.Permission(t.Context(), w.RepoRef(), "ada", 1))) // a token exists
			workflowtest.Check(t, workflowtest.Err(w.Forge.Self(t.Context())))
			_, before := w.Calls()
			e := w.Do(state.JobVet, workflowtest.Vets(in))
			if _, after := w.Calls(); after-before > c.calls {
				t.Errorf("got %d calls, want %d", after-before, c.calls)
			}
			if e.Comment().Withdrawn != c.withdrawn || e.Comment().Body != c.body || in.Comment().Withdrawn != "" {
				t.Errorf("got withdrawn %q, body %q; want %q, %q", e.Comment().Withdrawn, e.Comment().Body, c.withdrawn, c.body)
			}
		})
	}
}

// TestHiddenCommentsOfThreadsAreWithdrawn: a command in a review thread that was hidden before errand read it is
// withdrawn, like one in the conversation.
func TestHiddenCommentsOfThreadsAreWithdrawn(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"unchanged": "", "hidden": state.RejectedCommentDeleted} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			thread, _ := w.Reviewed()
			said := thread.Comments[0]
			if want != "" {
				workflowtest.Check(t, w.Ada.MinimizeReviewComment(workflowtest.RepoName, w.Task.PR.Number, said.ID))
			}
			in := event.Event{Task: w.Task.Key, By: w.Person("ada"), Payload: event.Commented{Orders: []state.Order{{Verb: state.VerbCancel}}, Comment: &state.Comment{ID: said.ID, Node: said.NodeID, Body: said.Body, OnPR: true, Thread: said.ID, Mention: true}}}
			if e := w.Do(state.JobVet, workflowtest.Vets(in)); e.Comment().Withdrawn != want {
				t.Errorf("got withdrawn %q, want %q", e.Comment().Withdrawn, want)
			}
		})
	}
}

func deletes(by string) func(*workflowtest.World, *simgithub.Comment) error {
	return func(w *workflowtest.World, c *simgithub.Comment) error {
		return w.As(by).DeleteComment(workflowtest.RepoName, c.ID)
	}
}

func edits(by, words string) func(*workflowtest.World, *simgithub.Comment) error {
	return func(w *workflowtest.World, c *simgithub.Comment) error {
		return w.As(by).EditComment(workflowtest.RepoName, c.ID, words)
	}
}

// TestCommentsAreNotVettedInDoubt: while GitHub cannot return a comment, its command is neither obeyed nor dropped.
func TestCommentsAreNotVettedInDoubt(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"a bad gateway": http.StatusBadGateway, "a 404": http.StatusNotFound} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			said, err := w.As("bob").Comment(workflowtest.RepoName, 1, "@errand cancel")
			workflowtest.Check(t, err)
			in := event.Event{Task: w.Task.Key, By: w.Person("bob"), Payload: event.Commented{Orders: []state.Order{{Verb: state.VerbCancel}}, Comment: &state.Comment{ID: said.ID, Node: said.NodeID, Body: said.Body, Mention: true}}}
			w.MustFault(simgithub.Fault{Path: "/graphql", Status: status})
			if e, err := w.Try(state.JobVet, workflowtest.Vets(in)); err == nil {
				t.Errorf("got an event without an answer: %+v", e)
			} else {
				workflowtest.WantProblem(t, err, "github", false)
			}
		})
	}
}

// TestChangedStoredPlanIsNotImplemented: the started plan must match the approval's hash.
func TestChangedStoredPlanIsNotImplemented(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(p *state.Plan)
		intact bool
	}{
		"unchanged":        {func(*state.Plan) {}, true},
		"another text":     {func(p *state.Plan) { p.Text = "Do more." }, false},
		"another base":     {func(p *state.Plan) { p.BaseSHA = "0" }, false},
		"another approach": {func(p *state.Plan) { p.Approaches = []string{"Rewrite"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanThorough)
			k := w.Said(p, "bob", "@errand approve")
			c.change(p)
			w.Task.Approval, w.Task.Phase = &k.Approval, state.PhaseImplementing
			w.Launching(state.RunImplement)
			e, err := w.Try(state.JobLaunch, func(j *state.Job) { // right after the approval was checked
				j.Vetted = &state.Vetted{By: k.By, Permission: state.PermissionWrite, At: w.Steps.Now(), Hash: k.Hash}
			})
			if c.intact {
				workflowtest.Check(t, err)
				return
			}
			if err == nil {
				t.Fatalf("got event %+v", e)
			}
			workflowtest.WantProblem(t, err, "internal", true)
		})
	}
}
