package comment

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// maxDecisions is the number of the agent's decisions that a pull request's text lists.
const maxDecisions = 10

// maxIssueTitle bounds the title of an issue that an agent proposed.
const maxIssueTitle = 200

// Proposed returns the title and the text of an issue that an agent proposed and a person requested. They are untrusted: they
// mention nobody and close nothing. The text names its origin.
func Proposed(t *state.Task, p *state.Proposal, v View) (title, body string) {
	title = strings.Join(strings.Fields(markdown.Clean(p.Title)), " ")
	if cut, more := markdown.Cut(title, maxIssueTitle); more > 0 {
		title = strings.TrimRight(cut, " ") + " …"
	}
	title = strings.ReplaceAll(title, "@", "@\u2060") // mentions in titles notify people, too
	if title == "" {
		title = fmt.Sprintf("Found while working on #%d", t.Key.Issue)
	}
	for _, budget := range budgets() {
		body = markdown.Paragraphs(
			markdown.EmbedTruncated(p.Body, budget, v.log(t, "the log")), "---",
			fmt.Sprintf("<sub>Proposed by the agent that works on #%d, and created on request of %s. %s</sub>", t.Key.Issue, name(p.By), v.log(t, "Log")),
		)
		if utf8.RuneCountInString(body) <= MaxLength-300 {
			break
		}
	}
	return title, v.marked(body)
}

// issueFailed renders why a proposed issue could not be created.
func (p post) issueFailed() string {
	n := "N"
	if len(p.Items) > 0 {
		if _, err := strconv.Atoi(p.Items[0]); err == nil {
			n = p.Items[0]
		}
	}
	return addressed(p.By, fmt.Sprintf("errand could not create an issue from proposal %s. %s %s tries again.", n, markdown.Sentence(p.Text), p.v.say("create issue "+n)))
}

// proposals lists the proposed issues that were not created, with the command that creates them.
func proposals(t *state.Task, v View) string {
	var b strings.Builder
	open := 0
	for i := range t.Proposed {
		p := &t.Proposed[i]
		if p.Issue != 0 {
			continue
		}
		if open++; open <= state.MaxRunProposals {
			fmt.Fprintf(&b, "- %s: %s\n", v.say("create issue "+strconv.Itoa(p.N)), markdown.Sentence(p.Title))
		}
	}
	if open == 0 {
		return ""
	}
	if more := open - state.MaxRunProposals; more > 0 {
		fmt.Fprintf(&b, "- and %d more: see %s\n", more, v.log(t, "the log"))
	}
	return "Found during the work, but not part of this task. Create an issue from any of them with:\n\n" + strings.TrimRight(b.String(), "\n")
}

// created renders the reply to create issue. Items[0] is the proposal's number.
func (p post) created() string {
	if len(p.Items) > 0 {
		n, err := strconv.Atoi(p.Items[0])
		if err == nil && n >= 1 && n <= len(p.t.Proposed) && p.t.Proposed[n-1].Issue != 0 {
			made := p.t.Proposed[n-1]
			return fmt.Sprintf("Proposal %d is now %s.", n, markdown.Link(fmt.Sprintf("#%d", made.Issue), made.URL))
		}
	}
	return "The proposed issue is created."
}

// noProposal renders the reply to create issue with an unknown number.
func (p post) noProposal() string {
	if s := proposals(p.t, p.v); s != "" {
		return "No proposal has that number. " + s
	}
	return "There is no proposed issue to create."
}

// decisions lists the agent's decisions during its work, newest last.
func decisions(t *state.Task) string {
	var all []string
	for _, n := range t.Notes {
		if n.Kind == state.NoteDecision {
			all = append(all, n.Text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "Decisions during the work:\n\n" + markdown.BulletList(all[max(0, len(all)-maxDecisions):], maxDecisions)
}

// lastStep returns the newest step that the agent reported as done, for the status comment.
func lastStep(t *state.Task) string {
	done, text := 0, ""
	for _, n := range t.Notes {
		if n.Kind == state.NoteStep {
			done, text = done+1, n.Text
		}
	}
	if done == 0 {
		return ""
	}
	return fmt.Sprintf("%d, last: %s", done, markdown.Line(text, 120))
}
