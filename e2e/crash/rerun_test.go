package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// TestRerun kills errand, and lets calls fail, at every failpoint of the request that runs a failing check again. The check is run again once
// each time, and people are asked once to look at it.
func TestRerun(t *testing.T) {
	t.Parallel()
	playPlot(t, failingCheck, ranAgain(), matches(`rerun`), 1)
}

// TestHeavyRerun is TestRerun at every seventh failpoint since the check failed.
func TestHeavyRerun(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, failingCheck, ranAgain(), matches(``), seventh)
}

// ranAgain returns the outcome of failingCheck, written by hand.
func ranAgain() outcome {
	return outcome{
		Issue: "closed",
		Phases: []string{
			"queued", "preliminary_planning", "awaiting_preliminary_approval", "planning", "awaiting_plan_approval", "implementing", "pr_open", "done",
		},
		Pulls: []string{"#2 merged=true by errand[bot]"},
		Plans: []string{`preliminary 1 posted=true stale="" superseded=false`, `thorough 1 posted=true stale="" superseded=false`},
		Comments: []string{
			"#1 comment: ## Plan, revision … (`…`)",
			"#1 comment: ## Preliminary plan, revision … (`…`)",
			"#1 comment: ### Done",
			"#1 comment: @ada, the pull request [#…](http://….…:…/acme/slug/pull/…) is open: Leave no hyphen at the ends of a slug.",
			"#1 comment: [#…](http://….…:…/acme/slug/pull/…) is merged; the task is done.",
			"#2 comment: **Provenance.** A signed statement of how these changes came about.",
			"#2 comment: @ada, … check of this pull request fails, and errand leaves it to you:",
		},
		Runs:   []string{"preliminary_plan ended ok", "plan ended ok", "implement ended ok", "check ended ok"},
		Branch: []string{"Leave no hyphen at the ends of a slug\n\nThe hyphen of a gap is written only when another word follows."},
	}
}

// failingCheck reports a job that fails on the pull request's head, fails again there, and fails on the base, too.
func failingCheck(ctx context.Context, l *life) (outcome, error) {
	p, gh := &person{life: l}, l.world.GitHub
	more := gh.App().Permissions
	more["actions"] = "write"
	gh.GrantPermissions(strings.Split(demo.Full, "/")[0], more)
	var head string
	for _, step := range []func() error{
		func() error { return p.open(ctx) },
		func() error { return l.approve(ctx, p, firstPlan) },
		func() error { return l.approve(ctx, p, "## Plan, revision 1") },
		func() error {
			t, err := l.inPhase(ctx, 1, state.PhasePROpen)
			if err == nil {
				p.pull, head = t.PR.Number, t.Branch.Head
				err = l.settle(ctx)
			}
			return err
		},
		func() error {
			l.script.from = l.script.operations()
			repo, _ := gh.Snapshot().Repo(demo.Full)
			return gh.Job(demo.Full, repo.Git.Resolve("main"), simgithub.Job{Name: "unit", Conclusion: "failure"})
		},
		func() error {
			return gh.Job(demo.Full, head, simgithub.Job{Name: "unit", Conclusion: "failure", Rerun: "failure"})
		},
		func() error { return l.commented(ctx, p.pull, "leaves it to you") },
		func() error { return l.settle(ctx) },
		func() error { return p.ada().Merge(demo.Full, p.pull, simgithub.Merge{}) },
		func() error { _, err := l.inPhase(ctx, 1, state.PhaseDone); return err }, // which also restarts an errand that died
	} {
		if err := step(); err != nil {
			return outcome{}, err
		}
	}
	return l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		o.ofTask(t)
		runs := 0
		repo, _ := gh.Snapshot().Repo(demo.Full)
		for _, k := range repo.CheckRuns {
			if k.HeadSHA == head {
				runs++
			}
		}
		if runs != 2 {
			o.Wrong = append(o.Wrong, fmt.Sprintf("the check ran %d times on the head, want a run and a re-run", runs))
		}
	})
}
