package simmodel

import (
	"context"
	"sync"
)

// gates blocks requests by name. Naming a gate creates it.
type gates struct {
	mu   sync.Mutex
	each map[string]*gate
}

// gate has two events, each a closed channel: a request has arrived, and the gate was opened.
type gate struct {
	once    sync.Once
	open    sync.Once
	arrived chan struct{}
	opened  chan struct{}
}

func newGates() *gates { return &gates{each: map[string]*gate{}} }

func (g *gates) get(name string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	one, ok := g.each[name]
	if !ok {
		one = &gate{arrived: make(chan struct{}), opened: make(chan struct{})}
		g.each[name] = one
	}
	return one
}

// pass waits until the gate is open or ctx ends.
func (g *gates) pass(ctx context.Context, name string) error {
	one := g.get(name)
	one.once.Do(func() { close(one.arrived) })
	select {
	case <-one.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release opens the gate permanently.
func (g *gates) release(name string) {
	one := g.get(name)
	one.open.Do(func() { close(one.opened) })
}

// waiting waits until a request has arrived at the gate.
func (g *gates) waiting(ctx context.Context, name string) error {
	select {
	case <-g.get(name).arrived:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
