// Package runner runs on a VM and keeps a run alive while the orchestrator connects and disconnects.
//
// [Start] starts a run under a detached supervisor, which writes every line of the agent's output to a log with
// sequence numbers and, after all processes of the run have ended, the run's exit to a file. [Follow] prints the log
// from any number on, [Stop] ends a run, and [StatusOf] reports its state. All state is in files below one directory,
// the root, so each function may be called again after any crash.
//
// With Spec.Become, the runner's user only keeps these records, and another user, the agent's, does the work: other_user.go
// is the supervisor's side of that, live.go runs as the agent's user, and user.go contains the parts common to both
// modes.
//
// The types in wire.go are the JSON on the wire; the orchestrator shares them. The git side (workspaces, changesets,
// checks) is in package work, the VM's end of the tether in tetherd, and processes in proc.
//
// Start here: [Start] and [Supervise].
package runner
