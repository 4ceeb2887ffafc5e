package watch

import "context"

// SweepDeliveries fetches lost webhooks once.
func (s *Sweeper) SweepDeliveries(ctx context.Context) error { return s.deliveries(ctx) }

// SweepState compares with GitHub's state once.
func (s *Sweeper) SweepState(ctx context.Context) error { return s.state(ctx) }
