package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// ProviderStates keeps the limits and errors of model providers.
type ProviderStates struct{ rows }

// Get returns the limit or error that keeps runs from using a provider, or nil if there is none. It may be in the
// past.
func (s *ProviderStates) Get(ctx context.Context, name string) (*state.ProviderState, error) {
	var u state.ProviderState
	err := s.db.View(ctx, func(r kv.Reader) error { return s.codec.GetJSON(r, preUpstream+name, &u) })
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the state of the provider %s: %w", name, err)
	}
	return &u, nil
}

// Set stores the limit or error of a provider; nil deletes it.
func (s *ProviderStates) Set(ctx context.Context, name string, u *state.ProviderState) error {
	return kv.Update(ctx, s.db, "set provider", func(tx kv.Tx) error {
		if u == nil {
			return tx.Delete(preUpstream + name)
		}
		return s.codec.PutJSON(tx, preUpstream+name, u)
	})
}

// All returns the limits and errors of all providers, by name.
func (s *ProviderStates) All(ctx context.Context) (map[string]state.ProviderState, error) {
	all := map[string]state.ProviderState{}
	err := s.db.View(ctx, func(r kv.Reader) error {
		clear(all)
		pairs, err := r.Range(preUpstream, "", 0)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			var u state.ProviderState
			if err := s.codec.GetJSON(r, p.Key, &u); err != nil {
				return err
			}
			all[strings.TrimPrefix(p.Key, preUpstream)] = u
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the state of the providers: %w", err)
	}
	return all, nil
}
