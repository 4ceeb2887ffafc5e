package machine

import "github.com/errand-bot/errand/state"

// talkRows are the rows that store posted comments.
var talkRows = []Row{
	{
		From: approving, On: state.EventPosted,
		If: "a plan", when: func(c *change) bool { return c.e.Post != nil && c.e.Post.Kind == state.PostPlan },
		To:  []state.Phase{Same, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview},
		do:  posted,
		Doc: "it waits for approval; comments from before it was posted lead to the next revision",
	},
	{
		From: anyPhase, On: state.EventPosted,
		To: same, do: posted,
		Doc: "the comment's id is stored",
	},
	{
		From: anyPhase, On: state.EventCreated,
		If: "it was proposed", when: func(c *change) bool { return c.e.Created != nil && c.t.Proposal(c.e.Created.N) != nil },
		To: same, do: issueCreated,
		Doc: "its number is stored, and the person who requested it gets a link",
	},
	{
		From: anyPhase, On: state.EventStatusSent,
		To: same, do: statusSent,
		Doc: "the version that the status comment shows is stored",
	},
}
