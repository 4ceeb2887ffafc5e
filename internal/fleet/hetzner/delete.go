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
		if err := p.claimAddresses(ctx, *s); err != nil {
			return err
		}
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

// claimAddresses marks the server's own addresses as ours and has them go with it. One that comes along
// with a server has no labels: should it stay behind, it would cost money and nobody would know whose it is.
func (p *Provider) claimAddresses(ctx context.Context, s schema.Server) error {
	labels := p.own(map[string]string{fleet.LabelOwner: s.Labels[fleet.LabelOwner]})
	for _, id := range []int64{s.PublicNet.IPv4.ID, s.PublicNet.IPv6.ID} {
		if id == 0 {
			continue
		}
		_, _, err := call[nothing](ctx, p, request{
			method: http.MethodPut, path: path("/primary_ips/%d", id),
			body: schema.PrimaryIPUpdateRequest{Labels: &labels, AutoDelete: hcloud.Ptr(true)},
		})
		if err != nil && !errors.Is(err, fleet.ErrNotFound) {
			return fmt.Errorf("mark address %d: %w", id, err)
		}
	}
	return nil
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
