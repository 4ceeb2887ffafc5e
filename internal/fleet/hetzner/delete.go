package hetzner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// goneWithin is how long Delete waits for the end of what it began.
const goneWithin = 20 * time.Second

// Delete deletes the server of this name, if it is ours, with its addresses. It returns when the API has it
// no more; fleet.ErrBusy says that this takes longer.
func (p *Provider) Delete(ctx context.Context, name string, why fleet.Reason) error {
	if err := p.delete(ctx, name, why); err != nil {
		return fmt.Errorf("delete VM %s: %w", name, err)
	}
	return nil
}

func (p *Provider) delete(ctx context.Context, name string, why fleet.Reason) error {
	s, err := p.ours(ctx, name)
	if errors.Is(err, fleet.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Status != string(hcloud.ServerStatusDeleting) {
		p.claimAddresses(ctx, *s)
		out, _, err := call[schema.ServerDeleteResponse](ctx, p, request{method: http.MethodDelete, path: path("/servers/%d", s.ID)})
		if errors.Is(err, fleet.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		p.cfg.Log.Info().Str("vm", name).Int64("server", s.ID).Str("reason", string(why)).Msg("server deleted")
		if out.Action.Status != "running" {
			return nil
		}
	}
	return p.awaitGone(ctx, s.ID)
}

func (p *Provider) awaitGone(ctx context.Context, id int64) error {
	gone := false
	err := p.poll(ctx, goneWithin, func() (bool, error) {
		_, err := p.server(ctx, id)
		if gone = errors.Is(err, fleet.ErrNotFound); gone {
			err = nil
		}
		return gone, err
	})
	if err == nil && !gone {
		err = fmt.Errorf("%w: it is still being deleted", fleet.ErrBusy)
	}
	return err
}
