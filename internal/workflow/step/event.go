package step

import "github.com/errand-bot/errand/state"

// EventNothing is the event of a step that has nothing to report. No row of the transition table matches it.
const EventNothing state.EventKind = "nothing"

// Done returns the event of a step after which nothing follows.
func Done() state.Event { return state.Event{Kind: EventNothing} }

// HeldUp returns the event of a step that cannot continue for now.
func HeldUp(w *state.Waiting) state.Event {
	return state.Event{Kind: state.EventHeldUp, JobReport: state.JobReport{Waiting: w}}
}
