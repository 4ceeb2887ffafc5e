package comment

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// showsMoney reports whether comments on a task may name costs, numbers of tokens and caps. A repository whose visibility is
// unknown counts as public.
func showsMoney(t *state.Task) bool { return t.Settings.Comments.Money.Shown(t.Repo.Private) }

// effort returns the runs and the time of a task's agents, and their cost if comments may name it.
func effort(t *state.Task) string {
	s := fmt.Sprintf("%s, %s of agent time", words.Many(runs(t), "run"), words.Span(t.AgentTime()))
	if !showsMoney(t) {
		return s
	}
	return spending(t.Money) + " in " + s
}

// Parts of the sentences of errand about caps, in order: the amount of the cap; the amounts that are used, after a colon; and the
// amount in a hint. Any other amount is replaced.
var (
	capAmount   = regexp.MustCompile(`\bcap of (?:\$[\d.,]*\d|[\d,]*\d tokens)`)
	usedAmounts = regexp.MustCompile(`: (?:it has (?:cost|used) )?\$?[\d.,]*\d(?: is spent| are used)?(?:, and the smallest useful answer may take \$?[\d.,]*\d)?`)
	hintAmount  = regexp.MustCompile(` by (?:\$[\d.,]*\d|[\d,]*\d tokens)`)
	otherAmount = regexp.MustCompile(`\$[\d.,]*\d`)
	vmCost      = regexp.MustCompile(`\bVMs and images have cost [\d.]+ [A-Z]+ (today|this month); the limit is [\d.]+ [A-Z]+`)
)

// amounts returns a sentence by errand as comments on the task may show it: if they do not name costs, without the amounts of
// sentences about caps and the cost of VMs.
func amounts(t *state.Task, s string) string {
	if showsMoney(t) {
		return s
	}
	s = vmCost.ReplaceAllString(s, "the limit for the cost of VMs and images $1 is reached")
	if !strings.Contains(s, "cap of ") && !strings.Contains(s, "raise the cap") {
		return s
	}
	s = capAmount.ReplaceAllString(s, "cap")
	s = usedAmounts.ReplaceAllString(s, "")
	s = hintAmount.ReplaceAllString(s, "")
	return otherAmount.ReplaceAllString(s, "an amount")
}

// estimatedCost is the cost in an estimate, which is a list that may begin with words of the agent.
var estimatedCost = regexp.MustCompile(`(?:, |^)(?:about )?\$[\d.,]*\d`)

// estimate returns a plan's estimate as comments on the task may show it.
func estimate(t *state.Task, p *state.Plan) string {
	if showsMoney(t) {
		return p.Estimate
	}
	return otherAmount.ReplaceAllString(strings.TrimPrefix(estimatedCost.ReplaceAllString(p.Estimate, ""), ", "), "an amount")
}
