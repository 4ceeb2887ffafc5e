package crash

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// expected returns the outcome of the demo's life, written by hand after its script: one issue, two preliminary plans
// of which the second is approved, one plan, one implementation, one pull request, one review that is answered in two
// threads, and the merge. It reveals errors that occur in all lives alike.
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
			"#1 comment: [#…](http://….…:…/acme/slug/pull/…) is merged; the task is done.",
			"#2 comment: **Provenance.** A signed statement of how these changes came about.",
			"#2 review: **… of … addressed.** Named the variable `gap` again and added a test for the empty title.",
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

// chargeErrors returns the errors in the charges of a life's runs. The model answers the first plan and the plan twice,
// because they read the repository before they write, and the second plan once; checks make no model calls. Each fault
// may add one charged answer, because the call is repeated or because it is unknown whether errand made it before it
// died. No answer may be missing.
func chargeErrors(t *state.Task, faults int) (wrong []string) {
	answers := []int{2, 1, 2, 4, 0, 3, 0} // as in expected().Runs
	for i, r := range t.Runs {
		if i >= len(answers) {
			break // further runs are reported elsewhere
		}
		if d := r.Answers - answers[i]; d < 0 || d > faults || answers[i] == 0 && d != 0 {
			wrong = append(wrong, fmt.Sprintf("run %d, %s, was charged for %d answers, want %d", i+1, r.Kind, r.Answers, answers[i]))
		}
	}
	return wrong
}

// billErrors compares a life's charges with the bill of the model's provider: every answer is paid for. In a life
// without faults they are equal to the token; each fault may add the estimate of one call that may or may not have been
// made. An answer that was lost on its way to a living errand (unheard) may be missing, because the provider closed the
// connection like one that bills nothing.
func billErrors(t *state.Task, served []simmodel.Record, faults, unheard int) (wrong []string) {
	var cost, dearest, guess int64
	answers := -unheard
	for _, r := range served {
		if r.Status != http.StatusOK {
			continue
		}
		var asked struct {
			Model string `json:"model"`
			Most  int64  `json:"max_tokens"`
		}
		if err := json.Unmarshal(r.Body, &asked); err != nil {
			return append(wrong, "a call that cannot be read: "+err.Error())
		}
		price, known := modelapi.DefaultPrices().Find(asked.Model)
		if !known || asked.Most <= 0 {
			return append(wrong, fmt.Sprintf("a call of %q with %d tokens: its price is not known", asked.Model, asked.Most))
		}
		u := r.Usage
		one := price.Cost(modelapi.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)})
		cost, answers = cost+one, answers+1
		dearest = max(dearest, one)
		guess = max(guess, price.Cost(modelapi.Usage{Input: int64(len(r.Body)), Output: asked.Most}))
	}
	booked := 0
	for _, r := range t.Runs {
		booked += r.Answers
	}
	least, most := cost-int64(unheard)*dearest, cost+int64(faults)*guess
	if booked < answers || booked > answers+unheard+faults {
		wrong = append(wrong, fmt.Sprintf("the model answered %d times, but %d answers are booked", answers+unheard, booked))
	}
	if got := t.Money.MicroUSD; got < least || got > most {
		wrong = append(wrong, fmt.Sprintf("the model's provider bills %d millionths of a dollar, but %d are booked (want %d to %d)", cost, got, least, most))
	}
	return wrong
}

// lostAnswers returns the number of model answers that were lost while errand lived on.
func (l *life) lostAnswers() (n int) {
	for _, p := range l.script.reached() {
		if p.op == "model: ask" && p.when == unheard {
			n++
		}
	}
	return n
}

// faults returns the number of faults in a life.
func (l *life) faults() int { return len(l.script.reached()) + l.killed }
