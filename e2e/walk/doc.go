// Package walk proves errand's promises on random walks: people, time and faults, drawn by
// pgregory.net/rapid, act on the real store, handlers, queue, workflow steps, pollers and sweeps. GitHub,
// the VMs and the agents are stand-ins in memory at workflow's own interfaces, and the clock is drawn, too,
// so that a walk of several days takes some milliseconds and is the same whenever its seed is.
//
// After every step the walk is held against a model of the promises (promises_test.go). The model knows
// what people did and what came out; it does not know the transition table.
//
// Start reading at world_test.go, which says what there is, then at walk_test.go, then at the promises.
package walk
