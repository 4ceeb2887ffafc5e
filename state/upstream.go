package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/state/kv"
)

// Upstream is why no run is started that asks a provider of models, learned from an answer that it gave to a
// run of any task. It outlives a restart.
type Upstream struct {
	Kind   WaitKind  `json:"kind"`   // WaitLimit, or WaitKey
	Detail string    `json:"detail"` // for people, and the same as long as the cause is
	Hint   string    `json:"hint,omitempty"`
	Since  time.Time `json:"since"` // when it was first learned
	// Until is when a limit ends, or when it is looked again whether the key works.
	Until time.Time `json:"until"`
	// Tries counts how often in a row the key was refused.
	Tries int `json:"tries,omitempty"`
}

// Waiting says so as what a task waits for.
func (u Upstream) Waiting() *Waiting {
	return &Waiting{Kind: u.Kind, Detail: u.Detail, Hint: u.Hint, Since: u.Since, Until: u.Until}
}

// Upstream returns what keeps runs from asking a provider, nil if nothing does. It may be in the past.
func (s *Store) Upstream(ctx context.Context, name string) (*Upstream, error) {
	var u Upstream
	err := s.db.View(ctx, func(r kv.Reader) error { return s.codec.GetJSON(r, preUpstream+name, &u) })
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what is known of the provider %s: %w", name, err)
	}
	return &u, nil
}

// SetUpstream remembers it; nil forgets it.
func (s *Store) SetUpstream(ctx context.Context, name string, u *Upstream) error {
	return kv.Update(ctx, s.db, "remember a provider", func(tx kv.Tx) error {
		if u == nil {
			return tx.Delete(preUpstream + name)
		}
		return s.codec.PutJSON(tx, preUpstream+name, u)
	})
}

// Upstreams returns what is known of all providers, by name.
func (s *Store) Upstreams(ctx context.Context) (map[string]Upstream, error) {
	all := map[string]Upstream{}
	err := s.db.View(ctx, func(r kv.Reader) error {
		clear(all)
		pairs, err := r.Range(preUpstream, "", 0)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			var u Upstream
			if err := s.codec.GetJSON(r, p.Key, &u); err != nil {
				return err
			}
			all[strings.TrimPrefix(p.Key, preUpstream)] = u
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read what is known of the providers: %w", err)
	}
	return all, nil
}
