package machine

import (
	"time"

	"github.com/errand-bot/errand/state/event"
)

// timeOfPersonsAction returns the time of the action that ends the task, or zero if it is not a person's action.
func timeOfPersonsAction(c *change) (at time.Time) {
	switch c.e.Kind() {
	case event.KindUntriggered, event.KindIssueClosed, event.KindCommented, event.KindPRClosed:
		if c.e.At.Before(c.e.Now) {
			at = c.e.At
		}
	}
	return at
}

// clockSkew is the maximum assumed difference between errand's clock and GitHub's.
const clockSkew = 2 * time.Minute

// isOutdated reports whether an action that would restart an ended task was done before the end, or before the trigger of
// the ended life. Its webhook came late; the end is the later action.
func isOutdated(c *change) bool {
	end := c.t.EndedAt()
	if c.t.End == nil || c.t.End.Acted.IsZero() { // by errand's clock
		end = end.Add(-clockSkew)
	}
	if began := c.t.Trigger.At; began.After(end) {
		end = began
	}
	return !c.e.At.IsZero() && c.e.At.Before(end.Truncate(time.Second))
}

// predatesTask reports whether an action that would end the task was done before the trigger of this life, so that its
// webhook came late. A state that was read from GitHub is current, however old.
func predatesTask(c *change) bool {
	readFromGitHub := c.e.Kind() == event.KindIssueClosed && (c.e.Via == event.ViaStart || c.e.Via == event.ViaConfirmed)
	return !readFromGitHub && !c.e.At.IsZero() && c.e.At.Before(c.t.Trigger.At.Truncate(time.Second))
}
