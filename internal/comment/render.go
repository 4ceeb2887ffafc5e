package comment

// Rules of style. Comments are plain and short: first the event, then its reason, then the next step. They do not use "we",
// "sorry" or praise, and no emoji except 👀 and 👍, which have a meaning on GitHub. Commands are written out for copying. A
// comment mentions a person with @login only if that person has to act; other people are named without a mention. A
// problem is followed by its remedy.

import (
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// MaxLength is the maximum length of a comment or a pull request's text, in characters. GitHub's limit is higher.
const MaxLength = 60_000

// budgets returns limits on untrusted text in characters; the largest with which a comment is short enough is used.
func budgets() []int { return []int{40_000, 20_000, 8_000, 2_000, 400, 0} }

// post renders one comment.
type post struct {
	state.Post
	t      *state.Task
	v      View
	budget int
}

// Render returns a post of a task as Markdown. It is deterministic. The text has at most MaxLength characters, ends with the
// marker of v.Key, and contains untrusted text only as package markdown returns it.
func Render(t *state.Task, p state.Post, v View) string {
	text, _ := fit(t, p, v)
	return v.marked(text)
}

// fit renders a post with the largest budget with which it is short enough.
func fit(t *state.Task, p state.Post, v View) (text string, budget int) {
	for _, budget = range budgets() {
		text = post{Post: p, t: t, v: v, budget: budget}.text()
		if utf8.RuneCountInString(text) <= MaxLength-300 {
			break
		}
	}
	return text, budget
}

// ShowsPlan reports whether Render shows the complete text of the post's plan. People must not be asked to approve text that the
// comment does not show.
func ShowsPlan(t *state.Task, p state.Post, v View) bool {
	plan := post{Post: p, t: t}.revision()
	if plan == nil {
		return false
	}
	_, budget := fit(t, p, v)
	_, missing := markdown.Cut(plan.Text, budget)
	return missing == 0
}

func (p post) text() string {
	switch p.Kind {
	case state.PostPlan:
		return p.plan()
	case state.PostQuestion:
		return p.question()
	case state.PostNotCounted:
		return p.notCounted()
	case state.PostReply:
		return p.reply()
	case state.PostRefused:
		return p.refused()
	case state.PostReport:
		return p.report()
	case state.PostAnswered:
		return p.answered()
	case state.PostPROpened:
		return p.opened()
	case state.PostReplaced:
		return p.replaced()
	case state.PostPRClosed:
		return p.closed()
	case state.PostRound:
		return p.round()
	case state.PostThread:
		return p.thread()
	case state.PostNoChanges:
		return p.noChanges()
	case state.PostWaiting:
		return p.waiting()
	case state.PostReminder:
		return p.reminder()
	case state.PostFailed:
		return p.failed()
	case state.PostChecks:
		return p.failingChecks()
	case state.PostEnded:
		return p.ended()
	case state.PostVM:
		return p.vm()
	case state.PostBase:
		return p.base()
	case state.PostMerge:
		return p.merge()
	case state.PostProvenance:
		return p.provenance()
	case state.PostRoundExpired:
		return p.roundExpired()
	}
	return p.embed()
}

// embed returns the post's untrusted text within the budget.
func (p post) embed() string {
	return markdown.EmbedTruncated(p.Text, p.budget, p.v.log(p.t, "the log"))
}

// revision returns the plan of the post, or nil.
func (p post) revision() *state.Plan {
	for i := range p.t.Plans {
		if p.t.Plans[i].Hash == p.Hash {
			return &p.t.Plans[i]
		}
	}
	return nil
}
