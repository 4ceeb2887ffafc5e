package simgithub

import (
	"context"

	"github.com/errand-bot/errand/internal/sim/simgithub/delivery"
)

// WaitHooks waits until all webhooks are delivered, except those that are held, or ctx ends.
func (s *Sim) WaitHooks(ctx context.Context) error { return s.hooks.Wait(ctx) }

// FaultHooks adds a rule about deliveries. The first rule that matches applies.
func (s *Sim) FaultHooks(f delivery.Fault) { s.hooks.Fault(f) }

// HoldHooks holds all further deliveries until ReleaseHooks.
func (s *Sim) HoldHooks() { s.hooks.Hold() }

// ReleaseHooks sends the held deliveries, in order or reversed, and ends HoldHooks.
func (s *Sim) ReleaseHooks(reversed bool) { s.hooks.Release(reversed) }

// Deliveries returns all attempts to deliver webhooks so far, oldest first.
func (s *Sim) Deliveries() []delivery.Delivery { return s.hooks.Log() }

// Redeliver sends a delivery again with its GUID, as the button on GitHub's page does. It returns false if there is no
// such id.
func (s *Sim) Redeliver(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return redeliverHook(s, id)
}

// redeliverHook does the same. It needs the lock of the Sim.
func redeliverHook(s *Sim, id int64) bool {
	d := s.hooks.Find(id)
	if d == nil {
		return false
	}
	d.ID, d.Redelivery, d.URL, d.Secret = s.newID(), true, s.app.WebhookURL, s.app.WebhookSecret
	s.hooks.Send(d)
	return true
}
