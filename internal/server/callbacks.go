package server

import (
	"context"

	"github.com/errand-bot/errand/internal/callback"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// makeCallbacks returns the service that answers agents' calls of errand's tools.
func (s *Server) makeCallbacks() *callback.Service {
	return callback.New(callback.Config{
		Store: s.store, Log: s.opts.Log,
		Clean: func(text string) string {
			text, _ = s.redact.Redact(trust.RemoveInvisible(text))
			return text
		},
		// The steps are made after the tether, and before anything is served.
		Issue: func(ctx context.Context, t *state.Task, number int) (string, error) {
			return s.steps.Seen(ctx, t, number)
		},
	})
}
