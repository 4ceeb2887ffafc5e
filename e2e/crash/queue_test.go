package crash

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// handOver matches the operations with which a VM passes from one task to another.
const handOver = `apply (vm_wanted|queue_moved|slept|released|poked|held_up)|intend VM|VM (end|deleted)`

// TestQueue kills errand, and lets calls fail, at every fifth failpoint at which a task that waits for people gives up the only VM to
// another one. The outcome is the same each time: both tasks get it, and no work is lost.
func TestQueue(t *testing.T) {
	t.Parallel()
	playPlot(t, sharedVM, shared(), matches(handOver), fifth)
}

// TestHeavyQueue is TestQueue at every one of these failpoints.
func TestHeavyQueue(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	playPlot(t, sharedVM, shared(), matches(handOver), 1)
}

// shared returns the outcome of sharedVM, written by hand.
func shared() outcome {
	const end = "The task was canceled. `@ada` canceled it. Until … UTC, `@errand retry` has the plan wait for approval again; `@errand plan` starts a new task."
	return outcome{
		Issue: "open",
		Phases: []string{
			"task 1:", "queued", "preliminary_planning", "awaiting_preliminary_approval", "planning", "awaiting_plan_approval", "cancelled",
			"task 2:", "queued", "preliminary_planning", "awaiting_preliminary_approval", "cancelled",
		},
		Plans: []string{
			`preliminary 1 posted=true stale="" superseded=false`, `thorough 1 posted=true stale="" superseded=false`,
			`preliminary 1 posted=true stale="" superseded=false`,
		},
		Comments: []string{
			"#1 comment: ## Plan, revision … (`…`)", "#1 comment: ## Preliminary plan, revision … (`…`)", "#1 comment: ### Canceled", "#1 comment: " + end,
			"#2 comment: ## Preliminary plan, revision … (`…`)", "#2 comment: ### Canceled", "#2 comment: " + end,
		},
		Runs: []string{"preliminary_plan ended ok", "plan ended ok", "preliminary_plan ended ok"},
	}
}

// sharedVM plans two issues with one VM: the second task gets it while the first plan waits, and the first one gets it back.
func sharedVM(ctx context.Context, l *life) (outcome, error) {
	first, second := &person{life: l}, &person{life: l}
	plan := func(p *person, phase state.Phase) error {
		return l.until(ctx, fmt.Sprintf("#%d to be %s", p.issue, phase), func() (bool, error) {
			tasks, err := l.world.Server.Store().AllTasks(ctx, state.TaskKey{}, 2)
			return slices.ContainsFunc(tasks, func(t *state.Task) bool {
				return t.Key.Issue == p.issue && t.Phase == phase && (t.Ended() || t.NewestPlan().Posted())
			}), err
		})
	}
	for _, step := range []func() error{
		func() error { return first.open(ctx) },
		func() error { return plan(first, state.PhaseAwaitingPreliminaryApproval) },
		func() error { l.script.from = l.script.operations(); return second.open(ctx) },
		func() error { return plan(second, state.PhaseAwaitingPreliminaryApproval) },
		func() error { return l.approve(ctx, first, firstPlan) },
		func() error { return plan(first, state.PhaseAwaitingPlanApproval) },
		func() error { return cancelled(first) },
		func() error { return cancelled(second) },
		func() error { return plan(first, state.PhaseCancelled) },
		func() error { return plan(second, state.PhaseCancelled) },
	} {
		if err := step(); err != nil {
			return outcome{}, err
		}
	}
	return l.outcomeOf(ctx, 2, func(o *outcome, t *state.Task) {
		o.Phases = append(o.Phases, fmt.Sprintf("task %d:", t.Key.Issue))
		o.ofTask(t)
		if len(t.VMs) == 0 {
			o.Wrong = append(o.Wrong, fmt.Sprintf("task %d had no VM", t.Key.Issue))
		}
	})
}

// cancelled lets a person cancel a task.
func cancelled(p *person) error {
	_, err := p.ada().Comment(demo.Full, p.issue, "@errand cancel")
	return err
}
