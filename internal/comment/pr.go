package comment

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// PRInput has the contents of a pull request's text in addition to the task.
type PRInput struct {
	// Template is the repository's pull-request template, empty for none. It is trusted, but its HTML comments are removed.
	Template string
	// Summary is the agent's summary of its work in Markdown.
	Summary string
	// Checks are the results of the repository's commands on the published commits.
	Checks []state.CheckResult
	// Notes are lines about the publishing, such as a rebase.
	Notes []string
}

// PRBody renders the text of a pull request. It fills in every section of the template by its heading, or notes that there is
// nothing to add. It contains "Closes" only if the base is the default branch, because GitHub ignores it otherwise.
func PRBody(t *state.Task, in PRInput, v View) string {
	var text string
	for _, budget := range budgets() {
		w := prWriter{t: t, in: in, v: v, budget: budget / 2}
		if strings.TrimSpace(in.Template) == "" {
			text = w.own()
		} else {
			text = w.fill()
		}
		if utf8.RuneCountInString(text) <= MaxLength-300 {
			break
		}
	}
	return v.marked(text)
}

// prWriter renders one text.
type prWriter struct {
	t      *state.Task
	in     PRInput
	v      View
	budget int
}

// own returns the text without a template.
func (w prWriter) own() string {
	return markdown.Paragraphs(
		"## Motivation", w.motivation(),
		"## What changed", w.changes(),
		"## Checks", w.checks(),
		"## Out of scope", w.outOfScope(),
		w.foot(),
	)
}

var (
	htmlComment     = regexp.MustCompile(`(?s)<!--.*?(?:-->|$)`)
	templateHeading = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$`)
	templateBox     = regexp.MustCompile(`^[ \t]*[-*+][ \t]+\[[ xX]\]`)
)

// fill returns the template with its sections filled in.
func (w prWriter) fill() string {
	var out []string
	var heading string
	var body []string
	used := map[string]bool{}
	flush := func() {
		if heading != "" {
			out = append(out, heading, w.section(templateHeading.FindStringSubmatch(heading)[1], body, used))
		} else {
			out = append(out, strings.TrimSpace(strings.Join(body, "\n")))
		}
		body = nil
	}
	fenced := false
	for l := range strings.Lines(htmlComment.ReplaceAllString(markdown.Normalize(w.in.Template), "")) {
		l = strings.TrimRight(l, "\n")
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		if !fenced && templateHeading.MatchString(l) {
			flush()
			heading = l
			continue
		}
		body = append(body, l)
	}
	flush()
	for _, need := range []struct{ name, heading, text string }{
		{"motivation", "## Motivation", w.motivation()}, {"changes", "## What changed", w.changes()}, {"checks", "## Checks", w.checks()},
	} {
		if !used[need.name] {
			out = append(out, need.heading, need.text)
		}
	}
	return markdown.Paragraphs(append(out, w.foot())...)
}

// topics maps words of headings to contents. The first match is used.
func (w prWriter) topics() []struct {
	name, words string
	text        func() string
} {
	return []struct {
		name, words string
		text        func() string
	}{
		{"scope", "out of scope|not in scope|limitation|follow", w.outOfScope},
		{"issue", "issue|ticket|closes|related|reference|link", w.issueLine},
		{"checks", "test|verif|check|qa|how has|validation", w.checks},
		{"motivation", "motivation|why|context|background|problem|purpose|reason|goal", w.motivation},
		{"plan", "plan|approach|design", w.planLine},
		{"changes", "change|what|description|summary|solution|overview|detail|implement|proposed", w.changes},
	}
}

// section returns the text below a heading of the template. Its boxes remain unchanged, because only people may tick them.
func (w prWriter) section(heading string, body []string, used map[string]bool) string {
	var boxes []string
	for _, l := range body {
		if templateBox.MatchString(l) {
			boxes = append(boxes, l)
		}
	}
	if len(boxes) > 0 {
		return strings.TrimSpace(strings.Join(body, "\n"))
	}
	for _, topic := range w.topics() {
		if regexp.MustCompile(`(?i)\b(?:` + topic.words + `)`).MatchString(heading) {
			if used[topic.name] {
				return "See above."
			}
			used[topic.name] = true
			return topic.text()
		}
	}
	return "Nothing to add."
}

// motivation returns the issue and the plan's summary.
func (w prWriter) motivation() string {
	s := fmt.Sprintf("#%d: %s", w.t.Key.Issue, markdown.Sentence(w.t.Frozen.Title))
	if p := w.plan(); p != nil && p.Summary != "" {
		s += "\n\n" + markdown.EmbedTruncated(p.Summary, w.budget/4, "the plan")
	}
	return markdown.Paragraphs(s, w.conditions())
}

// maxConditions is the number of conditions that are listed.
const maxConditions = 20

// conditions lists the messages that became conditions of the plan while it was implemented, with their authors.
func (w prWriter) conditions() string {
	var list []string
	for _, f := range w.t.Feedback {
		if f.Kind != state.FeedbackCondition || !f.Steers {
			continue
		}
		id, _ := strconv.ParseInt(strings.TrimPrefix(f.ID, "comment:"), 10, 64) // 0 gives no link
		list = append(list, fmt.Sprintf("%s, %s: %s", name(f.By), markdown.Link(w.v.clock(f.At), commentURL(w.t, id)), markdown.Line(f.Body, 300)))
	}
	if len(list) == 0 {
		return ""
	}
	return "Conditions that people added while the agent worked:\n\n" + bullets(list[:min(len(list), maxConditions)])
}

func (w prWriter) changes() string {
	if strings.TrimSpace(w.in.Summary) == "" {
		return markdown.Paragraphs("See the commits; each is one step of the plan.", decisions(w.t), markdown.BulletList(w.in.Notes, 10))
	}
	summary := markdown.EmbedFolded("What changed, in full", w.in.Summary, 4000, w.budget, w.v.log(w.t, "the log"))
	return markdown.Paragraphs(summary, decisions(w.t), markdown.BulletList(w.in.Notes, 10))
}

// checks returns a table of the repository's commands.
func (w prWriter) checks() string {
	if len(w.in.Checks) == 0 {
		return "`.errand.yml` lists no checks, so only the agent's own were run."
	}
	var b strings.Builder
	b.WriteString("| Check | Result | Took |\n|---|---|---|\n")
	for i, c := range w.in.Checks {
		if i == 30 {
			fmt.Fprintf(&b, "| and %d more | | |\n", len(w.in.Checks)-i)
			break
		}
		result := "passed"
		switch {
		case c.Skipped != "" && c.Code == 0 && !c.TimedOut:
			result = "skipped: " + markdown.Cell(markdown.Line(c.Skipped, 100))
		case c.TimedOut:
			result = "**timed out**"
		case c.Code != 0 && c.Gate:
			reason, _, _ := strings.Cut(c.Tail, "\n")
			result = "**failed**: " + markdown.Cell(markdown.Line(reason, 300))
		case c.Code != 0:
			result = fmt.Sprintf("**failed** (exit %d)", c.Code)
		}
		what := c.Name
		if what == "" {
			what = c.Command
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", markdown.Cell(markdown.Code(markdown.CutWithNote(what, 100))), result, words.Span(c.Duration))
	}
	return strings.TrimRight(b.String(), "\n")
}

// outOfScope returns the plan's section about work that it omits.
func (w prWriter) outOfScope() string {
	if p := w.plan(); p != nil {
		if s := markdown.Section(p.Text, "out of scope"); s != "" {
			return markdown.EmbedTruncated(s, w.budget/4, "the plan")
		}
	}
	return "The plan lists nothing."
}

func (w prWriter) planLine() string {
	p := w.plan()
	if p == nil {
		return "There was no plan to approve: the repository's settings require none."
	}
	s := fmt.Sprintf("The %s, revision %d (%s)", markdown.Link(words.Plan(p.Kind), p.CommentURL), p.Revision, markdown.ShortHash(p.Hash))
	if a := w.t.Approval; a != nil && a.Hash == p.Hash {
		s += ", approved by " + name(a.By)
		if a.With != "" {
			s += " with the condition: " + markdown.Line(a.With, 300)
		}
	}
	return s + "."
}

// issueLine closes the issue, or explains why it stays open.
func (w prWriter) issueLine() string {
	n := w.t.Key.Issue
	if w.t.Branch.Base == w.t.Repo.DefaultBranch {
		return fmt.Sprintf("Closes #%d", n)
	}
	return fmt.Sprintf("For #%d, which stays open: the base is %s, not the default branch.", n, markdown.Code(w.t.Branch.Base))
}

// foot returns the end of every text.
func (w prWriter) foot() string {
	return markdown.Paragraphs("---", w.planLine()+" "+w.issueLine()+endPeriod(w.issueLine()),
		fmt.Sprintf("<sub>Reviews by people with write access are answered here. %s · %s lists the commands.</sub>", w.v.log(w.t, "Log"), w.v.say("help")))
}

func endPeriod(s string) string {
	if strings.HasSuffix(s, ".") {
		return ""
	}
	return "."
}

// plan returns the newest detailed plan, or the newest of any kind.
func (w prWriter) plan() *state.Plan {
	for i := len(w.t.Plans) - 1; i >= 0; i-- {
		if w.t.Plans[i].Kind == state.PlanThorough {
			return &w.t.Plans[i]
		}
	}
	for i := len(w.t.Plans) - 1; i >= 0; i-- {
		if w.t.Plans[i].Publish == nil {
			return &w.t.Plans[i]
		}
	}
	return nil
}
