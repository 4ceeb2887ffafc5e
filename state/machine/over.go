package machine

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// acted returns the time of the action that ends the task, or zero if it is not a person's action.
func acted(c *change) (at time.Time) {
	switch c.e.Kind {
	case state.EventUntriggered, state.EventIssueClosed, state.EventCommented, state.EventPRClosed:
		if c.e.At.Before(c.e.Now) {
			at = c.e.At
		}
	}
	return at
}

// skew is the maximum assumed difference between errand's clock and GitHub's.
const skew = 2 * time.Minute

// outdated reports whether an action that would restart an ended task was done before the end, or before the trigger of
// the ended life. Its webhook came late; the end is the later action.
func outdated(c *change) bool {
	end := c.t.Over()
	if c.t.End == nil || c.t.End.Acted.IsZero() { // by errand's clock
		end = end.Add(-skew)
	}
	if began := c.t.Trigger.At; began.After(end) {
		end = began
	}
	return !c.e.At.IsZero() && c.e.At.Before(end.Truncate(time.Second))
}

// beforeBegin reports whether an action that would end the task was done before the trigger of this life, so that its
// webhook came late. A state that was read from GitHub is current, however old.
func beforeBegin(c *change) bool {
	looked := c.e.Kind == state.EventIssueClosed && (c.e.Via == state.ViaStart || c.e.Via == state.ViaConfirmed)
	return !looked && !c.e.At.IsZero() && c.e.At.Before(c.t.Trigger.At.Truncate(time.Second))
}
