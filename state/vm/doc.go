// Package vm keeps the VMs that tasks run on: one [Row] per VM of the provider, the transition table of its phases
// ([Next]), its cost, and the limits on all VMs together. Rows are stored in the database of the tasks, so that one
// update changes a task and the row of its VM.
//
// Start with [Rows.Intend], which reserves a VM, [Rows.Apply], which applies events, and [Table], which lists every
// transition.
package vm
