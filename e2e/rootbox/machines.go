//go:build linux

package rootbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// Machines runs the servers of the Hetzner simulator as boxes. The simulator's Config.IPv4 must be Lab.Ordered, so that
// a server's public address is that of its box.
type Machines struct {
	Lab *Lab
	// Binds, MemoryMB and DiskMB apply to all boxes, regardless of the server's type: see Spec.
	Binds            []string
	MemoryMB, DiskMB int
	// Await makes every start wait until the box has applied its user data. Without it a server runs some seconds
	// before logins work, like a real one.
	Await bool

	mu    sync.Mutex
	boxes map[string]*Box
}

var _ simhetzner.Machines = (*Machines)(nil)

// Boot implements simhetzner.Machines.
func (m *Machines) Boot(ctx context.Context, spec simhetzner.MachineSpec) (simhetzner.Machine, error) {
	if !spec.IPv4.IsValid() {
		return nil, fmt.Errorf("server %s: a box without an IPv4 address cannot be reached", spec.Name)
	}
	box, err := m.Lab.Boot(ctx, m.spec(spec))
	if err != nil {
		return nil, err
	}
	if err := m.await(ctx, box); err != nil {
		return nil, errors.Join(err, box.Delete(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.boxes == nil {
		m.boxes = map[string]*Box{}
	}
	m.boxes[spec.Name] = box
	return &machine{box: box, of: m}, nil
}

func (m *Machines) spec(spec simhetzner.MachineSpec) Spec {
	return Spec{
		Name:     spec.Name,
		Addr:     spec.IPv4,
		Instance: strconv.FormatInt(spec.ID, 10),
		UserData: spec.UserData,
		Keys:     spec.Keys,
		Image:    spec.Disk,
		Off:      !spec.Start,
		Binds:    m.Binds,
		MemoryMB: m.MemoryMB,
		DiskMB:   m.DiskMB,
	}
}

// await waits for the box if Await is set and the box is on.
func (m *Machines) await(ctx context.Context, box *Box) error {
	if !m.Await || !box.Running() {
		return nil
	}
	return box.AwaitBooted(ctx)
}

// DeleteDisk implements simhetzner.Machines.
func (m *Machines) DeleteDisk(_ context.Context, handle string) error {
	return m.Lab.DeleteImage(handle)
}

// Box returns the box of the server that was last created or rebuilt with this name, or nil.
func (m *Machines) Box(server string) *Box {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.boxes[server]
}

// machine is a box as a server's machine.
type machine struct {
	box *Box
	of  *Machines
}

func (m *machine) Power(ctx context.Context, op simhetzner.PowerOp) error {
	switch op {
	case simhetzner.PowerOn:
		if err := m.box.PowerOn(ctx); err != nil {
			return err
		}
		return m.of.await(ctx, m.box)
	case simhetzner.PowerOff:
		return m.box.PowerOff(ctx)
	case simhetzner.PowerShutdown:
		return m.box.Shutdown(ctx)
	}
	return fmt.Errorf("no such power operation: %s", op)
}

func (m *machine) Snapshot(ctx context.Context) (simhetzner.Disk, error) {
	image, err := m.box.Snapshot(ctx)
	if err != nil {
		return simhetzner.Disk{}, err
	}
	size, err := ImageBytes(image)
	return simhetzner.Disk{Handle: image, SizeGB: float32(size) / (1 << 30)}, err
}

func (m *machine) Rebuild(ctx context.Context, spec simhetzner.MachineSpec) error {
	if err := m.box.Rebuild(ctx, m.of.spec(spec)); err != nil {
		return err
	}
	m.of.mu.Lock()
	m.of.boxes[spec.Name] = m.box
	m.of.mu.Unlock()
	return m.of.await(ctx, m.box)
}

func (m *machine) Delete(ctx context.Context) error { return m.box.Delete(ctx) }
