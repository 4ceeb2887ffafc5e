package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A task whose VM hours are used up continues when a person adds hours; other additions do not help, and hours do not help a task
// at another cap.
func TestAddedVMHoursContinueTheTask(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		class state.FailureClass
		order state.Order
		hours int
		phase state.Phase
	}{
		"hours":               {state.ClassVMHours, state.Order{Verb: state.VerbBudget, VMHours: 12}, 12, state.PhasePreliminaryPlanning},
		"dollars":             {state.ClassVMHours, state.Order{Verb: state.VerbBudget, MicroUSD: 5_000_000}, 0, state.PhaseFailed},
		"hours at a cost cap": {state.ClassBudget, state.Order{Verb: state.VerbBudget, VMHours: 12}, 12, state.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.task.Run = nil
			l.task.Phase, l.task.Resume, l.task.Step = state.PhaseFailed, state.PhasePreliminaryPlanning, state.StepRun
			l.task.End = &state.End{Class: tc.class, Reason: "a cap is reached"}
			for range 2 {
				p := event.Commented{Comment: &state.Comment{ID: l.now.Unix(), Body: "words", At: l.now, Mention: true}, Orders: []state.Order{tc.order}}
				l.do(event.Event{By: writer, Permission: state.PermissionWrite, Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: p})
			}
			if l.task.Phase != tc.phase || l.task.MoreVMHours != 2*tc.hours || !l.hasReply(state.ReplyBudgetRaised) {
				t.Errorf("got %s, %d hours more, reply %v; want %s and %d", l.task.Phase, l.task.MoreVMHours, l.hasReply(state.ReplyBudgetRaised), tc.phase, 2*tc.hours)
			}
			if got, want := l.task.VMTime(24*time.Hour), time.Duration(24+2*tc.hours)*time.Hour; got != want {
				t.Errorf("got %s of VM time, want %s", got, want)
			}
		})
	}
}
