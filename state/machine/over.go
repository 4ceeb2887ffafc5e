package machine

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// acted is when the person whose word ends the task said it, zero if nobody did.
func acted(c *change) (at time.Time) {
	switch c.e.Kind {
	case state.EventUntriggered, state.EventIssueClosed, state.EventCommented, state.EventPRClosed:
		if c.e.At.Before(c.e.Now) {
			at = c.e.At
		}
	}
	return at
}

// skew is how far our clock and GitHub's may be apart.
const skew = 2 * time.Minute

// outdated reports whether what would begin an ended task anew was done before the end, or before what began
// it: that is the later word, however late the webhook comes.
func outdated(c *change) bool {
	end := c.t.Over()
	if c.t.End == nil || c.t.End.Acted.IsZero() { // by our clock
		end = end.Add(-skew)
	}
	if began := c.t.Trigger.At; began.After(end) {
		end = began
	}
	return !c.e.At.IsZero() && c.e.At.Before(end.Truncate(time.Second))
}

// beforeBegin reports whether what would end the task was done before what began this life of it: its webhook
// comes late. What a look at GitHub found is as it is, since when ever.
func beforeBegin(c *change) bool {
	looked := c.e.Kind == state.EventIssueClosed && (c.e.Via == state.ViaStart || c.e.Via == state.ViaConfirmed)
	return !looked && !c.e.At.IsZero() && c.e.At.Before(c.t.Trigger.At.Truncate(time.Second))
}
