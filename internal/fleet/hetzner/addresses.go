package hetzner

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// addresses labels the addresses of servers before their deletion, and remembers those that it could not label.
type addresses struct {
	*api

	mu sync.Mutex
	// unclaimed are addresses of deleted servers that could not be labeled, by ID.
	unclaimed map[int64]unclaimedAddress
	// withServer are the addresses that are deleted along with their servers, according to the last complete list of
	// addresses, which was read at listed.
	withServer map[int64]bool
	listed     time.Time
}

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
// fails it is recorded, and unmanagedAddresses lists it as this deployment's once it is unassigned. After a restart
// such an address is reported as one without a label. An address that is deleted along with its server according to a
// recent response is not changed, but also recorded.
func (d *addresses) claimAddresses(ctx context.Context, s schema.Server) {
	labels := d.withDeploymentLabel(map[string]string{fleet.LabelOwner: s.Labels[fleet.LabelOwner]})
	for _, id := range []int64{s.PublicNet.IPv4.ID, s.PublicNet.IPv6.ID} {
		if id == 0 || !d.rememberUnclaimed(id, unclaimedAddress{s.ID, labels}) || d.isAutoDeleted(id) {
			continue
		}
		_, _, err := call[nothing](ctx, d.api, request{
			method: http.MethodPut, path: formatPath("/primary_ips/%d", id),
			body: schema.PrimaryIPUpdateRequest{Labels: &labels, AutoDelete: hcloud.Ptr(true)},
		})
		if err == nil || errors.Is(err, fleet.ErrNotFound) {
			d.forgetUnclaimed(id)
			continue
		}
		d.cfg.Log.Warn().Err(err).Int64("address", id).Int64("server", s.ID).
			Msg("failed to label an address; deleting its server anyway, and the address once it is unassigned")
	}
}

// rememberUnclaimed records an address that is about to be labeled and reports whether it is new.
func (d *addresses) rememberUnclaimed(id int64, a unclaimedAddress) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.unclaimed[id]
	d.unclaimed[id] = a
	return !known
}

func (d *addresses) forgetUnclaimed(id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.unclaimed, id)
}

// labels returns the labels that an unassigned address should have: its own, or those of an unclaimed one.
func (d *addresses) labels(i schema.PrimaryIP) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if a, ok := d.unclaimed[i.ID]; ok && len(i.Labels) == 0 {
		return maps.Clone(a.labels)
	}
	return i.Labels
}

// pruneUnclaimed drops addresses that are missing in a complete list, or that have been labeled or assigned to another
// server.
func (d *addresses) pruneUnclaimed(list []schema.PrimaryIP) {
	left := map[int64]schema.PrimaryIP{}
	for _, i := range list {
		left[i.ID] = i
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.unclaimed, func(id int64, a unclaimedAddress) bool {
		i, ok := left[id]
		return !ok || len(i.Labels) > 0 || i.AssigneeID != nil && *i.AssigneeID != 0 && *i.AssigneeID != a.server
	})
}

// areAutoDeleted reports whether all addresses of a server are deleted along with it.
func (d *addresses) areAutoDeleted(s schema.Server) bool {
	now := d.cfg.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.listed) >= serverTTL {
		return false
	}
	for _, id := range []int64{s.PublicNet.IPv4.ID, s.PublicNet.IPv6.ID} {
		if id != 0 && !d.withServer[id] {
			return false
		}
	}
	return true
}

// isAutoDeleted reports whether an address is deleted along with its server.
func (d *addresses) isAutoDeleted(id int64) bool {
	now := d.cfg.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.withServer[id] && now.Sub(d.listed) < serverTTL
}

// rememberList records which addresses of a complete list are deleted along with their servers.
func (d *addresses) rememberList(list []schema.PrimaryIP) {
	goesAlong := map[int64]bool{}
	for _, i := range list {
		goesAlong[i.ID] = i.AutoDelete && i.AssigneeID != nil && *i.AssigneeID != 0
	}
	now := d.cfg.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.withServer, d.listed = goesAlong, now
}
