package taskvm

import (
	"context"

	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// A Connection connects errand to the VMs of tasks, through which runs reach their model and repository.
type Connection struct {
	Keeper *tether.Keeper
	Tokens Tokens
}

// Tokens authenticate at the VM's end of a connection.
type Tokens interface {
	// RunToken returns the token of a run, and VMToken that of the runner on a VM.
	RunToken(run string) string
	VMToken(vm string) string
}

// Ensure connects to a task's VM, or waits until the connection is up.
func (c Connection) Ensure(ctx context.Context, vm string, task state.TaskKey) error {
	return c.Keeper.Ensure(ctx, tether.Peer{VM: vm, Task: task})
}

// Forget closes the connection to a VM.
func (c Connection) Forget(vm string) { c.Keeper.Forget(vm) }

// RunToken returns the token of a run.
func (c Connection) RunToken(run string) string { return c.Tokens.RunToken(run) }

// VMToken returns the token of the runner on a VM.
func (c Connection) VMToken(vm string) string { return c.Tokens.VMToken(vm) }
