// Command errand-runner is the part of errand that runs on a VM: it supervises runs, prepares workspaces, collects
// changesets, runs checks and serves the VM's end of the tether.
//
// The orchestrator calls it over SSH. Subcommands read and write JSON on standard input and output; an error is one
// line on standard error and a non-zero exit status. `errand-runner help` lists the subcommands. All state is below
// --root.
//
// Start here: newCommand.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := newCommand(version).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "errand-runner: "+err.Error())
		stop()
		os.Exit(1)
	}
}
