// Package state is the spine of errand: what a Task is, which phases it goes through, what may move
// it, and the store that keeps it.
//
// There is one way to change a task: Store.Apply. It loads the task, asks the pure function Next
// what an Event does to it, and in one transaction saves the task, enqueues the jobs that follow and
// spends what the event came from (Ack: a delivery, or a job with its lease epoch). Nothing here
// calls GitHub, a VM or an agent; that is the work of the packages that claim the jobs.
//
// Start reading at Phase, then the transition table, then Store.
package state
