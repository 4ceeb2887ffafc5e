package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// mergeWork matches the operations that mark a pull request ready for review, and merge it.
const mergeWork = `apply pr_finished|markPullRequestReadyForReview|mergePullRequest|requested_reviewers`

// TestMerge kills errand, and lets calls fail, at every second failpoint of the operations that mark a draft ready and merge it. It becomes ready once
// and is merged once each time.
func TestMerge(t *testing.T) {
	t.Parallel()
	playPlot(t, mergedByErrand, finished(), matches(mergeWork), 2)
}

// TestHeavyMerge is TestMerge at every seventh failpoint since the draft's checks succeeded.
func TestHeavyMerge(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, mergedByErrand, finished(), matches(``), seventh)
}

// finished returns the outcome of mergedByErrand, written by hand.
func finished() outcome {
	return outcome{
		Issue:  "closed",
		Phases: []string{"queued", "implementing", "pr_open", "done"},
		Pulls:  []string{"#2 merged=true by errand[bot]"},
		Comments: []string{
			"#1 comment: ### Done",
			"#1 comment: @ada, the draft pull request [#…](http://….…:…/acme/slug/pull/…) is open: Greet the world.",
			"#1 comment: [#…](http://….…:…/acme/slug/pull/…) is merged; the task is done.",
			"#2 comment: **Provenance.** A signed statement of how these changes came about.",
		},
		Runs:   []string{"implement ended ok"},
		Branch: []string{"Greet the world"},
	}
}

// mergedByErrand reports that the required check of a draft succeeded, and approves the pull request then.
func mergedByErrand(ctx context.Context, l *life) (outcome, error) {
	p, gh := &person{life: l}, l.world.GitHub
	rules, err := simmodel.ParseScript([]byte(strings.ReplaceAll(baseRules, "~~~", "```")))
	if err != nil {
		return outcome{}, err
	}
	if err := l.world.Model.SetScript(rules); err != nil {
		return outcome{}, err
	}
	var t *state.Task
	for _, step := range []func() error{
		func() error {
			return gh.RequireChecks(demo.Full, "main", simgithub.RequiredCheck{Context: "unit"})
		},
		func() error {
			_, err := p.ada().PushCommit(demo.Full, simgithub.Commit{Branch: "main", Message: "Settings",
				Files: map[string]string{".errand.yml": "plan: none\ndraft: until-green\nmerge: when-approved\n"}})
			return err
		},
		func() error { return p.open(ctx) },
		func() (err error) { t, err = l.inPhase(ctx, 1, state.PhasePROpen); return err },
		func() error { return l.settle(ctx) },
		func() error {
			l.script.from = l.script.operations()
			return gh.Job(demo.Full, t.Branch.Head, simgithub.Job{Name: "unit", Conclusion: "success"})
		},
		func() error {
			return l.until(ctx, "the draft to be ready", func() (bool, error) {
				repo, _ := gh.Snapshot().Repo(demo.Full)
				return !repo.Issues[t.PR.Number].Pull.Draft, nil
			})
		},
		func() error {
			_, err := p.ada().Review(demo.Full, t.PR.Number, simgithub.NewReview{Event: "APPROVE"})
			return err
		},
		func() (err error) { t, err = l.inPhase(ctx, 1, state.PhaseDone); return err },
		func() error { return l.settle(ctx) },
	} {
		if err := step(); err != nil {
			return outcome{}, err
		}
	}
	return l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		o.ofTask(t)
		repo, _ := gh.Snapshot().Repo(demo.Full)
		if by := repo.Issues[t.PR.Number].Pull.MergedBy; by != gh.App().BotLogin {
			o.Wrong = append(o.Wrong, fmt.Sprintf("%s merged the pull request", by))
		}
		if ready := countEvents(repo.Issues[t.PR.Number], "ready_for_review"); ready != 1 {
			o.Wrong = append(o.Wrong, fmt.Sprintf("it was marked ready %d times", ready))
		}
	})
}

// countEvents counts the events of a kind in the timeline of an issue or pull request.
func countEvents(i *simgithub.Issue, kind string) int {
	n := 0
	for _, e := range i.Events {
		if e.Event == kind {
			n++
		}
	}
	return n
}
