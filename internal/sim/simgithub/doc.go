// Package simgithub is a stand-in for GitHub that behaves like GitHub: REST below /api/v3, GraphQL at /api/graphql,
// git over smart HTTP, App authentication, permissions, webhooks with a delivery log, all over real bare repositories.
//
// Not modelled: forks, teams, protected branches, rebase merges, Actions (a CI is Sim.CheckRun), search.
//
// It serves tests and the demo on one http.Handler. It knows nothing of the service under test and shares no code with
// it. It does not try to be fast, or to keep anything over a restart: its state lives in memory, its git in Config.Dir.
//
// Start reading at sim.go (life of a stand-in), then model_*.go (what exists), person.go (what a person can do, with
// the webhooks that follow), rest.go (how a request becomes an act), web.go (the pages for people in a browser) and
// faults.go (how it is told to fail).
package simgithub
