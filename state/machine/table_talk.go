package machine

import (
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// talkRows are the rows that store posted comments.
var talkRows = []Row{
	{
		From: approving, On: event.KindPosted,
		If: "a plan", when: func(c *change) bool { return c.e.Post() != nil && c.e.Post().Kind == state.PostPlan },
		To:  []state.Phase{Same, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview},
		do:  storePosted,
		Doc: "it waits for approval; comments from before it was posted lead to the next revision",
	},
	{
		From: anyPhase, On: event.KindPosted,
		To: same, do: storePosted,
		Doc: "the comment's id is stored",
	},
	{
		From: anyPhase, On: event.KindIssueCreated,
		If: "it was proposed", when: func(c *change) bool {
			return c.t.Proposal(of[event.IssueCreated](c).N) != nil
		},
		To: same, do: storeCreatedIssue,
		Doc: "its number is stored, and the person who requested it gets a link",
	},
	{
		From: anyPhase, On: event.KindStatusSent,
		To: same, do: storeStatus,
		Doc: "the version that the status comment shows is stored",
	},
}
