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

// TestCanceledWork kills errand, and lets calls fail, at every fifth failpoint of the jobs that save the work of a canceled task
// and continue it. The outcome is the same each time: one last comment, and the work, which `retry` finds.
func TestCanceledWork(t *testing.T) {
	t.Parallel()
	playPlot(t, canceled, retried(), matches(`stop|saved|release|commit: apply (commented|posted)|POST /issues/N/comments`), fifth)
}

// TestHeavyCanceledWork is TestCanceledWork at every third failpoint since the command `cancel`.
func TestHeavyCanceledWork(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, canceled, retried(), matches(``), third)
}

// retried returns the outcome of canceled, written by hand.
func retried() outcome {
	return outcome{
		Issue:  "open",
		Phases: []string{"queued", "implementing", "awaiting_publish_approval", "cancelled", "awaiting_publish_approval", "implementing", "pr_open"},
		Pulls:  []string{"#2 merged=false by errand[bot]"},
		Plans:  []string{`publish 1 posted=true stale="" superseded=false`},
		Comments: []string{
			"#1 comment: ## Changes, revision … (`…`)",
			"#1 comment: ### Canceled",
			"#1 comment: ### Pull request open",
			"#1 comment: @ada, the pull request [#…](http://….…:…/acme/slug/pull/…) is open: Leave no hyphen at the ends of a slug.",
			"#1 comment: The task was canceled. `@ada` canceled it",
			"#2 comment: **Provenance.** A signed statement of how these changes came about.",
		},
		Runs:   []string{"implement ended ok"},
		Branch: []string{"Leave no hyphen at the ends of a slug\n\nThe hyphen of a gap is written only when another word follows."},
	}
}

// canceled cancels a task whose changes wait for approval, retries it when its work is saved, and approves the changes. The task
// restores the work on its next VM.
func canceled(ctx context.Context, l *life) (outcome, error) {
	p := &person{life: l}
	_, err := p.ada().PushCommit(demo.Full, simgithub.Commit{
		Branch: "main", Message: "Ask before publishing", Files: map[string]string{".errand.yml": "plan: none\npublish: after-approval\n"},
	})
	if err != nil {
		return outcome{}, err
	}
	if err := p.open(ctx); err != nil {
		return outcome{}, err
	}
	if _, err := l.inPhase(ctx, 1, state.PhaseAwaitingPublishApproval); err != nil {
		return outcome{}, err
	}
	if _, err := l.comment(ctx, "revision 1"); err != nil {
		return outcome{}, err
	}
	if err := l.settle(ctx); err != nil {
		return outcome{}, err
	}
	l.script.from = l.script.operations()
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand cancel"); err != nil {
		return outcome{}, err
	}
	if err := l.commented(ctx, p.issue, "The task was canceled"); err != nil {
		return outcome{}, err
	}
	if err := l.settle(ctx); err != nil {
		return outcome{}, err
	}
	t, err := l.task(ctx)
	if err != nil {
		return outcome{}, err
	}
	if t.Suspended == nil || t.VM != nil {
		return outcome{}, fmt.Errorf("the canceled task has the archive %+v and the VM %+v", t.Suspended, t.VM)
	}
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand retry"); err != nil {
		return outcome{}, err
	}
	if _, err := l.inPhase(ctx, 2, state.PhaseAwaitingPublishApproval); err != nil {
		return outcome{}, err
	}
	if err := l.approve(ctx, p, "revision 1"); err != nil {
		return outcome{}, err
	}
	if _, err := l.inPhase(ctx, 2, state.PhasePROpen); err != nil {
		return outcome{}, err
	}
	o, err := l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		o.ofTask(t)
		if t.WorkToRestore() == nil {
			o.Wrong = append(o.Wrong, "the archive of the work is gone")
		}
	})
	for i := range o.Comments {
		o.Comments[i], _, _ = strings.Cut(o.Comments[i], ". The ") // the rest has a date, and tells whether the work is saved by then
	}
	return o, err
}
