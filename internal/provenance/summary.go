package provenance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// Summary returns the content of a statement in words, one line each, without Markdown.
func (p *Predicate) Summary() (list []string) {
	list = append(list, fmt.Sprintf("Issue #%d, as frozen on %s (SHA-256 %s)", p.Issue.Number, day(p.Issue.FrozenAt), short(p.Issue.TextSHA256)))
	if p.Plan != nil {
		list = append(list, fmt.Sprintf("Plan: revision %d, SHA-256 %s", p.Plan.Number, p.Plan.Hash))
	}
	if a := p.Approval; a != nil {
		list = append(list, "Approval: "+a.words())
	}
	for _, e := range p.EarlierPlans[max(0, len(p.EarlierPlans)-3):] {
		list = append(list, fmt.Sprintf("%s, revision %d, SHA-256 %s: %s", markdown.Capitalize(e.name()), e.Number, short(e.Hash), e.Approval.words()))
	}
	for _, c := range p.Changes {
		list = append(list, fmt.Sprintf("Changes, revision %d, SHA-256 %s: %s", c.Number, short(c.Hash), c.Approval.words()))
	}
	if n := len(p.Conditions); n > 0 {
		list = append(list, fmt.Sprintf("Conditions and messages by people: %d", n))
	}
	var agents []string
	for _, r := range p.Runs {
		if r.Adapter != "" {
			agents = append(agents, strings.TrimSpace(r.Adapter+" "+r.Model))
		}
	}
	slices.Sort(agents)
	if agents = slices.Compact(agents); len(agents) > 0 {
		list = append(list, fmt.Sprintf("Agents: %s; %s", strings.Join(agents, ", "), words.Many(len(p.Runs), "run")))
	}
	for _, q := range p.Publications[max(0, len(p.Publications)-10):] {
		list = append(list, q.words())
	}
	return append(list, "Key: "+p.Deployment.KeyID)
}

// words describes an approval without mentioning anybody.
func (a Approval) words() string {
	switch state.ApprovalVia(a.Via) {
	case state.ViaSettings:
		return "none required by the repository's settings"
	case state.ViaReaction:
		return fmt.Sprintf("👍 by %s (%s access) on %s", a.By.Login, a.Permission, day(a.GivenAt))
	case state.ViaBox:
		return fmt.Sprintf("ticked by %s (%s access) on %s", a.By.Login, a.Permission, day(a.GivenAt))
	}
	return fmt.Sprintf("command by %s (%s access) on %s", a.By.Login, a.Permission, day(a.GivenAt))
}

// words describes a publication.
func (q Publication) words() string {
	if u := q.Update; u != nil {
		done := map[string]string{string(state.UpdateMerge): "merged the base into", string(state.UpdateRebase): "rebased"}[u.Method]
		if q.Unconfirmed {
			return fmt.Sprintf("GitHub was asked to update the branch at %s by a %s; errand does not know the result", short(u.Before), u.Method)
		}
		return fmt.Sprintf("GitHub %s the branch at %s: %s (tree %s)", done, short(u.Before), short(q.Head), short(q.Tree))
	}
	var failed, passed int
	for _, c := range q.Checks {
		switch state.CheckOutcome(c.Outcome) {
		case state.CheckPassed:
			passed++
		case state.CheckFailed, state.CheckTimedOut:
			failed++
		}
	}
	checks := "no checks"
	if len(q.Checks) > 0 {
		checks = fmt.Sprintf("checks reported by the VM: %d passed, %d failed", passed, failed)
	}
	published := "Published"
	if q.Unconfirmed {
		published = "Perhaps published"
	}
	return fmt.Sprintf("%s: %s up to %s (tree %s); %s", published, words.Many(len(q.Commits), "commit"), short(q.Head), short(q.Tree), checks)
}
