package step

import (
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Done returns the event of a step after which nothing follows.
func Done() event.Event { return event.Event{} }

// Blocked returns the event of a step that cannot continue for now.
func Blocked(w *state.Waiting) event.Event {
	return event.Event{Payload: event.StepBlocked{Waiting: w}}
}
