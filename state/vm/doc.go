// Package vm keeps the VMs that tasks run on: one [Row] per VM of the provider, the transition table of its phases ([Next]),
// its cost and the limits on all VMs together. Rows are stored beside the tasks, in the same database, so that one update
// changes a task and the row of its VM.
//
// Start here: [Rows.Intend] reserves a VM, [Rows.Apply] applies what happened to it, and [Table] lists every transition.
package vm
