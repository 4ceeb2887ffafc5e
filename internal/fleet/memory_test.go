package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

// memory is a provider of VMs that are only data, for tests of timing and failures. Tests that need a real VM use
// package local.
type memory struct {
	now func() time.Time

	mu      sync.Mutex
	vms     map[string]fleet.VM
	reasons map[string]fleet.Reason
	listErr error
	delErr  error
	gate    chan struct{} // Create waits for it, if set
}

var _ fleet.Provider = (*memory)(nil)

func newMemory(now func() time.Time) *memory {
	return &memory{now: now, vms: map[string]fleet.VM{}, reasons: map[string]fleet.Reason{}}
}

func (m *memory) Name() string { return "memory" }

func (m *memory) Create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-ctx.Done():
			return fleet.VM{}, ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	vm, ok := m.vms[spec.Name]
	if !ok {
		vm = fleet.VM{Name: spec.Name, Labels: spec.Labels, State: fleet.StateRunning, CreatedAt: m.now()}
		m.vms[spec.Name] = vm
	}
	if vm.State == fleet.StateEnded {
		return fleet.VM{}, fmt.Errorf("create: %w", fleet.ErrEnded)
	}
	return vm, nil
}

func (m *memory) Get(_ context.Context, name string) (fleet.VM, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	vm, ok := m.vms[name]
	if !ok {
		return fleet.VM{}, fleet.ErrNotFound
	}
	return vm, nil
}

func (m *memory) List(context.Context) ([]fleet.VM, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var vms []fleet.VM
	for _, vm := range m.vms {
		vms = append(vms, vm)
	}
	return vms, m.listErr
}

func (m *memory) Delete(_ context.Context, name string, why fleet.Reason) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.delErr != nil {
		return m.delErr
	}
	delete(m.vms, name)
	m.reasons[name] = why
	return nil
}

func (m *memory) Describe(context.Context) (fleet.Description, error) {
	return fleet.Description{}, errors.New("not described")
}

func (m *memory) end(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	vm := m.vms[name]
	vm.State, vm.Ended = fleet.StateEnded, fleet.ReasonCrashed
	m.vms[name] = vm
}

// clock is a clock that only the test moves.
type clock struct {
	mu   sync.Mutex
	at   time.Time
	end  time.Time // see until
	stop func()
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	if c.stop != nil && !c.at.Before(c.end) {
		c.stop()
	}
}

// sleep advances the clock immediately.
func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.pass(d)
	return ctx.Err()
}

// until returns a context that ends when the clock reaches a time.
func (c *clock) until(t *testing.T, at time.Time) (context.Context, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c.mu.Lock()
	c.end, c.stop = at, cancel
	c.mu.Unlock()
	return ctx, cancel
}
