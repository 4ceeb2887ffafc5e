package comment

// Rules of tone. What the bot says is plain and short. It says what happened, why, and what to do
// next, in that order. It never says "we", "sorry" or "oops", praises nobody, and uses no emoji but
// 👀 and 👍, which mean something on GitHub. It names a command by writing it out, ready to be copied.
// It addresses a person with @login only if that person has to act; everybody else is named without
// notice. A sentence that tells a person what went wrong is followed by one that tells the remedy.

import (
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
)

// MaxLength is the most characters of a comment or a pull request's text: GitHub refuses longer ones.
const MaxLength = 60_000

// budgets are how much untrusted text is shown, tried from the largest until the whole fits.
func budgets() []int { return []int{40_000, 20_000, 8_000, 2_000, 400, 0} }

// post is one comment while it is rendered.
type post struct {
	state.Post
	t      *state.Task
	v      View
	budget int
}

// Render writes a post of a task as Markdown. It is deterministic, at most MaxLength characters
// long, ends with the marker of v.Key, and contains untrusted text only as Embed leaves it.
func Render(t *state.Task, p state.Post, v View) string {
	text, _ := fit(t, p, v)
	return v.marked(text)
}

// fit renders a post with the largest budget with which it is not too long.
func fit(t *state.Task, p state.Post, v View) (text string, budget int) {
	for _, budget = range budgets() {
		text = post{Post: p, t: t, v: v, budget: budget}.text()
		if utf8.RuneCountInString(text) <= MaxLength-300 {
			break
		}
	}
	return text, budget
}

// ShowsPlan reports whether Render shows the whole text of the plan that a post is about. What people
// cannot read in its comment must not be put up for their approval.
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
	case state.PostPROpened:
		return p.opened()
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
	case state.PostEnded:
		return p.ended()
	case state.PostVM:
		return p.vm()
	}
	return p.embed()
}

// embed shows the post's untrusted text within the budget.
func (p post) embed() string {
	return markdown.EmbedTruncated(p.Text, p.budget, p.v.log(p.t, "the log"))
}

// revision is the plan that the post is about, or nil.
func (p post) revision() *state.Plan {
	for i := range p.t.Plans {
		if p.t.Plans[i].Hash == p.Hash {
			return &p.t.Plans[i]
		}
	}
	return nil
}
