package crash

import (
	"fmt"

	"github.com/errand-bot/errand/state"
)

// expected is what the demo's life comes to, as a person reads its script: one issue, two preliminary plans of which the second
// is approved, one plan, one implementation, one pull request, one review that is answered in two threads, and the merge. What
// the code does alike in all lives, and wrongly, differs from this.
func expected() outcome {
	return outcome{
		Issue: "closed",
		Phases: []string{
			"queued", "preliminary_planning", "awaiting_preliminary_approval", "preliminary_planning", "awaiting_preliminary_approval",
			"planning", "awaiting_plan_approval", "implementing", "pr_open", "addressing_review", "pr_open", "done",
		},
		Pulls: []string{"#2 merged=true by errand[bot]"},
		Plans: []string{
			`preliminary 1 posted=true stale="" superseded=true`,
			`preliminary 2 posted=true stale="" superseded=false`,
			`thorough 1 posted=true stale="" superseded=false`,
		},
		Comments: []string{
			"#1 comment: ## Plan, revision … (`…`)",
			"#1 comment: ## Preliminary plan, revision … (`…`)",
			"#1 comment: ## Preliminary plan, revision … (`…`)",
			"#1 comment: ### Done",
			"#1 comment: @ada, the pull request [#…](http://….…:…/acme/slug/pull/…) is open: Leave no hyphen at the ends of a slug.",
			"#2 comment: [#…](http://….…:…/acme/slug/pull/…) is merged; the task is done.",
			"#2 thread 0: Renamed it back to `gap`; the one letter came from my rewrite.",
			"#2 thread 1: Added: the empty title gives the empty slug.",
		},
		Runs: []string{
			"preliminary_plan ended ok", "preliminary_plan ended ok", "plan ended ok", "implement ended ok", "check ended ok",
			"review ended ok", "check ended ok",
		},
		Said: []string{"decision: The hyphen is written late", "1: Umlauts"},
		Branch: []string{
			"Leave no hyphen at the ends of a slug\n\nThe hyphen of a gap is written only when another word follows.",
			"Address review feedback — name the gap, test the empty title",
		},
	}
}

// charges says what is wrong with what a life's runs were charged for. The model answers the first plan and the plan twice, as they
// look at the repository before they are written, and the second plan once; checks ask no model. Each fault may cost one answer
// that is not booked, because errand died between the answer and its booking, or one that is asked for again.
func charges(t *state.Task, faults int) (wrong []string) {
	answers := []int{2, 1, 2, 4, 0, 3, 0} // as in expected().Runs
	for i, r := range t.Runs {
		if i >= len(answers) {
			break // that there are more runs is said elsewhere
		}
		if d := r.Answers - answers[i]; max(d, -d) > faults || answers[i] == 0 && d != 0 {
			wrong = append(wrong, fmt.Sprintf("run %d, %s, was charged for %d answers, not %d", i+1, r.Kind, r.Answers, answers[i]))
		}
		if faults == 0 && answers[i] > 0 && r.Money.MicroUSD <= 0 {
			wrong = append(wrong, fmt.Sprintf("run %d, %s, was free of charge", i+1, r.Kind))
		}
	}
	return wrong
}

// faults is how many things have happened to a life.
func (l *life) faults() int { return len(l.script.reached()) + l.killed }
