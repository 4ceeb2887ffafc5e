package comment

import (
	"fmt"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// notCounted renders why an approval does not count, and the remedy. By is its author.
func (p post) notCounted() string {
	why, remedy := p.notCountedWords()
	what := "approval not counted"
	switch p.Reason { // true whether or not anybody has approved
	case state.RejectedPlanEdited, state.RejectedPlanDeleted, state.RejectedIssueChanged:
		what = p.linkToRevision() + " can no longer be approved"
	case state.RejectedUnknownPerson:
		what = "nobody has approved " + p.linkToRevision() + " yet"
	}
	return addressed(p.By, fmt.Sprintf("%s: %s %s", what, why, remedy))
}

// notCountedWords returns the explanation and the remedy for each reason of package state that is answered.
func (p post) notCountedWords() (why, remedy string) {
	newest := p.linkToNewest()
	replan := p.v.say("replan") + " makes a new revision to approve."
	if plan := p.t.NewestPlan(); plan != nil && plan.Publish != nil {
		replan = p.v.say("retry") + " posts the changes again."
	}
	switch p.Reason {
	case state.RejectedSuperseded:
		return "a newer revision has replaced this one.", "Read " + newest + " and approve that one with " + p.approve() + "."
	case state.RejectedPlanEdited:
		return "its comment was edited after it was posted, so it is unclear what would be approved.", replan
	case state.RejectedPlanDeleted:
		return "its comment was deleted.", replan
	case state.RejectedIssueChanged:
		return "the issue's title or text has changed since the plan was made.", replan
	case state.RejectedOldHash:
		return "the hash is not that of the newest revision.", "Read " + newest + " and approve that one with " + p.approve() + "."
	case state.RejectedTooEarly:
		return "this revision was just posted, so an approval has to name its hash.", "Read " + newest + " and approve it with " + p.approve() + "."
	case state.RejectedChangeRequested:
		return "somebody requested a change before the approval was read.", "A new revision follows; approve that one once it is posted."
	case state.RejectedRevised:
		remedy = "A new revision follows; approve that one once it is posted."
		if plan := p.t.NewestPlan(); plan != nil && plan.Open() {
			remedy = "Read " + newest + " and approve that one with " + p.approve() + "."
		}
		return "comments on that revision led to a new one.", remedy
	case state.RejectedUnticked:
		return "the box was cleared again, or somebody else changed it, before work started.", "Tick it again, or write " + p.approve() + "."
	case state.RejectedSeveralTicked:
		return "several boxes are ticked, so it is unclear which approach is meant. They have been cleared.", p.approaches()
	case state.RejectedUnknownPerson:
		return "a box is ticked, but GitHub did not report who ticked it. It has been cleared.", "Tick it again, or write " + p.approve() + "."
	case state.RejectedCommentDeleted:
		return "the comment with the command was deleted or hidden before work started.", "To approve " + newest + ", write " + p.approve() + " in a new comment."
	case state.RejectedCommentEdited:
		return "the comment with the command was edited before work started.", "Commands in edited comments are not read: to approve " + newest + ", write " + p.approve() + " in a new comment."
	case state.RejectedRevoked:
		return "the write access or the 👍 was withdrawn before work started.", "A person with write access can approve " + newest + " with " + p.approve() + "."
	case state.RejectedIssueClosed:
		return "the issue is closed.", "To continue, reopen it and assign it again."
	case state.RejectedNonePending:
		return "no plan is waiting for approval.", p.v.say("status") + " shows the state of the task."
	case state.RejectedQuoted:
		return "it is in a quote, in code or in other markup, where commands are not read.", "Write " + p.approve() + " at the start of a line of its own."
	case state.RejectedUnknownChoice:
		return "there is no approach with that number.", p.approaches()
	}
	return "it was no longer valid when checked.", "Approve " + newest + " with " + p.approve() + "."
}

// linkToRevision returns a link to the revision of the post.
func (p post) linkToRevision() string {
	plan := p.revision()
	if plan == nil {
		return "the plan"
	}
	return markdown.Link(fmt.Sprintf("revision %d", plan.Revision), plan.CommentURL) + " (" + markdown.ShortHash(plan.Hash) + ")"
}

// linkToNewest returns a link to the newest revision.
func (p post) linkToNewest() string {
	plan := p.t.NewestPlan()
	if plan == nil {
		return "the newest revision"
	}
	return markdown.Link(fmt.Sprintf("revision %d", plan.Revision), plan.CommentURL) + " (" + markdown.ShortHash(plan.Hash) + ")"
}

// approve returns the command that approves the newest revision by its hash.
func (p post) approve() string {
	if plan := p.t.NewestPlan(); plan != nil {
		return p.v.say("approve " + plan.Short())
	}
	return p.v.say("approve")
}

func (p post) approaches() string {
	plan := p.t.NewestPlan()
	if plan == nil || len(plan.Approaches) < 2 {
		return "The plan has one approach; approve it with " + p.approve() + "."
	}
	return fmt.Sprintf("The plan has %d; choose one with %s.", len(plan.Approaches), p.v.say("approve "+plan.Short()+" 1"))
}
