package workflow

import (
	"context"
	"io"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/workflow/approval"
	"github.com/errand-bot/errand/internal/workflow/finish"
	"github.com/errand-bot/errand/internal/workflow/intake"
	"github.com/errand-bot/errand/internal/workflow/launch"
	"github.com/errand-bot/errand/internal/workflow/publish"
	"github.com/errand-bot/errand/internal/workflow/result"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/talk"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// Store has the calls of the store that steps need.
type Store interface {
	step.Marks
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
}

// GitHub has the calls of GitHub's API that all steps together need; *forge.Forge is one.
type GitHub interface {
	approval.GitHub
	finish.GitHub
	intake.GitHub
	launch.GitHub
	publish.GitHub
	talk.GitHub
	workspace.GitHub
}

// VMs gives each task its VM, and deletes it.
type VMs interface {
	workspace.VMs
	Release(ctx context.Context, vm string, why state.VMEndReason) error
}

// Runner does the steps' work on a VM; *runnerctl.Controller is one. Each method may be called again.
type Runner interface {
	launch.Runner
	publish.Runner
	workspace.Runner
	Pack(ctx context.Context, vm string, spec pack.Spec, w io.Writer) (pack.Manifest, error)
}

// Tether is the VM's connection to errand.
type Tether = workspace.Tether

// Agents has the adapters of agents; *registry.Registry is one.
type Agents interface {
	launch.Agents
	result.Agents
}

// Files stores what is too large for the store; *archive.Dir is one.
type Files interface {
	launch.Files
	publish.Files
	workspace.Archives
	SaveSleep(task string, fill func(io.Writer) (pack.Manifest, error)) (archive.Sleep, error)
	DeleteSleep(ref string) error
}

// Sleeper keeps the disks of VMs as images.
type Sleeper interface {
	// Snapshot switches a VM off and returns the image of its disk when it can be used. It may take
	// long; after any failure, or the end of ctx, it may be called again and continues. The VM stays.
	Snapshot(ctx context.Context, vm string) (ref string, bytes int64, err error)
	// DeleteSnapshot deletes an image; deleting one that does not exist is no error.
	DeleteSnapshot(ctx context.Context, ref string) error
}
