package forge

import (
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

type (
	actor    = client.Actor
	pageInfo = client.PageInfo
)

const actorFields = client.ActorFields

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
