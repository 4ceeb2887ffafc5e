package gateway

import (
	"net/http"
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestAdmissionRules: each rule denies what it is for, the first of several rules wins, and only denials because of calls in
// flight are temporary.
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
			if d.rule != test.rule || d.status != test.status || d.temporary() != (test.status == http.StatusTooManyRequests) {
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
