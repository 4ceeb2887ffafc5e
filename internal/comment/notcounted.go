package comment

import (
	"fmt"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// NotQuoted is a reason besides those of state: the `approve` stands in a quote, in code or in other
// markup (Parsed.Quoted), where it is not read.
const NotQuoted = "quoted"

// notCounted says why an approval does not count and what to do instead. By is who gave it.
func (p post) notCounted() string {
	why, remedy := p.notCountedWords()
	what := "that approval does not count"
	switch p.Reason { // these hold whether or not anybody has approved yet
	case state.NotEdited, state.NotDeleted, state.NotIssueChanged:
		what = p.named() + " cannot be approved any more"
	case state.NotSeen:
		what = "nobody has approved " + p.named() + " yet"
	}
	return addressed(p.By, fmt.Sprintf("%s: %s %s", what, why, remedy))
}

// notCountedWords returns a sentence and a remedy for each reason of state's closed list.
func (p post) notCountedWords() (why, remedy string) {
	newest := p.newest()
	replan := p.v.say("replan") + " makes a new revision to approve."
	if plan := p.t.NewestPlan(); plan != nil && plan.Publish != nil {
		replan = p.v.say("retry") + " shows the changes anew."
	}
	switch p.Reason {
	case state.NotNoPermission:
		return "approving takes write permission on this repository.", "Ask a person who has it to approve " + newest + "."
	case state.NotBot:
		return "bots cannot approve.", "A person with write permission can approve " + newest + "."
	case state.NotSuperseded:
		return "a newer revision has taken this one's place.", "Read " + newest + " and approve that one with " + p.approve() + "."
	case state.NotEdited:
		return "its comment was edited after it was posted, so it is not certain what an approval means.", replan
	case state.NotDeleted:
		return "its comment was deleted.", replan
	case state.NotIssueChanged:
		return "the issue's title or text has changed since the plan was made.", replan
	case state.NotOldHash:
		return "the hash names another revision than the newest.", "Read " + newest + " and approve that one with " + p.approve() + "."
	case state.NotTooFresh:
		return "a revision without its hash counts only once it has stood for a while, and this one was just posted.", "Read " + newest + " and approve it by name with " + p.approve() + "."
	case state.NotOvertaken:
		return "somebody asked for a change before it was seen.", "A new revision follows; approve that one once it is posted."
	case state.NotTicked:
		return "the box was emptied again, or somebody else changed it, before work started.", "Tick it again, or write " + p.approve() + "."
	case state.NotSeveral:
		return "several boxes are ticked, so it is not clear which approach is meant. They have been emptied.", p.approaches()
	case state.NotSeen:
		return "a box is ticked, but GitHub has not told errand by whom, so it cannot be an approval. It has been emptied.", "Tick it again, or write " + p.approve() + "."
	case state.NotErased:
		return "the comment with the command was deleted or hidden before work started.", "To approve " + newest + ", write " + p.approve() + " in a new comment."
	case state.NotReworded:
		return "the comment with the command was edited before work started.", "Edits give no commands: to approve " + newest + ", write " + p.approve() + " in a new comment."
	case state.NotRevoked:
		return "the write permission or the 👍 was taken back before the start.", "A person with write permission can approve " + newest + " with " + p.approve() + "."
	case state.NotTickNotAllowed:
		return "the box was ticked by a person without write permission, and has been emptied.", "A person who has it can tick it, or write " + p.approve() + "."
	case state.NotClosed:
		return "the issue is closed.", "Reopen it and assign it again to go on."
	case state.NotNoneOpen:
		return "no plan waits for an approval now.", p.v.say("status") + " says where the task is."
	case NotQuoted:
		return "it stands in a quote or in code, or within other markup, where commands are not read.", "Write " + p.approve() + " at the start of a line of its own."
	case state.NotChoice:
		return "there is no approach of that number.", p.approaches()
	}
	return "it did not hold when it was checked.", "Approve " + newest + " with " + p.approve() + "."
}

// named names the revision that the post is about.
func (p post) named() string {
	plan := p.revision()
	if plan == nil {
		return "the plan"
	}
	return markdown.Link(fmt.Sprintf("revision %d", plan.Revision), plan.CommentURL) + " (" + markdown.ShortHash(plan.Hash) + ")"
}

// newest names the newest revision with a link.
func (p post) newest() string {
	plan := p.t.NewestPlan()
	if plan == nil {
		return "the newest revision"
	}
	return markdown.Link(fmt.Sprintf("revision %d", plan.Revision), plan.CommentURL) + " (" + markdown.ShortHash(plan.Hash) + ")"
}

// approve is the command that approves the newest revision by name.
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
