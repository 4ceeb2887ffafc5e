package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestSignOffIsPartOfThePlan: settings that are read again while a detailed plan waits add no sign-off, because the comment with the
// plan did not announce one. A new plan may.
func TestSignOffIsPartOfThePlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after bool
		replan        bool
		want          bool
	}{
		"set meanwhile":           {false, true, false, false},
		"set all along":           {true, true, false, true},
		"withdrawn":               {true, false, false, false},
		"set before another plan": {false, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.approve()
			l.launch()
			l.end(state.RunResult{Outcome: state.OutcomeBuild, Text: "P"})
			l.postPlan(101)
			l.task.Settings.SignOff = c.before
			if c.replan {
				l.comment(state.VerbReplan)
			} else { // somebody vouches for a comment, so that the discussion is read again
				l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Thumb{Comment: &state.Comment{ID: 70}}})
				l.gathered()
			}
			l.want(state.PhasePlanning, state.JobStart)
			s := settings.Default()
			s.SignOff = c.after
			l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true}}})
			l.launch()
			if got := l.task.Settings.SignOff; got != c.want {
				t.Errorf("got sign-off %v, want %v", got, c.want)
			}
		})
	}
}
