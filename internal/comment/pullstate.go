package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// dcoRemedy says how the commits of a task pass a check for sign-offs.
func dcoRemedy(t *state.Task, v View) string {
	if t.Settings.SignOff {
		return "The commits have the sign-off of the person who approved the plan, with their noreply address; the check's own page says what it expects."
	}
	set := "`signoff: true`"
	if t.Settings.Plan == settings.PlanNone {
		set += " and `plan: one-step`"
	}
	return "Set " + set + " in `.errand.yml`: approving a plan then signs off the commits of later tasks, and of this issue after " + v.say("restart") + ". " +
		"The commits of this pull request can be signed off with `git rebase --signoff`."
}

// checksText says why the checks of a pull request are as they are, and which of them fail without being required.
func checksText(p *state.PR) string {
	s := markdown.Capitalize(markdown.Sentence(p.ChecksReason))
	if p.ChecksOptional != "" {
		s = strings.TrimSpace(s + " Not required, but failing: " + markdown.Sentence(p.ChecksOptional))
	}
	return s
}

func prState(p *state.PR) string {
	s := markdown.Link(fmt.Sprintf("#%d", p.Number), p.URL)
	if p.Draft {
		s += ", draft"
	}
	if p.State != "" {
		s += ", " + string(p.State)
	}
	if p.Checks != "" {
		s += ", checks: " + markdown.Line(p.Checks, 40)
	}
	if p.Ready && p.State == state.PROpen {
		s += ", ready to merge"
	}
	return s
}
