// Package approval decides whether a person's approval of a plan or of a changeset is valid: when it is given, and
// again right before the approved work starts or is published.
//
// Start with Checker.Approve.
package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A Checker checks approvals on GitHub.
type Checker struct {
	GitHub GitHub
	Now    func() time.Time
}

// GitHub has the calls of GitHub's API that checks of approvals need.
type GitHub interface {
	step.Self
	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)
	// PlanSnapshot reads a plan comment, the issue and, unless said is empty, the comment with the approval.
	PlanSnapshot(ctx context.Context, r forge.Repo, comment, said, branch string) (forge.PlanSnapshot, error)
}

// Approve checks a 👍, a tick or a command on GitHub as it is now: the plan comment as errand wrote
// it, the issue as frozen, the person's permission, and the 👍, the tick or the comment with the command, which
// may have been withdrawn meanwhile. The transition table checks the rest (newest revision, change requests)
// in the same transaction that starts the work.
func (c *Checker) Approve(ctx context.Context, w *step.Attempt) (event.Event, error) {
	k := *w.Job.Candidate
	reject := func(why string) (event.Event, error) {
		return event.Event{Payload: event.ApprovalRejected{Candidate: k, Rejection: why}}, nil
	}
	plan := w.Task.PlanByHash(k.Hash)
	switch {
	case plan == nil:
		return reject(state.RejectedSuperseded)
	case k.By.Bot:
		return reject(state.RejectedBot)
	case plan.Comment == 0 && (plan.Superseded || !w.Task.Phase.AwaitsApproval()):
		return reject(state.RejectedSuperseded)
	case plan.Comment == 0: // its hash is known, so it is being posted, or was posted but is not stored yet
		return event.Event{}, fmt.Errorf("check approval of @%s: revision %s is not known to be posted yet", k.By.Login, plan.Short())
	}
	at := c.Now()
	p, err := c.GitHub.Permission(ctx, w.Repo, k.By.Login, k.By.ID)
	if err != nil {
		return event.Event{}, step.Retryable(fmt.Errorf("check approval of @%s: %w", k.By.Login, err))
	}
	k.Permission = p
	if !p.CanWrite() {
		return reject(state.RejectedNoPermission)
	}
	st, err := c.GitHub.PlanSnapshot(ctx, w.Repo, plan.CommentNode, k.Node, w.Task.Branch.Base)
	if err != nil {
		return event.Event{}, step.Retryable(fmt.Errorf("read the plan comment, its issue and its reactions: %w", err))
	}
	why := planProblem(st, plan, w.Task.Frozen.Files)
	if why == "" {
		why = approvalProblem(st, plan, &k.Approval)
	}
	if why == "" && k.Via == state.ViaBox && k.Comment != plan.Comment { // the tick was in a second copy, which is gone by now
		why = state.RejectedUnticked
	}
	if why != "" {
		return reject(why)
	}
	return event.Event{
		Permission: p,
		Vetted:     &state.Vetted{By: k.By, Permission: p, At: at, Hash: plan.Hash, Base: st.Head},
		Payload:    event.Approved{Candidate: k},
	}, nil
}

// planProblem returns why the plan cannot be approved as it is on GitHub, or "". files are the digests of the files attached to
// the frozen text.
func planProblem(st forge.PlanSnapshot, plan *state.Plan, files []string) string {
	switch {
	case st.Deleted:
		return state.RejectedPlanDeleted
	case comment.BodyHash(st.Comment.Body) != plan.BodyHash:
		return state.RejectedPlanEdited
	case st.Closed:
		return state.RejectedIssueClosed
	case plan.Kind == state.PlanPublish: // its changes do not depend on the issue's text
	case state.FreezeHash(st.Title, st.Body, files...) != plan.IssueHash:
		return state.RejectedIssueChanged
	}
	return ""
}

// approvalProblem returns why an approval is no longer valid on GitHub, or "".
func approvalProblem(st forge.PlanSnapshot, plan *state.Plan, a *state.Approval) string {
	switch a.Via {
	case state.ViaReaction:
		return reactionProblem(st, plan, a.By)
	case state.ViaBox:
		return tickProblem(st, plan, a)
	case state.ViaCommand:
		if a.Given.Before(plan.PostedAt) { // older than the revision that it names
			return state.RejectedTooEarly
		}
		return commandProblem(st, a)
	}
	return ""
}

// reactionProblem returns a reason unless the person's 👍 is still there and was given after the comment.
func reactionProblem(st forge.PlanSnapshot, plan *state.Plan, by state.Person) string {
	if slices.ContainsFunc(st.Comment.ThumbsUp, func(th forge.Reaction) bool {
		return th.By.ID == by.ID && !th.At.Before(plan.PostedAt)
	}) {
		return ""
	}
	return state.RejectedRevoked
}

// tickProblem returns a reason unless the person's tick is still there and no box was changed since.
// GitHub names only the last editor, so a box that somebody else ticked again cannot be told from the person's own
// tick.
func tickProblem(st forge.PlanSnapshot, plan *state.Plan, a *state.Approval) string {
	ticked := comment.Ticked(st.Comment.Body, plan.Hash)
	switch editor := st.Comment.Editor; {
	case !slices.Contains(ticked, a.Choice):
		return state.RejectedUnticked
	case len(ticked) > 1:
		return state.RejectedSeveralTicked
	case editor != nil && editor.ID != a.By.ID:
		return state.RejectedUnticked
	}
	return ""
}

// commandProblem returns a reason unless the comment with the command is still there, unchanged. A comment that
// became an approval by an edit is none: edits give no commands.
func commandProblem(st forge.PlanSnapshot, a *state.Approval) string {
	switch {
	case a.Node == "": // given to an older version, which did not keep it
		return ""
	case st.Approval == nil || st.Approval.Minimized:
		return state.RejectedCommentDeleted
	case st.Approval.Author.ID != a.By.ID || state.CommentHash(st.Approval.Body) != a.CommentHash:
		return state.RejectedCommentEdited
	}
	return ""
}

// Of returns the approval of a revision that counted, or nil.
func Of(t *state.Task, plan *state.Plan) *state.Approval {
	if plan.Publish != nil {
		return plan.Publish.Approved
	}
	for a := t.Approval; a != nil; a = a.Before {
		if a.Hash == plan.Hash {
			return a
		}
	}
	return nil
}
