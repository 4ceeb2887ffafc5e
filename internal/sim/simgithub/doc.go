// Package simgithub simulates GitHub for tests and the demo: REST below /api/v3, GraphQL at /api/graphql, git over
// smart HTTP, App authentication, permissions, and webhooks with a log of their deliveries, on real bare repositories.
//
// It does not simulate forks, protected branches other than their required checks (Sim.RequireChecks), or search. Of
// Actions it has jobs that tests report (Sim.Job), with their logs and re-runs, but no workflows. Of teams it knows only
// the members.
//
// One http.Handler serves everything. The package shares no code with errand. It keeps its state in memory, except for
// the repositories in Config.Dir, and loses it when it is closed.
//
// Start with sim.go, the life of a simulator. Then read model_*.go (the objects), person.go (the actions of people),
// session.go (permissions), act_*.go (the effects of actions), webhooks.go (the resulting events), rest.go (the
// conversion of requests to actions) and faults.go (injected failures). Package git keeps the repositories, and package
// web serves the pages for people.
package simgithub
