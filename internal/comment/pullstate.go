package comment

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
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

// maxFailing is the maximum number of failing checks that a comment lists.
const maxFailing = 20

// failingChecks asks people to look at checks that errand does not repair, or does not repair any more.
func (p post) failingChecks() string {
	if len(p.Checks) == 0 {
		return markdown.Paragraphs(
			addressed(p.By, "errand could not read why checks of this pull request fail, so it leaves them to you."),
			markdown.Capitalize(markdown.Sentence(p.Text)),
			p.again(),
		)
	}
	var failing, pending []state.CheckNote
	for _, n := range p.Checks {
		if n.Fault == state.CheckPending {
			pending = append(pending, n)
		} else {
			failing = append(failing, n)
		}
	}
	if len(failing) == 0 {
		title := verb(pending, " of this pull request has not finished", " of this pull request have not finished") + ", so it is unknown whether the pull request can be merged:"
		return markdown.Paragraphs(addressed(p.By, title), p.list(pending),
			"Please find out why: for example, an approval is missing, or a workflow does not run for this pull request. errand continues automatically when there is a result.")
	}
	title := verb(failing, " of this pull request fails, and errand leaves it to you:", " of this pull request fail, and errand leaves them to you:")
	waited := ""
	if len(pending) > 0 {
		waited = verb(pending, " has not finished; errand no longer waits for it:", " have not finished; errand no longer waits for them:")
	}
	again := ""
	if slices.ContainsFunc(failing, func(n state.CheckNote) bool { return n.Rerun }) {
		again = "A re-run would show whether a check is only flaky, but errand cannot re-run it without the App's optional permission *Actions: write*. " +
			"Please press **Re-run failed jobs** on the check's page."
	}
	return markdown.Paragraphs(addressed(p.By, title), p.list(failing), waited, p.list(pending), again, p.again())
}

// verb counts checks and says what they do.
func verb(list []state.CheckNote, one, many string) string {
	if len(list) == 1 {
		return "1 check" + one
	}
	return words.Many(len(list), "check") + many
}

// list lists checks, and why each is left to people.
func (p post) list(notes []state.CheckNote) string {
	var b strings.Builder
	for i, n := range notes {
		if i == maxFailing {
			fmt.Fprintf(&b, "- and %s\n", words.Many(len(notes)-i, "more check"))
			break
		}
		name := markdown.Code(markdown.CutWithNote(n.Name, 100))
		fmt.Fprintf(&b, "- %s %s\n", markdown.Link(name, checkURL(p.t, n.URL)), p.fault(n))
	}
	return b.String()
}

// checkURL returns the address of a check's page, "" unless it is a page of the repository: anybody can report a check with any address.
func checkURL(t *state.Task, url string) string {
	if t.Repo.URL == "" || !strings.HasPrefix(url, t.Repo.URL+"/") || strings.Contains(url, "..") || strings.ContainsAny(url, "%\\@") {
		return ""
	}
	return url
}

// fault says why a failing check is left to people.
func (p post) fault(n state.CheckNote) string {
	switch n.Fault {
	case state.CheckPending:
		if n.Result == "" {
			return "has not been reported."
		}
		return "is not complete: " + markdown.Line(n.Result, 40) + "."
	case state.CheckUnfinished:
		return "did not run to its end: " + markdown.Line(n.Result, 40) + "."
	case state.CheckSignOff:
		return "wants sign-offs. " + dcoRemedy(p.t, p.v)
	case state.CheckBroken:
		return "also fails on " + markdown.Code(cmp.Or(p.t.Branch.Base, p.t.Repo.DefaultBranch)) + ", so it is not repaired here."
	}
	runs := 0
	if p.t.PR != nil && p.t.PR.Repair != nil {
		runs = p.t.PR.Repair.Runs
	}
	switch runs {
	case 0:
		return "fails, and no agent run is left to repair it."
	case 1:
		return "still fails after a run of the agent to repair it."
	}
	return fmt.Sprintf("still fails after %d runs of the agent in a row to repair it.", runs)
}

// again says how errand begins to repair checks again.
func (p post) again() string {
	return "After a push, a review, or a comment that mentions " + markdown.Code("@"+p.v.Slug) + ", errand tries again."
}

// roundExpired says that nobody approved the changes of a round that errand began by itself, and how it begins another one.
func (p post) roundExpired() string {
	changes := "the changes"
	if plan := p.revision(); plan != nil {
		changes = "the " + markdown.Link(fmt.Sprintf("changes, revision %d", plan.Revision), plan.CommentURL)
	}
	pr := p.t.PR
	why, again, waits := "repair failing checks of this pull request", p.again(), pr != nil && pr.Repair != nil && pr.Repair.HandedOver
	if p.Reason == state.RoundConflict {
		waits = pr != nil && pr.Updates > state.MaxUpdates
		why = "resolve a conflict with " + markdown.Code(cmp.Or(p.t.Branch.Base, p.t.Repo.DefaultBranch))
		again = "Resolve the conflict, or write " + p.v.say("update") + " to have errand do it. It does not try again by itself."
	}
	if !waits {
		again = "If that is still necessary, errand tries again by itself."
	}
	return markdown.Paragraphs(
		addressed(p.By, fmt.Sprintf("nobody approved %s in time, so they were not published. They were meant to %s. The pull request stays open, unchanged.", changes, why)),
		again,
	)
}

// flakyText names checks that failed, and succeeded on the same commit.
func flakyText(p *state.PR) string {
	if p.Repair == nil || len(p.Repair.Flaky) == 0 {
		return ""
	}
	var names []string
	for i, n := range p.Repair.Flaky {
		if i == 5 {
			names = append(names, fmt.Sprintf("and %d more", len(p.Repair.Flaky)-i))
			break
		}
		names = append(names, markdown.Code(markdown.CutWithNote(n, 80)))
	}
	return strings.Join(names, ", ") + ": failed, then succeeded when run again on the same commit"
}
