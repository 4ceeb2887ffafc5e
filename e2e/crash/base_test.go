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

// baseWork matches the operations that compare a pull request's branch with its base, have GitHub update it, and publish the round that
// resolves a conflict.
const baseWork = `apply base_|updatePullRequestBranch|updateRefs`

// TestBaseUpdates kills errand, and lets calls fail, at every fifth failpoint of an update of the branch by GitHub and of a round that
// resolves a conflict with the base. The outcome is the same each time: one merge by GitHub, one by the agent, and one answer to each command.
func TestBaseUpdates(t *testing.T) {
	t.Parallel()
	playPlot(t, baseUpdates, followed(), matches(baseWork), fifth)
}

// TestHeavyBaseUpdates is TestBaseUpdates at every seventh of all failpoints since the first command, of which there are 450.
func TestHeavyBaseUpdates(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, baseUpdates, followed(), matches(``), seventh)
}

// baseRules implement the issue, and resolve a conflict with the base by a merge.
const baseRules = `rules:
  - name: implement
    step: implement
    turns:
      - bash: ["printf 'hello, world\\n' > greeting.txt && git add -A && git commit -qm 'Greet the world'"]
      - text: |
          Done.

          ~~~errand
          {"outcome":"done","title":"Greet the world","summary":"The greeting is complete."}
          ~~~
  - name: conflict
    step: review
    match: "conflicts with its base"
    turns:
      - bash: ["git fetch -q origin main; git merge -q {{index (findAll \"merge its commit ([0-9a-f]{40})\" .Prompt) 0}}; printf 'hello, world\\nfrom main\\n' > greeting.txt; git add -A; git commit -qm 'Merge main'"]
      - text: |
          Both lines are there.

          ~~~errand
          {"outcome":"done","summary":"Both lines are there."}
          ~~~
`

// followed returns the outcome of baseUpdates, written by hand.
func followed() outcome {
	return outcome{
		Issue:  "closed",
		Phases: []string{"queued", "implementing", "pr_open", "addressing_review", "pr_open", "done"},
		Pulls:  []string{"#2 merged=true by errand[bot]"},
		Comments: []string{
			"#1 comment: ### Done",
			"#1 comment: @ada, the pull request [#…](http://….…:…/acme/slug/pull/…) is open: Greet the world.",
			"#1 comment: [#…](http://….…:…/acme/slug/pull/…) is merged; the task is done.",
			"#2 comment: **Provenance.** A signed statement of how these changes came about.",
			"#2 comment: **Round … answered.** Both lines are there.",
			"#2 comment: GitHub merged `main` into the branch, which is at [`…`](http://….…:…/acme/slug/commit/…) now. The checks start again.",
			"#2 comment: The branch has the newest commits of `main`. It is at [`…`](http://….…:…/acme/slug/commit/…).",
		},
		Runs: []string{"implement ended ok", "review ended ok"},
		Branch: []string{
			"Greet the world", "Merge branch 'main' into errand/1-slugs-end-in-a-hyphen", "Address review feedback — Merge main",
		},
	}
}

// baseUpdates asks for an update of the branch when the base has a new commit, and then pushes one to the base that conflicts with the branch.
func baseUpdates(ctx context.Context, l *life) (outcome, error) {
	p := &person{life: l}
	rules, err := simmodel.ParseScript([]byte(strings.ReplaceAll(baseRules, "~~~", "```")))
	if err != nil {
		return outcome{}, err
	}
	if err := l.world.Model.SetScript(rules); err != nil {
		return outcome{}, err
	}
	push := func(path, text string) error {
		_, err := p.ada().PushCommit(demo.Full, simgithub.Commit{Branch: "main", Message: "Change " + path, Files: map[string]string{path: text}})
		return err
	}
	var t *state.Task
	for _, step := range []func() error{
		func() error { return push(".errand.yml", "plan: none\n") },
		func() error { return p.open(ctx) },
		func() (err error) { t, err = l.inPhase(ctx, 1, state.PhasePROpen); return err },
		func() error { return l.settle(ctx) },
		func() error { l.script.from = l.script.operations(); return push("NEWS.md", "news\n") },
		func() error { return l.settle(ctx) }, // otherwise a comparison for the push may see the update before the command's does
		func() error { _, err := p.ada().Comment(demo.Full, t.PR.Number, "@errand update"); return err },
		func() error { return l.commented(ctx, t.PR.Number, "GitHub merged `main`") },
		func() error { return push("greeting.txt", "hello\nfrom main\n") },
		func() error { return l.commented(ctx, t.PR.Number, "Round 1 answered") },
		func() error { _, err := p.ada().Comment(demo.Full, t.PR.Number, "@errand update"); return err },
		func() error { return l.commented(ctx, t.PR.Number, "The branch has the newest commits") },
		func() error { return p.ada().Merge(demo.Full, t.PR.Number, simgithub.Merge{}) },
		func() (err error) { t, err = l.inPhase(ctx, 1, state.PhaseDone); return err },
	} {
		if err := step(); err != nil {
			return outcome{}, err
		}
	}
	return l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		o.ofTask(t)
		if t.PR.Conflict || t.PR.Update != (state.UpdateRequest{}) || t.Round != 1 {
			o.Wrong = append(o.Wrong, fmt.Sprintf("in round %d the conflict is %v and the command %+v", t.Round, t.PR.Conflict, t.PR.Update))
		}
	})
}
