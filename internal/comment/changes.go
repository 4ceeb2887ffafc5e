package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// changes renders a revision of changes to publish: the commits, the diff, and how to approve it.
func (p post) changes(plan *state.Plan) string {
	c := plan.Publish
	return markdown.Paragraphs(
		fmt.Sprintf("## Changes, revision %d (%s)", plan.Revision, markdown.ShortHash(plan.Hash)),
		"These changes are ready and not on GitHub yet.",
		markdown.Sentence(plan.Summary),
		markdown.BulletList(c.Stat, 62),
		p.remarks(c),
		markdown.Fold("The commits and their diff", p.diff(plan)),
		unlessZero(c.Cut, fmt.Sprintf("**%s of the diff did not fit here.** Read all of it before you approve: %s.", words.Many(c.Cut, "line"), p.wholeDiff(plan))),
		"---",
		fmt.Sprintf("### Publish revision %d?", plan.Revision),
		PublishBox(plan.Hash),
		"Tick the box, give this comment a 👍, or write "+p.v.say("approve "+plan.Short())+". Then exactly these commits are published"+nextStep(p.t)+" (tree "+markdown.ShortHash(c.Tree)+").",
		"To request a change, describe it in a comment: the agent implements it, and the changes are posted again. To end the task without publishing, write "+p.v.say("cancel")+".",
		"<sub>People with write access can approve. Only the newest revision counts, and only as posted: if somebody edits this comment, the changes have to be posted again.</sub>",
	)
}

// remarks renders notes about the changeset, such as failed checks.
func (p post) remarks(c *state.Changes) string {
	w := p.t.Work
	if w == nil || w.Ref != c.Ref || len(w.Notes) == 0 {
		return ""
	}
	return "**Note:**\n\n" + markdown.BulletList(w.Notes, 10)
}

// diff renders the diff, truncated to the size of a comment.
func (p post) diff(plan *state.Plan) string {
	text, missing := markdown.Cut(plan.Text, p.budget)
	block := strings.Replace(markdown.CodeBlock(text), "text\n", "diff\n", 1)
	if missing > 0 {
		block += fmt.Sprintf("\n\n*%d more characters: see %s.*", missing, p.wholeDiff(plan))
	}
	return block
}

// wholeDiff returns a link to the page with the complete diff.
func (p post) wholeDiff(plan *state.Plan) string {
	if p.v.LogURL != nil {
		if url := p.v.LogURL(p.t); url != "" {
			return markdown.Link("the whole diff", url+"/changes/"+plan.Short())
		}
	}
	return "the log"
}

// nextStep describes the step after publishing.
func nextStep(t *state.Task) string {
	if t.PR != nil {
		return " in " + markdown.Link(fmt.Sprintf("#%d", t.PR.Number), t.PR.URL) + ", and the review is answered"
	}
	return ", and a pull request is opened"
}

func unlessZero(n int, s string) string {
	if n == 0 {
		return ""
	}
	return s
}
