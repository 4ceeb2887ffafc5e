package machine

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// implementing brings a life to an implementing run with its own session.
func (l *life) implementing() {
	l.trigger()
	s := settings.Default()
	s.Plan = settings.PlanNone
	l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true, Branch: state.Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}}})
	l.launch()
	l.want(state.PhaseImplementing)
}

// overflow ends the run because its conversation became too long.
func (l *life) overflow(session string) {
	l.end(state.RunResult{Status: state.StatusContextOverflow, Class: state.RunRetryable, Session: session, Summary: "I have read half of it."})
}

// A conversation that became too long is continued in a new session, once; then the task fails, and a retry begins a
// new session as well.
func TestOverflowRestartsSessionOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.overflow("s-1")
	l.want(state.PhaseImplementing, state.JobLaunch)
	if r := l.task.Run; r.Session != "" || !strings.Contains(r.Repeat, "too long") || r.Attempt != 2 {
		t.Errorf("got a new run with session %q, attempt %d, %q", r.Session, r.Attempt, r.Repeat)
	}
	if got := l.task.Runs[len(l.task.Runs)-1].LastMessage; got != "I have read half of it." {
		t.Errorf("what was said last: %q", got)
	}
	l.launch()
	l.overflow("s-2")
	l.want(state.PhaseFailed, state.JobPost)
	if end := l.task.End; !strings.Contains(end.Hint, "split the issue") {
		t.Errorf("got hint %q", end.Hint)
	}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 71, Body: "retry"}, Orders: []state.Order{{Verb: state.VerbRetry}}}})
	l.want(state.PhaseImplementing, state.JobLaunch)
	if s := l.task.Run.Session; s != "" {
		t.Errorf("got session %q after a retry, want a new one", s)
	}
}

// An overflow in earlier work does not count.
func TestOverflowInEarlierWorkDoesNotCount(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.task.Runs = []state.Run{{ID: "a", Kind: state.RunImplement, RunVerdict: state.RunVerdict{Status: state.StatusContextOverflow, Class: state.RunRetryable}}, {ID: "b", Kind: state.RunImplement, RunVerdict: state.RunVerdict{Status: state.StatusOK, Class: state.RunSucceeded}}}
	l.overflow("s-1")
	l.want(state.PhaseImplementing, state.JobLaunch)
}

// People choose among the operator's models, and get a list of them.
func TestModelCommandOffersModels(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	p.Models = &Models{Offers: func(name string) bool { return name == "small" }, Names: []string{"small"}}
	l := newLife(t)
	l.trigger()
	l.start()
	tests := []struct{ order, model, reason string }{{"dear", "", state.ReplyModelUnknown}, {"small", "small", state.ReplyModelSet}, {"dear", "small", state.ReplyModelUnknown}}
	for i, test := range tests {
		e := event.Event{Task: l.task.Key, Now: l.now, At: l.now, By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: int64(80 + i), Body: "model " + test.order}, Orders: []state.Order{{Verb: state.VerbModel, Arg: test.order}}}}
		ch := Next(l.task, e, p)
		if ch.Task == nil || ch.Task.Model != test.model {
			t.Fatalf("model %s: got task %+v", test.order, ch.Task)
		}
		l.task = ch.Task
		said := false
		for _, j := range ch.Jobs {
			said = said || j.Post != nil && j.Post.Reason == test.reason && (test.reason == state.ReplyModelSet) == (len(j.Post.Items) == 0)
		}
		if !said {
			t.Errorf("model %s: want reply %s, got jobs %+v", test.order, test.reason, ch.Jobs)
		}
	}
}

// The gateway enforces the model of a run, so the model that the run reports has no effect.
func TestReportedModelIsIgnored(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm1"}, Started: l.now, Model: "small"}}})
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Progress{Model: "dear", Session: "s-1", LastActivity: l.now}})
	if r := l.task.Run; r.Model != "small" || r.Session != "s-1" {
		t.Errorf("got model %q, session %q", r.Model, r.Session)
	}
}
