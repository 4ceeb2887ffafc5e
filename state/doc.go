// Package state has the nouns of errand: [Task] with its phases, plans, runs, comments and money, and the [Job] that is
// to be done for it. It never calls GitHub, a VM or an agent.
//
// The packages below it do the rest: state/event has the facts that change a task, state/machine decides how,
// state/store keeps tasks, jobs and deliveries, state/vm keeps VMs, and state/kv is the database.
//
// Start with phase.go, then task.go.
package state
