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

// An unclaimedAddress was created with a server of this deployment and could not be labeled before the server was
// deleted.
type unclaimedAddress struct {
	server int64
	labels map[string]string // labels that it should have
}

// claimAddresses labels the server's addresses and sets them to be deleted with it. An address created with a server
// has no labels: if it remained, it would cost money without a known owner.
//
// A server costs much more than an address, so its deletion never waits for this. Each address is tried once. If that
// fails it is recorded, and strayAddresses lists it as this deployment's once it is unassigned. After a restart such an
// address is reported as one without a label. An address that is deleted along with its server according to a recent
// response is not changed, but also recorded.
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

// rememberUnclaimed records an address that is about to be labeled and reports whether it is new.
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

// pruneUnclaimed drops addresses that are missing in a complete list, or that have been labeled or assigned to another
// server.
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
