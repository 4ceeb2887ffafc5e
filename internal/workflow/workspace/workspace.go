// Package workspace gives a task its VM and works in the checkout there: it restores saved work, prepares and resets
// the checkout, adds test files, and makes the environment of the processes that start there.
//
// Start with Opener.Reach, which gets a VM, and Workspace, which it returns.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/roots"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/vm"
)

// ErrNoVM says that no VM is available now; the task waits. Its message says why.
var ErrNoVM = errors.New("no VM is available now")

// A QueuedError is ErrNoVM if other tasks use all VMs that may exist at the same time: the task waits in the queue for one.
type QueuedError struct {
	Place  int    // in the queue, from 1
	Reason string // a clause for people
}

func (e *QueuedError) Error() string { return e.Reason }

// Is makes errors.Is(err, ErrNoVM) true.
func (e *QueuedError) Is(target error) bool { return target == ErrNoVM }

// ErrNoSnapshot says that the snapshot from which a VM was to be created no longer exists.
var ErrNoSnapshot = errors.New("the snapshot is gone")

// VMs gives each task its VM.
type VMs interface {
	// Acquire returns the task's VM, ready to be reached, and creates it if there is none. It may be called again after
	// any failure. ErrNoVM means: wait; a *vm.LimitError says which limit is reached. A new VM of a task whose
	// WorkToRestore is a snapshot is created from that, or the error is ErrNoSnapshot; a VM that is off is switched on.
	Acquire(ctx context.Context, t *state.Task) (state.VM, error)
}

// Runner works on a VM through errand-runner. Each method may be called again.
type Runner interface {
	Place(ctx context.Context, vm string) (runnerctl.Place, error)
	Prepare(ctx context.Context, vm string, spec work.PrepareSpec) (work.Place, error)
	Reset(ctx context.Context, vm string, spec work.ResetSpec) error
	// Lend adds files to a checkout that are not part of the repository, and removes them.
	Lend(ctx context.Context, vm string, spec work.LendSpec) (work.Lent, error)
	// Put writes a file with the agent's rights.
	Put(ctx context.Context, vm, file string, content []byte) error
	// Trust lets programs on a VM trust another authority for TLS certificates.
	Trust(ctx context.Context, vm string, spec roots.Spec) error
	Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, r io.Reader) (pack.Manifest, error)
	Stop(ctx context.Context, vm, run, why string) error
}

// Tether is the VM's connection to errand.
type Tether interface {
	// Ensure attaches it, and waits until it is attached.
	Ensure(ctx context.Context, vm string, task state.TaskKey) error
	// RunToken and VMToken authorize a run and the runner itself.
	RunToken(run string) string
	VMToken(vm string) string
}

// Archives opens the archives of saved work.
type Archives interface {
	OpenSleep(ref, digest string) (*os.File, error)
}

// GitHub has the calls of GitHub's API that workspaces need.
type GitHub interface {
	step.Self
	step.Heads
}

// An Opener opens workspaces.
type Opener struct {
	VMs      VMs
	Runner   Runner
	Tether   Tether
	Archives Archives
	GitHub   GitHub
	// RealAgent is set for an agent other than the simulated one: it is refused where nothing isolates it,
	// unless AllowUnsandboxed.
	RealAgent, AllowUnsandboxed bool
	// Submodules lists which other repositories the agents of a repository, named as OWNER/NAME, may read, as patterns
	// with stars; it may be nil.
	Submodules func(repo string) []string
	// Authority returns the certificate, in PEM, of the authority for the private registries of a repository, named as OWNER/NAME; nil if it
	// uses none. It may be nil itself.
	Authority func(repo string) []byte
	// TestsFor returns the operator's data for the tests of a repository, named as OWNER/NAME; it may be nil.
	TestsFor func(repo string) Tests
	// SpanAllowed returns a *vm.LimitError if another paid span of a VM may not begin; it may be nil.
	SpanAllowed func(ctx context.Context, vm string) error
	// Paused returns a Waiting while the operator keeps a repository's tasks from starting runs and VMs; it may be nil.
	Paused func(ctx context.Context, repo int64) (*state.Waiting, error)
	Now    func() time.Time
}

// A Workspace is a task's checkout on a VM.
type Workspace struct {
	VM    state.VM
	Place runnerctl.Place

	task *state.Task
	open *Opener
}

// Hold returns a Waiting while the operator keeps the task from starting a run or a VM.
func (o *Opener) Hold(ctx context.Context, t *state.Task) (*state.Waiting, error) {
	if o.Paused == nil {
		return nil, nil
	}
	return o.Paused(ctx, t.Key.Repo)
}

// Reach gets the task's VM and attaches its tether, or returns a Waiting. It stores the VM in the launch.
func (o *Opener) Reach(ctx context.Context, t *state.Task, l *state.Launch) (*Workspace, *state.Waiting, error) {
	if waiting, err := o.Hold(ctx, t); waiting != nil || err != nil {
		return nil, waiting, err
	}
	server, err := o.VMs.Acquire(ctx, t)
	if errors.Is(err, ErrNoSnapshot) {
		l.RestoreFailure = "the snapshot of the VM is gone"
		without := *t
		without.Suspended = nil
		server, err = o.VMs.Acquire(ctx, &without)
	}
	switch waiting, err := refusal(err); {
	case waiting != nil:
		return nil, waiting, nil
	case err != nil:
		return nil, nil, fmt.Errorf("get a VM: %w", err)
	}
	l.VM = server
	place, err := o.Runner.Place(ctx, server.Name)
	if err != nil {
		return nil, nil, err
	}
	if o.RealAgent && !place.Isolated && !o.AllowUnsandboxed {
		return nil, nil, &step.Problem{Reason: "This host cannot isolate agents: it supports only plain sandboxes.", Class: state.ClassVM, Permanent: true,
			Hint: "The operator can install bubblewrap, or set `local.allow_unsandboxed: true` and take the risk."}
	}
	ws := &Workspace{VM: server, Place: place, task: t, open: o}
	if err := o.Tether.Ensure(ctx, server.Name, t.Key); err != nil {
		return nil, nil, fmt.Errorf("attach the tether of VM %s: %w", server.Name, err)
	}
	return ws, nil, nil
}

// refusal translates an error of Acquire into something to wait for, or into an error.
func refusal(err error) (*state.Waiting, error) {
	var limit *vm.LimitError
	var queued *QueuedError
	switch {
	case errors.As(err, &queued):
		return &state.Waiting{Kind: state.WaitVM, Detail: queued.Reason, Place: queued.Place}, nil
	case errors.Is(err, ErrNoVM):
		return &state.Waiting{Kind: state.WaitVM, Detail: err.Error()}, nil
	case !errors.As(err, &limit):
		return nil, err
	case limit.Limit == vm.LimitVMHours:
		return nil, &step.Problem{Reason: upper(limit.Reason) + ".", Hint: limit.Hint(), Class: state.ClassVMHours, Permanent: true,
			Err: err}
	case limit.Limit == vm.LimitVMsDay, limit.Limit == vm.LimitVMsMonth:
		return &state.Waiting{Kind: state.WaitMoney, Detail: limit.Reason + "; raise `" + limit.Limit + "` to continue sooner", Until: limit.Until}, nil
	}
	return &state.Waiting{Kind: state.WaitVM, Detail: limit.Reason, Until: limit.Until}, nil
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Open returns the workspace on the VM that the task has. It needs no tether.
func (o *Opener) Open(ctx context.Context, t *state.Task) (*Workspace, error) {
	place, err := o.Runner.Place(ctx, t.VM.Name)
	if err != nil {
		return nil, err
	}
	return &Workspace{VM: *t.VM, Place: place, task: t, open: o}, nil
}

// Attach attaches the tether of an open workspace, and waits until it is attached.
func (ws *Workspace) Attach(ctx context.Context) error {
	if err := ws.open.Tether.Ensure(ctx, ws.VM.Name, ws.task.Key); err != nil {
		return fmt.Errorf("attach the tether: %w", err)
	}
	return nil
}

// Put writes a file on the VM with the agent's rights.
func (ws *Workspace) Put(ctx context.Context, file string, content []byte) error {
	return ws.open.Runner.Put(ctx, ws.VM.Name, file, content)
}

// Quiet stops earlier runs that may still be active on the VM: one that was just stopped, also at its turn limit, or
// one whose start was never confirmed. Two agents in one checkout would spoil each other's work.
func (o *Opener) Quiet(ctx context.Context, t *state.Task, vm string) error {
	for _, r := range slices.Backward(t.Runs) {
		if r.Status != state.StatusInterrupted && (r.Status != state.StatusMaxTurns || r.Reported) {
			return nil // it has already ended
		}
		if r.VM != "" && r.VM != vm {
			continue
		}
		if err := o.Runner.Stop(ctx, vm, r.ID, "another run starts"); err != nil {
			return fmt.Errorf("end run %s before the next begins: %w", r.ID, err)
		}
	}
	return nil
}

// SpanEnds returns the event of a VM whose paid span ends. Its Waiting is set if another span may not begin yet.
func (o *Opener) SpanEnds(ctx context.Context, t *state.Task, server string) (event.Event, error) {
	due := event.NewDue(state.DueSpan, server)
	if o.SpanAllowed == nil || t.VM == nil || t.VM.Name != server {
		return event.Event{Payload: due}, nil
	}
	err := o.SpanAllowed(ctx, server)
	var limit *vm.LimitError
	if errors.As(err, &limit) && limit.Limit == vm.LimitVMHours {
		return event.Event{Payload: due}, nil // the transition table counts these hours itself
	}
	due.Waiting, err = refusal(err)
	return event.Event{Payload: due}, err
}
