package hetzner

import (
	"context"
	"errors"
	"maps"
	"net/http"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// An unclaimedAddress came along with a server of this deployment and could not be labeled before the server was deleted.
type unclaimedAddress struct {
	server int64
	labels map[string]string // that it should have
}

// claimAddresses labels the server's own addresses and has them deleted along with it. An address that came with a
// server has no labels: if it stayed behind, it would cost money and nobody would know whose it is.
//
// A server costs much more than an address, so its deletion never waits for this. Each address is tried once; if that
// fails it is remembered, and strayAddresses lists it as this deployment's once it is unassigned. After a restart such
// an address is reported as one without a label. An address that the API has said lately to be deleted along with its
// server is left as it is, and remembered likewise.
func (p *Provider) claimAddresses(ctx context.Context, s schema.Server) {
	labels := p.own(map[string]string{fleet.LabelOwner: s.Labels[fleet.LabelOwner]})
	for _, id := range []int64{s.PublicNet.IPv4.ID, s.PublicNet.IPv6.ID} {
		if id == 0 || !p.rememberUnclaimed(id, unclaimedAddress{s.ID, labels}) || p.addressGoesAlong(id) {
			continue
		}
		_, _, err := call[nothing](ctx, p, request{
			method: http.MethodPut, path: path("/primary_ips/%d", id),
			body: schema.PrimaryIPUpdateRequest{Labels: &labels, AutoDelete: hcloud.Ptr(true)},
		})
		if err == nil || errors.Is(err, fleet.ErrNotFound) {
			p.forgetUnclaimed(id)
			continue
		}
		p.cfg.Log.Warn().Err(err).Int64("address", id).Int64("server", s.ID).
			Msg("failed to label an address; deleting its server anyway, and the address once it is unassigned")
	}
}

// rememberUnclaimed stores an address that is about to be labeled and reports whether it is a new one.
func (p *Provider) rememberUnclaimed(id int64, a unclaimedAddress) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, known := p.unclaimed[id]
	p.unclaimed[id] = a
	return !known
}

func (p *Provider) forgetUnclaimed(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.unclaimed, id)
}

// addressLabels returns the labels that an unassigned address should have: its own, or those of an unclaimed one.
func (p *Provider) addressLabels(i schema.PrimaryIP) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.unclaimed[i.ID]; ok && len(i.Labels) == 0 {
		return maps.Clone(a.labels)
	}
	return i.Labels
}

// pruneUnclaimed forgets the addresses that are gone from a whole list, or that somebody has labeled or given to
// another server: those are no longer what was left behind.
func (p *Provider) pruneUnclaimed(list []schema.PrimaryIP) {
	left := map[int64]schema.PrimaryIP{}
	for _, i := range list {
		left[i.ID] = i
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.unclaimed, func(id int64, a unclaimedAddress) bool {
		i, ok := left[id]
		return !ok || len(i.Labels) > 0 || i.AssigneeID != nil && *i.AssigneeID != 0 && *i.AssigneeID != a.server
	})
}
