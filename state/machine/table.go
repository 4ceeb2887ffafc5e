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

// messageRows are the rows of comments that are no commands, after those of commands.
var messageRows = []Row{
	{
		From: []state.Phase{state.PhaseAwaitingAnswer}, On: event.KindCommented, Verb: state.VerbMessage,
		To: append([]state.Phase{Same}, working...), do: applyAnswer,
		Doc: "the answer: the task continues; comments that an agent reads are gathered first",
	},
	{
		From: []state.Phase{state.PhaseAwaitingAnswer}, On: event.KindCommented,
		If: "on the issue, or on the pull request if an agent reads the answer; not after a stop",
		when: func(c *change) bool {
			return isRead(c) && (c.t.Question == nil || c.t.Question.Kind != state.AskStopped)
		},
		To: append([]state.Phase{Same}, working...), do: applyAnswer,
		Doc: "the answer: the task continues; comments that an agent reads are gathered first",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: event.KindCommented, Verb: state.VerbMessage,
		To: same, do: gatherComment,
		Doc: "gathered for a while into one round",
	},
	{
		From: parked, On: event.KindCommented, Verb: state.VerbMessage,
		If: "after the pull request was closed", when: not(isSaidBeforeClosing),
		To: same, do: keepAndReopen,
		Doc: "the pull request is reopened, and a round answers the message",
	},
	{
		From: parked, On: event.KindCommented, Verb: state.VerbMessage,
		To: same, do: keepComment,
		Doc: "kept for the next round",
	},
	{
		From: running, On: event.KindCommented, Verb: state.VerbMessage,
		If: "while an agent works, unless it begins with `after:`", when: steers,
		To: same, do: steer,
		Doc: "👀; the agent is interrupted between two tools and continues with the message, a condition while it implements a plan",
	},
	{
		From: slices.Concat(running, []state.Phase{state.PhaseInterrupted, state.PhaseFailed}),
		On:   event.KindCommented, Verb: state.VerbMessage,
		If: "it mentions errand", when: isMention,
		To: same, do: keepMessage,
		Doc: "kept for the next run; a comment says so once",
	},
	{
		From: []state.Phase{state.PhaseQueued}, On: event.KindCommented, Verb: state.VerbMessage,
		To: same, do: keepEarlyComment,
		Doc: "👀; read when it starts; waiting tasks check again",
	},
	{
		From: planning, On: event.KindCommented,
		To: same, do: keepComment,
		Doc: "kept: the current plan is revised before it is posted",
	},
	{
		From: []state.Phase{state.PhaseQueued}, On: event.KindCommented,
		To: same, do: keepEarlyComment,
		Doc: "read when it starts; waiting tasks check again",
	},
	{
		From: slices.Concat(building, []state.Phase{state.PhasePROpen, state.PhasePRClosed, state.PhaseAwaitingAnswer,
			state.PhaseInterrupted, state.PhaseFailed}),
		On:   event.KindCommented,
		If:   "on the issue, without a mention",
		when: func(c *change) bool { return !c.e.Comment().OnPR && len(of[event.Commented](c).Orders) == 0 },
		To:   same, do: keepInDiscussion,
		Doc: "discussion: later prompts carry it",
	},
}
