package state

import "testing"

// TestTheGatewaysReasonIsKnownBetter: where the gateway did not pass calls of a run on, its reason is the run's, unless the
// model has answered since, or something else ended the run.
func TestTheGatewaysReasonIsKnownBetter(t *testing.T) {
	t.Parallel()
	const program, gateway = "what errand makes of the program's words", "errand did not pass on a call of the model: another model"
	refused := Event{Kind: EventSpent, Money: &Money{}, Waiting: &Waiting{Kind: WaitRefused, Detail: gateway}}
	answered := Event{Kind: EventSpent, Money: &Money{OutputTokens: 1}}
	for name, tc := range map[string]struct {
		before        []Event
		status, class string
		want          string
	}{
		"refused at the end":      {[]Event{answered, refused}, "auth", "fatal", gateway},
		"made a crash of it":      {[]Event{refused}, "crashed", "fatal", gateway},
		"would be tried again":    {[]Event{refused}, "overloaded", "retryable", gateway},
		"answered since":          {[]Event{refused, answered}, "crashed", "fatal", program},
		"stopped by a person":     {[]Event{refused}, "duration", "fatal", program},
		"never refused":           {nil, "crashed", "fatal", program},
		"refused for something":   {[]Event{refused, {Kind: EventSpent, Money: &Money{}, Waiting: &Waiting{Kind: WaitMoney, Detail: "The cap is reached."}}}, "auth", "fatal", "The cap is reached."},
		"succeeded all the same":  {[]Event{refused}, "ok", "success", program},
		"a limit of the provider": {[]Event{{Kind: EventSpent, Money: &Money{}, Waiting: &Waiting{Kind: WaitLimit, Detail: "errand's account has used up its limit", Until: t0.AddDate(0, 0, 1)}}}, "rate_limited", "retryable", "errand's account has used up its limit"},
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
			l.end(RunResult{Status: tc.status, Class: tc.class, Message: program, Outcome: "done"})
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.ID != run || last.Message != tc.want {
				t.Errorf("run %s ended with %q, want %q", last.ID, last.Message, tc.want)
			}
			if refusedOnly := len(tc.before) > 0 && tc.want == gateway; refusedOnly && last.Held != nil {
				t.Errorf("the run is held: %+v", last.Held)
			}
		})
	}
}

// TestUnfinishedAnswers: a run whose last answer has no end did not succeed, whatever its program says; one that the model
// answered again afterwards, or that said by errand's tools what it concluded, did.
func TestUnfinishedAnswers(t *testing.T) {
	t.Parallel()
	ends := func(kind WaitKind) Event {
		return Event{Kind: EventSpent, Money: &Money{OutputTokens: 1}, Waiting: &Waiting{Kind: kind, Detail: "the end is missing"}}
	}
	answered := Event{Kind: EventSpent, Money: &Money{OutputTokens: 1}}
	finish := Event{Kind: EventCalled, Call: &Call{ID: "1", Tool: CallFinish, Result: &Conclusion{Outcome: "done"}}}
	for name, tc := range map[string]struct {
		before        []Event
		status, class string
		want          string
	}{
		"blocked":                 {[]Event{answered, ends(WaitAnswerBlocked)}, "ok", "success", "refused"},
		"too long":                {[]Event{ends(WaitAnswerCut)}, "ok", "success", "answer_cut"},
		"answered again":          {[]Event{ends(WaitAnswerCut), answered}, "ok", "success", "ok"},
		"too long, then blocked":  {[]Event{ends(WaitAnswerCut), ends(WaitAnswerBlocked)}, "ok", "success", "refused"},
		"failed for another":      {[]Event{ends(WaitAnswerBlocked)}, "duration", "fatal", "duration"},
		"concluded by the tools":  {[]Event{finish, ends(WaitAnswerBlocked)}, "ok", "success", "ok"},
		"never":                   {[]Event{answered}, "ok", "success", "ok"},
		"the VM was lost with it": {[]Event{ends(WaitAnswerCut)}, StatusVMLost, "retryable", StatusVMLost},
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
			l.end(RunResult{Status: tc.status, Class: tc.class, Outcome: "done", Text: "This much"})
			var last *Run
			for i := range l.task.Runs {
				if l.task.Runs[i].ID == run {
					last = &l.task.Runs[i]
				}
			}
			if last == nil || last.Status != tc.want || (tc.want == "refused" || tc.want == "answer_cut") && last.Message != "the end is missing" {
				t.Errorf("the run ended as %+v, want %s", last, tc.want)
			}
			if got := last.Answers; got != len(tc.before)-map[bool]int{true: 1}[name == "concluded by the tools"] {
				t.Errorf("%d answers are counted", got)
			}
		})
	}
}
