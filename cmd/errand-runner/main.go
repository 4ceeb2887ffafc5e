// Command errand-runner is the part of errand that runs on a VM: it keeps runs alive, makes
// workspaces, collects changesets, runs checks and owns the VM's end of the tether.
//
// The orchestrator calls it over SSH. Subcommands read and write JSON on standard input and output;
// an error is one line on standard error and an exit code that is not 0. `errand-runner help` lists
// them. All state is beneath --root.
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
