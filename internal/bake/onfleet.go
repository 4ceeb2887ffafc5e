package bake

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// Fleet is the part of the fleet that baking uses. *fleet.Fleet implements it.
type Fleet interface {
	Acquire(ctx context.Context, spec fleet.AcquireSpec) (fleet.VM, error)
	Get(ctx context.Context, name string) (fleet.VM, error)
	List(ctx context.Context) ([]fleet.VM, error)
	Client(ctx context.Context, name string) (*remote.Client, error)
	Release(ctx context.Context, name string, why fleet.Reason) error
}

var _ Fleet = (*fleet.Fleet)(nil)

// OnFleet returns VMs of a fleet, subject to its rows, caps, reapers and host keys. ssh configures the connections;
// root accepts the same client key as the agent's user.
func OnFleet(f Fleet, ssh remote.Config, root string) VMs {
	return &onFleet{fleet: f, ssh: ssh, root: root, clients: map[string]*remote.Client{}}
}

type onFleet struct {
	fleet Fleet
	ssh   remote.Config
	root  string

	mu      sync.Mutex
	clients map[string]*remote.Client // connections as root, by VM
}

// Acquire creates a VM that belongs to no task. It first deletes leftovers of earlier attempts.
func (o *onFleet) Acquire(ctx context.Context, order Order) (fleet.VM, error) {
	if err := o.sweep(ctx, order.Labels[fleet.LabelGroup]); err != nil {
		return fleet.VM{}, err
	}
	return o.fleet.Acquire(ctx, fleet.AcquireSpec{
		Owner:      order.Owner,
		Image:      order.Image,
		Labels:     order.Labels,
		Candidates: order.candidates(),
	})
}

// Sweep deletes the VMs of all bakes.
func (o *onFleet) Sweep(ctx context.Context) error { return o.sweep(ctx, "") }

// sweep deletes the VMs of a group's bakes, or of all.
func (o *onFleet) sweep(ctx context.Context, group string) error {
	vms, err := o.fleet.List(ctx)
	if err != nil {
		return fmt.Errorf("list VMs of earlier bakes: %w", err)
	}
	var errs []error
	for _, vm := range vms {
		if vm.Labels[fleet.LabelKind] == fleet.ImageBaking && (group == "" || vm.Labels[fleet.LabelGroup] == group) {
			errs = append(errs, o.Release(ctx, vm.Name, fleet.ReasonFailed))
		}
	}
	return errors.Join(errs...)
}

// candidates returns the candidates to order; none leaves the choice to the fleet.
func (o Order) candidates() []fleet.Candidate {
	if o.Type == "" {
		return nil
	}
	return []fleet.Candidate{{Type: o.Type, Location: o.Location}}
}

// Connect opens a separate connection for root and uses the fleet's for the agent's user.
func (o *onFleet) Connect(ctx context.Context, vm string, root bool) (*remote.Client, error) {
	if !root {
		return o.fleet.Client(ctx, vm)
	}
	o.mu.Lock()
	cl := o.clients[vm]
	o.mu.Unlock()
	if cl != nil && cl.Err() == nil {
		return cl, nil
	}
	facts, err := o.fleet.Get(ctx, vm)
	if err != nil {
		return nil, fmt.Errorf("look up VM %s: %w", vm, err)
	}
	to := facts.Endpoint
	to.User = o.root
	if cl, err = remote.Dial(ctx, to, o.ssh); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.clients[vm] = cl
	return cl, nil
}

// Release closes connections opened by Connect and deletes the VM.
func (o *onFleet) Release(ctx context.Context, vm string, why fleet.Reason) error {
	o.mu.Lock()
	cl := o.clients[vm]
	delete(o.clients, vm)
	o.mu.Unlock()
	if cl != nil {
		_ = cl.Close() // the VM is deleted anyway
	}
	return o.fleet.Release(ctx, vm, why)
}
