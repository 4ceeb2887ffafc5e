package comment

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// waiting says why nothing goes on and what to do about it. Text is the cause in words, Items are
// the things waited for; By is who brought it about, or who has to act.
func (p post) waiting() string {
	switch p.Reason {
	case state.WaitingBlocked:
		return p.blocked()
	case state.WaitingConfig:
		return markdown.Paragraphs(
			addressed(p.t.Trigger.By, "`.errand.yml` is not valid, so nothing was started:"),
			markdown.CodeBlock(markdown.CutWithNote(p.Text, 2000)),
			p.listed(),
			"A fix on the default branch is noticed and the task starts by itself.",
		)
	case state.WaitingText:
		return p.nothingVisible()
	case state.WaitingEdited:
		return p.edited()
	case state.WaitingDisabled:
		return "Nothing new is started at present: `enabled` is false in the settings. The task is kept and begins when that changes."
	}
	if p.Reason == state.WaitingPermission {
		return markdown.Paragraphs(
			addressed(p.t.Trigger.By, "no agent was started: "+markdown.Sentence(p.Text)),
			markdown.Sentence(p.Hint)+" "+markdown.Link("Open the settings", p.URL)+". If they do not offer it, the App does not ask for it yet: its operator adds the permission in the App's own settings first.",
			"The task goes on by itself then; "+p.v.say("retry")+" has it look at once.",
		)
	}
	if p.Reason == state.WaitingKey {
		return markdown.Paragraphs("The task waits, with its work kept: "+command.AddMentions(p.v.Slug, markdown.Sentence(p.Text)), p.v.hint(p.Hint), "Every other task that needs this model waits, too. Nothing has to be said here.")
	}
	words := "The task waits: " + command.AddMentions(p.v.Slug, markdown.Sentence(p.Text))
	if w := p.t.Waiting; w != nil && !w.Until.IsZero() {
		words += " It is tried again at " + p.v.clock(w.Until) + "."
	}
	return markdown.Paragraphs(words, p.listed(), p.v.hint(p.Hint))
}

func (p post) listed() string { return markdown.BulletList(p.Items, 20) }

func (p post) blocked() string {
	items := make([]string, len(p.Items))
	for i, issue := range p.Items {
		items[i] = strings.TrimPrefix(issue, p.t.Repo.FullName())
	}
	return markdown.Paragraphs(
		"This waits for other issues to be closed:",
		markdown.BulletList(items, 20),
		"It starts by itself then. If they do not matter, take the words or the relation away and write "+p.v.say("replan")+".",
	)
}

// nothingVisible says which text needs a 👍 before the agent may see it.
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
		addressed(p.t.Trigger.By, "the agent may see none of the text here, so nothing was started: it sees only what people with write permission wrote, or gave a 👍 to after its last edit."),
		b.String(),
		"Give a 👍 to what it should see; the task then starts by itself.",
	)
}

// edited shows what an outsider changed in the issue.
func (p post) edited() string {
	f := p.t.Frozen
	if f.Changed == nil {
		return "The issue was changed and is as before again; the task goes on."
	}
	diff := trust.Difference(trust.Text{Title: f.Title, Body: f.Body}, trust.Text{Title: f.Changed.Title, Body: f.Changed.Body})
	shown := markdown.CutWithNote(cmp.Or(diff, "only spaces or line ends differ"), min(8000, p.budget+200))
	return markdown.Paragraphs(
		addressed(p.t.Trigger.By, fmt.Sprintf("the issue was changed by %s, who has no write permission here. The task is paused; nothing is approved, built or posted with either text until this is cleared.", name(p.By))),
		strings.Replace(markdown.CodeBlock(shown), "text\n", "diff\n", 1),
		"Lines with `-` are from the text approved for the agent, lines with `+` from the text as it is now.",
		"Read the change. To work with the new text, write "+p.v.say("replan")+". To keep the old one, undo the edit.",
	)
}
