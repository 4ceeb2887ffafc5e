// Package state has the nouns of errand: [Task] with its phases, plans, runs, comments and money, the [Event] that
// changes it, and the [Job] that follows. It never calls GitHub, a VM or an agent.
//
// The packages below it do the rest: state/machine decides how an event changes a task, state/store keeps tasks, jobs
// and deliveries, state/vm keeps VMs, and state/kv is the database.
//
// Start with phase.go, then task.go.
package state
