package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestReplanAfterRefusalKeepsCheckoutPosition: work from before a request for a new plan no longer counts, but the
// position of the VM's checkout is kept until a run changes it, because the VM may be suspended before.
func TestReplanAfterRefusalKeepsCheckoutPosition(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]settings.PlanMode{"no plans": settings.PlanNone, "one plan": settings.PlanOneStep, "two plans": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			start := func(base string) {
				s := settings.Default()
				if plan != "" {
					s.Plan = plan
				}
				l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true, Branch: state.Branch{Name: "errand/1-bug", Base: "main", BaseSHA: base}}}})
			}
			launch := func(root string) {
				l.now = l.now.Add(time.Second)
				id := l.task.Run.ID
				l.do(event.Event{Run: id, Payload: event.Launched{Launch: state.Launch{Run: id, VM: state.VM{Name: "vm1"}, Started: l.now, BaseSHA: root, Root: root, VMHead: root}}})
			}
			l.trigger()
			start("b0")
			for id := int64(11); l.task.Phase != state.PhaseImplementing; id++ {
				launch("b0")
				l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
				l.postPlan(id)
				l.approve()
			}
			launch("b0")
			built := l.task.Run.Started
			l.end(state.RunResult{Outcome: "done", Summary: "Built."})
			l.do(event.Event{Run: l.task.Runs[len(l.task.Runs)-1].ID, Payload: event.Collected{Work: &state.Work{Run: l.task.Runs[len(l.task.Runs)-1].ID, LocalHead: "h", Paths: 1}, Refusals: []state.Refusal{{Rule: "secret", Path: "a"}}}})
			l.want(state.PhaseAwaitingAnswer)
			if l.task.PlanningBegan().After(built) {
				t.Errorf("got planning since %s, want it before the work of %s", l.task.PlanningBegan(), built)
			}
			l.now = l.now.Add(time.Minute)
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 99, Mention: true, Body: "@errand replan", At: l.now}, Orders: []state.Order{{Verb: state.VerbReplan}}}})
			start("b1")
			if b := l.task.Branch; b.BaseSHA != "b1" || b.Root != "b0" || b.VMHead != "b0" {
				t.Errorf("got base %s, checkout %s, root %s; want b1, b0, b0", b.BaseSHA, b.VMHead, b.Root)
			}
			if !l.task.PlanningBegan().After(built) {
				t.Errorf("got planning since %s, want it after the work of %s", l.task.PlanningBegan(), built)
			}
		})
	}
}
