package forge

import (
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
)

// actor is how GraphQL names an account; DatabaseID is there for users and bots.
type actor struct {
	Type       string `json:"__typename"`
	Login      string `json:"login"`
	DatabaseID int64  `json:"databaseId"`
}

// actorFields selects what actor needs. A bot's login comes without "[bot]" here.
const actorFields = `{ __typename login ... on User { databaseId } ... on Bot { databaseId } }`

// person maps an account to the login that REST uses; nil is the ghost of a deleted one.
func (a *actor) person() state.Person {
	if a == nil {
		return state.Person{Login: "ghost"}
	}
	p := state.Person{ID: a.DatabaseID, Login: a.Login, Bot: a.Type == "Bot"}
	if p.Bot && !strings.HasSuffix(p.Login, "[bot]") {
		p.Login += "[bot]"
	}
	return p
}

type pageInfo struct {
	HasNextPage bool   `json:"hasNextPage"`
	EndCursor   string `json:"endCursor"`
}

// rateCost is what a query cost of the installation's GraphQL points.
type rateCost struct {
	Cost      int `json:"cost"`
	Remaining int `json:"remaining"`
}

// person maps an account; nil is the ghost of a deleted one.
func person(u *github.User) state.Person {
	if u == nil {
		return state.Person{Login: "ghost"}
	}
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}
