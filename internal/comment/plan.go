package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// plan renders a revision: its title, the change, the plan, and how to approve it.
func (p post) plan() string {
	plan := p.revision()
	if plan == nil {
		return "The plan " + markdown.ShortHash(p.Hash) + " is no longer stored. " + p.v.say("replan") + " makes a new one."
	}
	if plan.Publish != nil {
		return p.changes(plan)
	}
	title := "Preliminary plan"
	if plan.Kind == state.PlanThorough {
		title = "Plan"
	}
	var changed string
	if plan.Revision > 1 {
		changed = fmt.Sprintf("**Changed since revision %d:** ", plan.Revision-1)
		switch words := strings.TrimSpace(plan.Changes); {
		case words == "":
			changed += "see the text."
		case len(words) <= 400 && !strings.Contains(words, "\n"):
			changed += markdown.Sentence(words)
		default:
			changed += "\n\n" + markdown.EmbedTruncated(words, p.budget/4, p.v.log(p.t, "the log"))
		}
	}
	return markdown.Paragraphs(
		fmt.Sprintf("## %s, revision %d (%s)", title, plan.Revision, markdown.ShortHash(plan.Hash)),
		changed,
		p.planText(plan),
		planFacts(p.t, plan),
		"---",
		p.approval(plan),
		withheld(p.t),
		unreadAttachments(p.t),
	)
}

// maxUnread is the number of unread attachments that are listed.
const maxUnread = 10

// unreadAttachments returns the folded list of attachments that the agent does not get.
func unreadAttachments(t *state.Task) string {
	var lines []string
	for _, a := range t.Attachments {
		if a.Unread != "" {
			lines = append(lines, fmt.Sprintf("- %s: %s", markdown.Code(a.ID), markdown.Sentence(a.Unread)))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	title := words.Many(len(lines), "attachment") + " not read by the agent"
	if more := len(lines) - maxUnread; more > 0 {
		lines = append(lines[:maxUnread:maxUnread], fmt.Sprintf("- and %d more", more))
	}
	return markdown.Fold(title, strings.Join(lines, "\n")+"\n\nDescribe in words what the agent needs to know of them, in a comment.")
}

// planText returns the plan, folded if it is very long, with a note if it is truncated.
func (p post) planText(plan *state.Plan) string {
	summary := ""
	text := markdown.EmbedFolded("The plan in full", plan.Text, 10_000, p.budget, p.v.log(p.t, "the log")+", which has the whole plan")
	if strings.HasPrefix(text, "<details>") {
		summary = markdown.Sentence(plan.Summary)
	}
	return markdown.Paragraphs(summary, text)
}

func planFacts(t *state.Task, plan *state.Plan) string {
	var parts []string
	if len(plan.Files) > 0 {
		parts = append(parts, "**Files:** "+markdown.CodeList(plan.Files, 20))
	}
	if s := estimate(t, plan); s != "" {
		parts = append(parts, "**Estimate:** "+markdown.Sentence(s))
	}
	return strings.Join(parts, "\n\n")
}

// approval returns how to approve, who can, and what counts.
func (p post) approval(plan *state.Plan) string {
	next := "The plan is then implemented as written above, and a pull request is opened."
	if plan.Kind == state.PlanPreliminary {
		next = "A detailed plan follows; nothing is implemented until you approve that plan too."
	}
	boxes := []string{ApprovalBox(plan.Hash)}
	how := "Tick the box, give this comment a 👍, or write "
	if len(plan.Approaches) > 1 {
		boxes = nil
		for i, title := range plan.Approaches[:min(len(plan.Approaches), command.MaxChoice)] {
			boxes = append(boxes, ApproachBox(plan.Hash, i+1, title))
		}
		how = "Tick one box or write " + p.v.say(fmt.Sprintf("approve %s 2", plan.Short())) + " to choose. A 👍 on this comment, or "
	}
	how += p.v.say("approve " + plan.Short())
	if len(plan.Approaches) > 1 {
		how += ", leaves the choice to the agent."
	} else {
		how += "."
	}
	return markdown.Paragraphs(
		fmt.Sprintf("### Approve revision %d?", plan.Revision),
		strings.Join(boxes, "\n"),
		how+" "+next,
		signOff(p.t, plan),
		"Add conditions with "+p.v.say("approve "+plan.Short()+" with: …")+
			". To request a change or ask a question, write a comment: the agent makes a new revision or answers.",
		"<sub>People with write access can approve. Only the newest revision counts, and only as posted: if somebody edits this comment or the issue, a new revision is needed.</sub>",
	)
}

// signOff says that an approval signs off the commits, where it does.
func signOff(t *state.Task, plan *state.Plan) string {
	if !t.Settings.SignOff || plan.Kind != state.PlanThorough {
		return ""
	}
	return "**By approving you sign off:** every commit of this task, also in later review rounds, gets a `Signed-off-by:` line with the name in your profile and " +
		"your noreply address. It certifies the Developer Certificate of Origin (developercertificate.org)."
}

// reminder renders that a plan is waiting for approval.
func (p post) reminder() string {
	plan := p.revision()
	if plan == nil {
		plan = p.t.NewestPlan()
	}
	if plan == nil {
		return addressed(p.t.Trigger.By, "a plan is still waiting for a 👍.")
	}
	named := fmt.Sprintf("revision %d of the %s", plan.Revision, words.Plan(plan.Kind))
	if to(p.t.Trigger.By) == "" {
		named = markdown.Capitalize(named)
	}
	s := fmt.Sprintf("%s%s (%s) has been waiting for approval since %s.", to(p.t.Trigger.By), markdown.Link(named, plan.CommentURL), markdown.ShortHash(plan.Hash), p.v.clock(plan.PostedAt))
	if expire := p.t.Settings.Limits.Expire; expire > 0 && !plan.PostedAt.IsZero() {
		s += fmt.Sprintf(" At %s the task is canceled automatically.", p.v.clock(plan.PostedAt.Add(expire)))
	}
	return s + fmt.Sprintf(" Approve it with %s, or end the task now with %s.", p.v.say("approve "+plan.Short()), p.v.say("cancel"))
}
