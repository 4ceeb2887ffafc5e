// Package runner is what runs on a VM: it keeps a run alive while the orchestrator comes and goes.
//
// Start gives a run a detached supervisor, which writes every line of the agent's output to a log
// with sequence numbers and the run's end to a file, after all of the run's processes are gone.
// Follow prints the log from any number on, Stop ends a run, Status tells about it. All state is
// files beneath one directory, the root, so each of them may be called again after any crash.
//
// With Spec.Become the runner's user only keeps these records, and another one, the agent's, does the work: lived.go is the
// supervisor's side of that, live.go what runs as the agent's user, user.go what the two kinds have in common.
//
// The types in wire.go are what crosses the wire as JSON; the orchestrator shares them. The git side
// (workspaces, changesets, checks) is in work, the tether's VM end in tetherd, processes in proc.
package runner
