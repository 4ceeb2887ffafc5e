package client

import (
	"strings"

	"github.com/errand-bot/errand/state"
)

// Actor is an account in GraphQL. Only users and bots have a DatabaseID.
type Actor struct {
	Type       string `json:"__typename"`
	Login      string `json:"login"`
	DatabaseID int64  `json:"databaseId"`
}

// ActorFields selects the fields of Actor. The login of a bot lacks "[bot]" here.
const ActorFields = `{ __typename login ... on User { databaseId } ... on Bot { databaseId } }`

// Person returns the account with its login as in REST. A nil actor is a deleted account, which GitHub shows as
// "ghost".
func (a *Actor) Person() state.Person {
	if a == nil {
		return state.Person{Login: "ghost"}
	}
	p := state.Person{ID: a.DatabaseID, Login: a.Login, Bot: a.Type == "Bot"}
	if p.Bot && !strings.HasSuffix(p.Login, "[bot]") {
		p.Login += "[bot]"
	}
	return p
}

// PageInfo is the place of a page in a list in GraphQL.
type PageInfo struct {
	HasNextPage bool   `json:"hasNextPage"`
	EndCursor   string `json:"endCursor"`
}
