package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// retry checks the same commits again, with settings that may have changed; with a new VM, or after any other message,
// the agent continues.
func TestRetryAfterGateRefusal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		order state.Order
		want  state.JobKind
		told  int // refusals in the next run's prompt
	}{
		"retry":        {state.Order{Verb: state.VerbRetry}, state.JobCollect, 0},
		"on a new VM":  {state.Order{Verb: state.VerbRetry, Fresh: true}, state.JobLaunch, 2},
		"another word": {state.Order{Verb: state.VerbMessage}, state.JobLaunch, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.end(state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "done"})
			l.do(event.Event{
				Run: l.task.Runs[0].ID,
				Payload: event.Collected{Work: &state.Work{Run: l.task.Runs[0].ID, LocalHead: "h", Paths: 1}, Refusals: []state.Refusal{
					{Rule: "size", Detail: "too many", Remedy: "fewer"}, {Rule: "protected-paths", Path: "AGENTS.md", Detail: "protected", Remedy: "leave it"},
				}},
			})
			l.want(state.PhaseAwaitingAnswer, state.JobPost)
			jobs := l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 70, Body: "go on", Mention: true}, Orders: []state.Order{tc.order}}})
			if tc.order.Verb == state.VerbMessage {
				l.gathered()
				jobs = l.jobs
			}
			found := false
			for _, j := range jobs {
				found = found || j.Kind == tc.want
			}
			if !found || l.task.Phase != state.PhaseImplementing {
				t.Errorf("got jobs %v in %s, want %s", jobs, l.task.Phase, tc.want)
			}
			told := 0
			for _, f := range l.task.Feedback {
				if f.Kind == state.FeedbackRefusal && f.TakenBy == "" {
					told++
				}
			}
			if told != tc.told {
				t.Errorf("got %d refusals for the next run, want %d", told, tc.told)
			}
		})
	}
}
