package state

import "testing"

// TestAwaited: what a task awaits follows from its wait first, then from its phase and newest plan.
func TestAwaited(t *testing.T) {
	t.Parallel()
	plan := func(change func(*Plan)) func(*Task) {
		return func(t *Task) {
			p := Plan{Revision: 1, Comment: 7}
			change(&p)
			t.Phase, t.Plans = PhaseAwaitingPlanApproval, []Plan{p}
		}
	}
	phase := func(p Phase) func(*Task) { return func(t *Task) { t.Phase = p } }
	for name, c := range map[string]struct {
		change func(*Task)
		want   Awaited
	}{
		"a limit":               {func(t *Task) { t.Phase, t.Waiting = PhaseAwaitingAnswer, &Waiting{Kind: WaitLimit} }, AwaitedCondition},
		"ended while waiting":   {func(t *Task) { t.Phase, t.Waiting = PhaseDone, &Waiting{Kind: WaitLimit} }, AwaitedEnd},
		"canceled":              {phase(PhaseCancelled), AwaitedEnd},
		"no plan yet":           {phase(PhaseAwaitingPreliminaryApproval), AwaitedPosting},
		"a plan not posted":     {plan(func(p *Plan) { p.Comment = 0 }), AwaitedPosting},
		"a plan":                {plan(func(*Plan) {}), AwaitedApproval},
		"a stale plan":          {plan(func(p *Plan) { p.Stale = "changed" }), AwaitedRevision},
		"any comment":           {phase(PhaseAwaitingAnswer), AwaitedComment},
		"a question":            {func(t *Task) { t.Phase, t.Question = PhaseAwaitingAnswer, &Question{} }, AwaitedAnswer},
		"a stopped run":         {func(t *Task) { t.Phase, t.Question = PhaseAwaitingAnswer, &Question{Kind: AskStopped} }, AwaitedRestart},
		"a pull request":        {phase(PhasePROpen), AwaitedReview},
		"an approved one":       {func(t *Task) { t.Phase, t.PR = PhasePROpen, &PR{Ready: true} }, AwaitedMerge},
		"interrupted":           {phase(PhaseInterrupted), AwaitedResumption},
		"failed":                {phase(PhaseFailed), AwaitedRetry},
		"failed at a cap":       {func(t *Task) { t.Phase, t.End = PhaseFailed, &End{Class: ClassBudget} }, AwaitedBudget},
		"canceled at a cap":     {func(t *Task) { t.Phase, t.End = PhaseCancelled, &End{Class: ClassBudget} }, AwaitedEnd},
		"queued, nothing to do": {phase(PhaseQueued), AwaitedRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := &Task{}
			c.change(task)
			if got := task.Awaited(); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}
