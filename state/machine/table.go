package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Row is one row of the transition table: in one of the phases From, the event On (for a comment: with the command
// Verb) leads to one of the phases To.
type Row struct {
	From []state.Phase // nil: no task yet
	On   event.Kind
	Verb state.Verb // of event.Commented; empty for other events and for plain comments
	// If describes the condition.
	If string
	// To lists the possible phases after the event; the single entry "same" means that the phase does not change.
	To  []state.Phase
	Doc string // the effect, in one sentence

	when func(*change) bool
	do   func(*change)
}

// Same means in Row.To that the phase does not change.
const Same state.Phase = "same"

// fits reports whether the row applies to the task in its present state.
func (r *Row) fits(c *change) bool {
	if c.t == nil {
		return r.From == nil && (r.when == nil || r.when(c))
	}
	return slices.Contains(r.From, c.t.Phase) && (r.when == nil || r.when(c))
}

// Table returns the transition table. docs/lifecycle.md and docs/transitions.md are generated from it.
func Table() []Row { return slices.Clone(table) }

// Groups of phases that rows share.
var (
	anyPhase  = state.Phases()
	ended     = []state.Phase{state.PhaseDone, state.PhaseCancelled}
	canceled  = []state.Phase{state.PhaseCancelled}
	open      = without(state.Phases(), state.PhaseDone, state.PhaseCancelled)
	planning  = []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning}
	awaiting  = []state.Phase{state.PhaseAwaitingPreliminaryApproval, state.PhaseAwaitingPlanApproval}
	asking    = []state.Phase{state.PhaseAwaitingPublishApproval}
	approving = slices.Concat(awaiting, asking)
	building  = []state.Phase{state.PhaseImplementing, state.PhaseAddressingReview}
	running   = []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}
	working   = append([]state.Phase{state.PhaseQueued}, running...)
	resumable = []state.Phase{state.PhaseFailed, state.PhaseInterrupted, state.PhaseAwaitingAnswer}
	parked    = []state.Phase{state.PhasePRClosed}
	resumed   = slices.Concat(working, approving, []state.Phase{state.PhasePROpen}, parked) // the phases in which jobs advance a task, and which a stopped task returns to
	same      = []state.Phase{Same}
)

// without returns all phases except the given ones.
func without(all []state.Phase, but ...state.Phase) []state.Phase {
	return slices.DeleteFunc(slices.Clone(all), func(p state.Phase) bool { return slices.Contains(but, p) })
}

// table is the complete transition table. It is never changed; rows are tried from the top.
var table = slices.Concat(peopleRows, withoutTask(), commandRows, updateRows(state.VerbUpdate), updateRows(state.VerbRebase), messageRows, runRows, stepRows, suspendRows, publishRows, talkRows)
