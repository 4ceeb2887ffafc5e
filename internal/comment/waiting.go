package comment

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// waiting renders why the task is waiting, and the remedy. Text is the reason, Items are the things it is waiting for; By is the
// person who caused it or has to act.
func (p post) waiting() string {
	p.Text, p.Hint = amounts(p.t, p.Text), amounts(p.t, p.Hint)
	switch p.Reason {
	case state.WaitingBlocked:
		return p.blocked()
	case state.WaitingConfig:
		return markdown.Paragraphs(
			addressed(p.t.Trigger.By, "`.errand.yml` is not valid, so nothing was started:"),
			markdown.CodeBlock(markdown.CutWithNote(p.Text, 2000)),
			p.listed(),
			"The task starts automatically when the file is fixed on the default branch.",
		)
	case state.WaitingText:
		return p.nothingVisible()
	case state.WaitingEdited:
		return p.edited()
	case state.WaitingDisabled:
		return "No tasks are started at present: `enabled` is false in the settings. This task begins when that changes."
	}
	if p.Reason == state.WaitingPermission {
		return markdown.Paragraphs(
			addressed(p.t.Trigger.By, "no agent was started: "+markdown.Sentence(markdown.Uncapitalize(p.Text))),
			markdown.Sentence(p.Hint)+" "+markdown.Link("Open the settings", p.URL)+". If they do not offer it, the App does not request it yet: its operator has to add the permission in the App's own settings first.",
			"The task then continues automatically; "+p.v.say("retry")+" checks immediately.",
		)
	}
	if p.Reason == state.WaitingKey {
		return markdown.Paragraphs("The task is waiting and its work is kept: "+p.v.reason(p.Text), p.v.hint(p.Hint), "All other tasks that need this model are waiting, too. There is nothing for you to do here.")
	}
	words := "The task is waiting: " + p.v.reason(p.Text)
	if w := p.t.Waiting; w != nil && !w.Until.IsZero() {
		words += " Next attempt: " + p.v.clock(w.Until) + "."
	}
	return markdown.Paragraphs(words, p.listed(), p.v.hint(p.Hint))
}

// closed renders that the pull request was closed without a merge, and how to continue.
func (p post) closed() string {
	pr := p.t.PR
	if pr == nil || pr.KeptUntil.IsZero() {
		return "The pull request was closed for a while; the task continues."
	}
	return markdown.Paragraphs(
		fmt.Sprintf("This pull request was closed without a merge, so nobody works on it now. The work is kept until %s; then the task is canceled.", p.v.clock(pr.KeptUntil)),
		fmt.Sprintf("To continue, reopen it, write %s here, or assign issue #%d again: then errand reopens it, and restores its branch if that was deleted. To end the task now, write %s.",
			p.v.say("retry"), p.t.Key.Issue, p.v.say("cancel")),
	)
}

// replaced renders, on a pull request of an earlier life, why errand closed it.
func (p post) replaced() string {
	where := markdown.Link(fmt.Sprintf("issue #%d", p.t.Key.Issue), p.t.Repo.URL+fmt.Sprintf("/issues/%d", p.t.Key.Issue))
	if pr := p.t.PR; pr != nil {
		where = "pull request " + markdown.Link(fmt.Sprintf("#%d", pr.Number), pr.URL)
	}
	by := p.t.Trigger.By
	if p.t.Trigger.Operator {
		by = state.Person{Operator: true}
	}
	return fmt.Sprintf("This pull request was closed because %s restarted its task. The work goes on in %s. The branch of this one stays. If somebody reopens it, errand closes it again: an issue has at most one open pull request by errand.",
		name(by), where)
}

func (p post) listed() string { return markdown.BulletList(p.Items, 20) }

func (p post) blocked() string {
	items := make([]string, len(p.Items))
	for i, issue := range p.Items {
		items[i] = strings.TrimPrefix(issue, p.t.Repo.FullName())
	}
	return markdown.Paragraphs(
		"This task is waiting for other issues to be closed:",
		markdown.BulletList(items, 20),
		"It then starts automatically. If it does not depend on them, remove the reference or the dependency and write "+p.v.say("replan")+".",
	)
}

// nothingVisible lists the texts that need a 👍 before the agent can see them.
func (p post) nothingVisible() string {
	var b strings.Builder
	for i, w := range p.t.Context.Withheld {
		if i == 10 {
			fmt.Fprintf(&b, "- and %d more\n", len(p.t.Context.Withheld)-i)
			break
		}
		what := markdown.Link("A comment", commentURL(p.t, w.ID))
		if w.ID == 0 {
			what = "The issue itself"
		}
		fmt.Fprintf(&b, "- %s by %s: %s\n", what, name(w.By), markdown.Sentence(w.Reason))
	}
	return markdown.Paragraphs(
		addressed(p.t.Trigger.By, "the agent cannot see any text here, so nothing was started: it sees only text that people with write access wrote, or gave a 👍 after its last edit."),
		b.String(),
		"Give a 👍 to the text that it should see; the task then starts automatically.",
	)
}

// edited renders a change to the issue by a person without write access.
func (p post) edited() string {
	f := p.t.Frozen
	if f.Changed == nil {
		return "The change to the issue was undone; the task continues."
	}
	diff := trust.Difference(trust.Text{Title: f.Title, Body: f.Body}, trust.Text{Title: f.Changed.Title, Body: f.Changed.Body})
	shown := markdown.CutWithNote(cmp.Or(diff, "only spaces or line ends differ"), min(8000, p.budget+200))
	return markdown.Paragraphs(
		addressed(p.t.Trigger.By, fmt.Sprintf("the issue was changed by %s, who does not have write access. The task is paused: nothing is approved, built or posted until this is resolved.", name(p.By))),
		strings.Replace(markdown.CodeBlock(shown), "text\n", "diff\n", 1),
		"Lines with `-` are from the text approved for the agent, lines with `+` from the current text.",
		"To work with the new text, write "+p.v.say("replan")+". To keep the old one, undo the edit.",
	)
}
