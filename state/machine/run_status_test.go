package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestGatewayReasonReplacesMessage: where the gateway did not pass calls of a run on, its reason is the run's, unless the
// model has answered since, or something else ended the run.
func TestGatewayReasonReplacesMessage(t *testing.T) {
	t.Parallel()
	const program, gateway = "what errand makes of the program's words", "errand denied a model call: another model"
	refused := event.Event{Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitRefused, Detail: gateway}}}
	answered := event.Event{Payload: event.ModelCalled{Money: state.Money{OutputTokens: 1}}}
	for name, tc := range map[string]struct {
		before []event.Event
		status state.RunStatus
		class  state.RunClass
		want   string
	}{
		"refused at the end":      {[]event.Event{answered, refused}, "auth", "fatal", gateway},
		"made a crash of it":      {[]event.Event{refused}, "crashed", "fatal", gateway},
		"would be tried again":    {[]event.Event{refused}, "overloaded", "retryable", gateway},
		"answered since":          {[]event.Event{refused, answered}, "crashed", "fatal", program},
		"stopped by a person":     {[]event.Event{refused}, "duration", "fatal", program},
		"never refused":           {nil, "crashed", "fatal", program},
		"refused for something":   {[]event.Event{refused, {Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitMoney, Detail: "The cap is reached."}}}}, "auth", "fatal", "The cap is reached."},
		"succeeded all the same":  {[]event.Event{refused}, "ok", "success", program},
		"a limit of the provider": {[]event.Event{{Payload: event.ModelCalled{Money: state.Money{}, Waiting: &state.Waiting{Kind: state.WaitLimit, Detail: "errand's account has used up its limit", Until: t0.AddDate(0, 0, 1)}}}}, "rate_limited", "retryable", "errand's account has used up its limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			run := l.task.Run.ID
			for _, e := range tc.before {
				e.Run = run
				l.do(e)
			}
			l.end(state.RunResult{Status: tc.status, Class: tc.class, Message: program, Outcome: "done"})
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.ID != run || last.Message != tc.want {
				t.Errorf("run %s: got message %q, want %q", last.ID, last.Message, tc.want)
			}
			if refusedOnly := len(tc.before) > 0 && tc.want == gateway; refusedOnly && last.RunDenial != nil {
				t.Errorf("got denial %+v, want none", last.RunDenial)
			}
		})
	}
}

// TestUnfinishedAnswers: a run whose last answer is incomplete did not succeed, whatever its program reports. A run
// that the model answered again afterwards, or that reported its conclusion by errand's tools, did.
func TestUnfinishedAnswers(t *testing.T) {
	t.Parallel()
	ends := func(kind state.WaitKind) event.Event {
		return event.Event{Payload: event.ModelCalled{Money: state.Money{OutputTokens: 1}, Waiting: &state.Waiting{Kind: kind, Detail: "the end is missing"}}}
	}
	answered := event.Event{Payload: event.ModelCalled{Money: state.Money{OutputTokens: 1}}}
	finish := event.Event{Payload: event.ToolCalled{Call: state.Call{ID: "1", Tool: state.CallFinish, Result: &state.Conclusion{Outcome: "done"}}}}
	for name, tc := range map[string]struct {
		before []event.Event
		status state.RunStatus
		class  state.RunClass
		want   state.RunStatus
	}{
		"blocked":                 {[]event.Event{answered, ends(state.WaitAnswerBlocked)}, "ok", "success", "refused"},
		"too long":                {[]event.Event{ends(state.WaitAnswerCut)}, "ok", "success", "answer_cut"},
		"answered again":          {[]event.Event{ends(state.WaitAnswerCut), answered}, "ok", "success", "ok"},
		"too long, then blocked":  {[]event.Event{ends(state.WaitAnswerCut), ends(state.WaitAnswerBlocked)}, "ok", "success", "refused"},
		"failed for another":      {[]event.Event{ends(state.WaitAnswerBlocked)}, "duration", "fatal", "duration"},
		"concluded by the tools":  {[]event.Event{finish, ends(state.WaitAnswerBlocked)}, "ok", "success", "ok"},
		"never":                   {[]event.Event{answered}, "ok", "success", "ok"},
		"the VM was lost with it": {[]event.Event{ends(state.WaitAnswerCut)}, state.StatusVMLost, "retryable", state.StatusVMLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			run := l.task.Run.ID
			for _, e := range tc.before {
				e.Run = run
				l.do(e)
			}
			l.end(state.RunResult{Status: tc.status, Class: tc.class, Outcome: "done", Text: "This much"})
			var last *state.Run
			for i := range l.task.Runs {
				if l.task.Runs[i].ID == run {
					last = &l.task.Runs[i]
				}
			}
			if last == nil || last.Status != tc.want || (tc.want == "refused" || tc.want == "answer_cut") && last.Message != "the end is missing" {
				t.Errorf("got run %+v, want %s", last, tc.want)
			}
			if got := last.Answers; got != len(tc.before)-map[bool]int{true: 1}[name == "concluded by the tools"] {
				t.Errorf("%d answers are counted", got)
			}
		})
	}
}
