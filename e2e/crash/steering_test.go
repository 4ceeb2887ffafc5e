package crash

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// TestSteering kills errand, and lets calls fail, at every fifth failpoint of the jobs that pass a message to a working agent. The
// outcome is the same each time: the agent is interrupted once, and its plan follows the message.
func TestSteering(t *testing.T) {
	t.Parallel()
	playPlot(t, steering, steered(), exceptLaterTimers(`stop run|start run|reactions|commit: (claim|apply) (due|stop|launch|launched|commented|work_saved)$`), fifth)
}

// TestHeavySteering is TestSteering at every third failpoint since the message.
func TestHeavySteering(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, steering, steered(), exceptLaterTimers(``), third)
}

// exceptLaterTimers is matches without the timers after the first one, which interrupts the agent: on a slow machine others
// expire during the life.
func exceptLaterTimers(expr string) func(p point) bool {
	about := matches(expr)
	return func(p point) bool { return about(p) && (!strings.HasSuffix(p.op, " due") || p.n == 1) }
}

// heldRules hold the agent that plans at a gate, until it gets a message.
const heldRules = `rules:
  - name: held
    step: preliminary_plan
    not: Messages for you
    turns:
      - bash: ["git log"]
      - wait: held
        text: Not reached.
  - name: continued
    step: preliminary_plan
    match: '(?s)Messages for you.*Use a map'
    turns:
      - text: |
          A map is used.

          ~~~errand
          {"outcome":"build","title":"Use a map","summary":"As you said."}
          ~~~
`

// steered returns the outcome of steering, written by hand.
func steered() outcome {
	return outcome{
		Issue:  "open",
		Phases: []string{"queued", "preliminary_planning", "awaiting_preliminary_approval", "cancelled"},
		Plans:  []string{`preliminary 1 posted=true stale="" superseded=false`},
		Comments: []string{
			"#1 comment: ## Preliminary plan, revision … (`…`)",
			"#1 comment: ### Canceled",
			"#1 comment: The task was canceled",
		},
		Runs: []string{"preliminary_plan ended interrupted", "preliminary_plan ended ok"},
	}
}

// steering writes a message while the agent plans, and cancels the task when its plan is posted.
func steering(ctx context.Context, l *life) (outcome, error) {
	p := &person{life: l}
	rules, err := simmodel.ParseScript([]byte(strings.ReplaceAll(heldRules, "~~~", "```")))
	if err != nil {
		return outcome{}, err
	}
	if err := l.world.Model.SetScript(rules); err != nil {
		return outcome{}, err
	}
	if err := p.open(ctx); err != nil {
		return outcome{}, err
	}
	err = l.until(ctx, "the agent's session", func() (bool, error) {
		t, err := l.task(ctx)
		return t != nil && t.Run != nil && t.Run.Session != "", err
	})
	if err != nil {
		return outcome{}, err
	}
	l.script.from = l.script.operations()
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand Use a map."); err != nil {
		return outcome{}, err
	}
	if _, err := l.inPhase(ctx, 1, state.PhaseAwaitingPreliminaryApproval); err != nil {
		return outcome{}, err
	}
	if _, err := l.comment(ctx, "A map is used."); err != nil {
		return outcome{}, err
	}
	if _, err := p.ada().Comment(demo.Full, p.issue, "@errand cancel"); err != nil {
		return outcome{}, err
	}
	if _, err := l.inPhase(ctx, 1, state.PhaseCancelled); err != nil {
		return outcome{}, err
	}
	o, err := l.outcomeWith(ctx, func(o *outcome, t *state.Task) {
		o.ofTask(t)
		if n := len(t.Undelivered()); n > 0 {
			o.Wrong = append(o.Wrong, fmt.Sprintf("%d messages were not delivered", n))
		}
		if first, last := t.Runs[0], t.Runs[len(t.Runs)-1]; first.Session != last.Session {
			o.Wrong = append(o.Wrong, "the session did not continue")
		}
	})
	for i := range o.Comments {
		o.Comments[i], _, _ = strings.Cut(o.Comments[i], ". ") // the rest has a date
	}
	return o, err
}
