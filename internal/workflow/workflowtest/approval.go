package workflowtest

import (
	"errors"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Planned posts a plan as errand does, and sets the task to wait for its approval.
func (w *World) Planned(kind state.PlanKind) *state.Plan {
	w.T.Helper()
	p := Hashed(state.Plan{
		Kind: kind, Revision: 1, Text: "Do it.", Run: "r-1", Made: time.Now(), Approaches: w.Approaches,
		BaseSHA: w.Task.Branch.BaseSHA, IssueHash: w.Task.Frozen.Hash,
	})
	w.Task.Plans = append(w.Task.Plans, p)
	w.Task.Phase = state.PhaseAwaitingPreliminaryApproval
	if kind == state.PlanThorough {
		w.Task.Phase = state.PhaseAwaitingPlanApproval
	}
	e := w.Do(state.JobPost, func(j *state.Job) {
		j.Key, j.Post = "1.plan-"+p.Hash, &state.Post{Kind: state.PostPlan, Hash: p.Hash}
	})
	plan := w.Task.NewestPlan()
	posted := event.Of[event.Posted](e)
	plan.Comment, plan.CommentNode = posted.Comment.ID, posted.Comment.Node
	plan.PostedAt, plan.BodyHash = posted.Comment.At, posted.BodyHash
	return plan
}

// Candidate returns a person's approval of a plan.
func (w *World) Candidate(p *state.Plan, login string, via state.ApprovalVia) *state.Candidate {
	return &state.Candidate{
		Comment:  p.Comment,
		Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: w.Person(login), Via: via, Given: time.Now()},
	}
}

// Approve runs the job approve.
func (w *World) Approve(k *state.Candidate) (event.Event, error) {
	return w.Try(state.JobApprove, func(j *state.Job) { j.Candidate = k })
}

// Ticked returns the plan's comment with its first empty box ticked.
func Ticked(w *World, p *state.Plan) string {
	w.T.Helper()
	for _, c := range w.Issue().Comments {
		if c.ID == p.Comment && strings.Contains(c.Body, "- [ ] ") {
			return strings.Replace(c.Body, "- [ ] ", "- [x] ", 1)
		}
	}
	w.T.Fatal("the plan's comment has no empty box")
	return ""
}

// Said posts a person's comment on the issue, and returns that person's approval as errand would read it then.
func (w *World) Said(p *state.Plan, login, words string) *state.Candidate {
	w.T.Helper()
	c, err := w.As(login).Comment(RepoName, 1, words)
	Check(w.T, err)
	k := w.Candidate(p, login, state.ViaCommand)
	k.Comment, k.Node, k.CommentHash, k.Given = c.ID, c.NodeID, state.CommentHash(c.Body), c.CreatedAt
	return k
}

// Edit changes the body of the plan's comment as a person.
func (w *World) Edit(p *state.Plan, login string, change func(body string) string) error {
	w.T.Helper()
	for _, c := range w.Issue().Comments {
		if c.ID == p.Comment {
			return w.As(login).EditComment(RepoName, p.Comment, change(c.Body))
		}
	}
	return errors.New("the plan's comment does not exist")
}

// LaunchApproved launches the approved work without another check in between.
func (w *World) LaunchApproved(p *state.Plan, a *state.Approval) event.Event {
	w.T.Helper()
	w.Task.Approval, w.Task.Phase = a, state.PhaseImplementing
	w.Launching(state.RunImplement).Plan = p.Hash
	return w.Do(state.JobLaunch)
}
