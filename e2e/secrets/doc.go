// Package secrets looks for errand's secrets where they must not be.
//
// Its test plays a task's life, once in local sandboxes and once on a simulated cloud, and searches, during a run and
// after it, every file, every environment and the memory of every process that the agent's user can read on the VM, and
// then everything that errand stores and publishes: store, archives, transcripts, logs, pages, comments and commits.
// The secrets themselves do not go to the VM: the search there uses fingerprints. A canary that the agent writes
// everywhere proves that each of the places is searched; every secret is planted once on the VM and once in errand's
// directory, which proves that each of them would be found. The operator's variables and files for tests may be on the
// VM, where set-up and checks print them, but not on errand's side.
//
// Start reading at TestNothingSecretIsAnywhere, then at needles and Index. look_test.go has the search
// on the VM.
package secrets
