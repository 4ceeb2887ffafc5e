package forge

import (
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
)

// actor is an account in GraphQL. Only users and bots have a DatabaseID.
type actor struct {
	Type       string `json:"__typename"`
	Login      string `json:"login"`
	DatabaseID int64  `json:"databaseId"`
}

// actorFields selects the fields of actor. The login of a bot lacks "[bot]" here.
const actorFields = `{ __typename login ... on User { databaseId } ... on Bot { databaseId } }`

// person returns the account with its login as in REST. A nil actor is a deleted account, which GitHub shows as
// "ghost".
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

// rateCost is the cost of a query in GraphQL points, and the remaining points of the installation.
type rateCost struct {
	Cost      int `json:"cost"`
	Remaining int `json:"remaining"`
}

// person returns an account. A nil user is a deleted account, which GitHub shows as "ghost".
func person(u *github.User) state.Person {
	if u == nil {
		return state.Person{Login: "ghost"}
	}
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}
