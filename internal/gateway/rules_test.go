package gateway

import (
	"net/http"
	"testing"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// TestRequestRules: each rule about requests denies what it is for, and the first of several rules wins.
func TestRequestRules(t *testing.T) {
	t.Parallel()
	const messages = "/v1/messages"
	for name, test := range map[string]struct {
		path, body string
		pending    bool
		rule       string // empty if the request is allowed
		status     int
		listed     string
	}{
		"its model":             {messages, `{"model":"a","max_tokens":9}`, false, "", 0, ""},
		"an endpoint for files": {"/v1/files", `{"model":"a"}`, false, "endpoint", http.StatusForbidden, ""},
		"invalid JSON":          {messages, `{"model":"a"`, false, "json", http.StatusForbidden, "a body that is not JSON"},
		"a web tool": {messages, `{"model":"b","tools":[{"type":"web_fetch_1"}]}`, false,
			"feature", http.StatusForbidden, "tool web_fetch_1"},
		"a surcharge":            {messages, `{"model":"a","speed":"fast"}`, false, "feature", http.StatusForbidden, "feature speed fast"},
		"another model":          {messages, `{"model":"b"}`, false, "model", http.StatusForbidden, "model b"},
		"another model, pending": {messages, `{"model":"b"}`, true, "model", http.StatusServiceUnavailable, ""},
		"no model":               {messages, ``, false, "model", http.StatusForbidden, "model " + unnamed},
		"two limits":             {messages, `{"model":"a","max_tokens":9,"max_tokens":10}`, false, "ambiguous", http.StatusForbidden, "feature max_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &request{api: modelapi.Anthropic, provider: "p", method: http.MethodPost, path: test.path, body: []byte(test.body)}
			r.allowed = AllowedModels{Names: []string{"a"}, Pending: test.pending}
			r.cost = func() modelapi.Request { return r.api.ParseRequest(r.path, nil, r.body) }
			d := firstDenial(endpointRules, r)
			if d == nil {
				d = firstDenial(requestRules, r)
			}
			if d == nil {
				d = &denial{}
			}
			if d.rule != test.rule || d.status != test.status || d.listed != test.listed {
				t.Errorf("denied by rule %q with status %d and listed as %q, want %q, %d and %q",
					d.rule, d.status, d.listed, test.rule, test.status, test.listed)
			}
		})
	}
}

// TestAdmissionRules: each rule denies what it is for, the first of several rules wins, and only denials because of
// calls in flight are temporary.
func TestAdmissionRules(t *testing.T) {
	t.Parallel()
	reached := &state.Waiting{Kind: state.WaitMoney, Detail: "the task's cap is reached"}
	active := func(change func(*standing)) *standing {
		s := &standing{run: &state.Run{}}
		s.run.MaxTurns = 10
		change(s)
		return s
	}
	for name, test := range map[string]struct {
		standing *standing
		rule     string // empty if the call is admitted
		status   int
		stored   state.WaitKind
	}{
		"nothing used":                 {active(func(*standing) {}), "", 0, ""},
		"the run has ended":            {&standing{}, "run", http.StatusForbidden, ""},
		"a cap is reached":             {active(func(s *standing) { s.cap = reached }), "cap", http.StatusForbidden, state.WaitMoney},
		"a cap comes before the turns": {active(func(s *standing) { s.cap, s.turns = reached, 10 }), "cap", http.StatusForbidden, state.WaitMoney},
		"one turn left":                {active(func(s *standing) { s.turns = 9 }), "", 0, ""},
		"no turn left":                 {active(func(s *standing) { s.turns, s.budgetReserved = 10, true }), "turns", http.StatusForbidden, state.WaitTurns},
		"the last turn is in flight":   {active(func(s *standing) { s.turns, s.turnsInFlight = 9, 1 }), "turns-in-flight", http.StatusTooManyRequests, ""},
		"turns are not limited":        {active(func(s *standing) { s.run.MaxTurns, s.turns, s.turnsInFlight = 0, 100, 1 }), "", 0, ""},
		"the budget is reserved": {active(func(s *standing) { s.budgetReserved, s.callsInFlight = true, maxCalls }),
			"budget-in-flight", http.StatusTooManyRequests, ""},
		"one call below the maximum": {active(func(s *standing) { s.callsInFlight = maxCalls - 1 }), "", 0, ""},
		"the maximum of calls":       {active(func(s *standing) { s.callsInFlight = maxCalls }), "calls-in-flight", http.StatusTooManyRequests, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := firstDenial(admissionRules, test.standing)
			if d == nil {
				if test.rule != "" {
					t.Fatalf("the call was admitted, want a denial by rule %s", test.rule)
				}
				return
			}
			if d.rule != test.rule || d.status != test.status || d.isTemporary() != (test.status == http.StatusTooManyRequests) {
				t.Fatalf("denied by rule %q with status %d, want %q with %d", d.rule, d.status, test.rule, test.status)
			}
			var stored state.WaitKind
			if d.stored != nil {
				stored = d.stored.Kind
			}
			if stored != test.stored {
				t.Errorf("stored with the run: %q, want %q", stored, test.stored)
			}
		})
	}
}
