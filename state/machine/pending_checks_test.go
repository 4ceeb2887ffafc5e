package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A check that runs again is not one that people have waited for.
func TestPendingChecksRunAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reran []state.Rerun
		kept  bool
	}{
		"runs again":         {reran: []state.Rerun{{Check: "k", Head: "H", ID: 3}}},
		"is about to":        {reran: []state.Rerun{{Check: "k", Head: "H", ID: 3, Intended: true}}, kept: true},
		"one of two does":    {reran: []state.Rerun{{Check: "k", Head: "H", ID: 3, Intended: true}, {Check: "l", Head: "H", ID: 4}}},
		"nothing runs again": {kept: true},
	} {
		l := openPR(t)
		l.do(event.Event{Payload: event.ChecksRead{Checks: "failure", Head: "H", Pending: true}})
		l.examined(func(e *event.ChecksExamined) {
			e.Reran, e.Failures, e.Notes = c.reran, nil, nil
			if !c.kept {
				e.Again = l.now.Add(10 * time.Minute)
			}
		})
		if l.task.PR.Undecided.IsZero() == c.kept {
			t.Errorf("%s: undecided since %s", name, l.task.PR.Undecided)
		}
	}
}
