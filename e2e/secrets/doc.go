// Package secrets looks for errand's secrets where they must not be.
//
// Its test plays a task's life, once on boxes and once on a cloud, and searches, while a run goes on and after it, every file, every
// environment and the memory of every process that the agent's user can read on the VM, and then
// everything that errand keeps and says: store, archives, transcripts, logs, pages, comments and commits.
// What it searches for does not go to the VM: the search there is by fingerprints. A canary that the
// agent scatters shows that each of the places is really looked at; every secret is planted once on the
// VM and once in errand's folder, which shows that each of them would be found. What the operator lends
// to tests may be on the VM, where set-up and checks print it, and nowhere on errand's side.
//
// Start reading at TestNothingSecretIsAnywhere, then at needles and Index. look_test.go has the search
// on the VM.
package secrets
