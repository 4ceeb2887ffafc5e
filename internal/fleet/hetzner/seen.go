package hetzner

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
)

// seenFor is how long this package assumes that a server or image has this deployment's label, and that an address is
// deleted along with its server. The reapers' lists, which renew it every few minutes, also drop missing ones. IDs are
// never reused.
const seenFor = 15 * time.Minute

// seen caches API data about this deployment's resources that need not be read again before they are deleted.
// Provider.mu guards it.
type seen struct {
	servers map[int64]seenServer
	images  map[int64]time.Time
	// goesAlong are the addresses that are deleted along with their servers, according to the last complete list of
	// addresses.
	goesAlong   map[int64]bool
	goesAlongAt time.Time
}

type seenServer struct {
	schema.Server
	at time.Time
}

func newSeen() seen {
	return seen{servers: map[int64]seenServer{}, images: map[int64]time.Time{}}
}

// rememberServer records that the API has just returned a server of this deployment.
func (p *Provider) rememberServer(s schema.Server) {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen.servers, func(_ int64, old seenServer) bool { return now.Sub(old.at) >= seenFor })
	p.seen.servers[s.ID] = seenServer{s, now}
}

// toDelete returns this deployment's server with this ID. It makes a request unless the cache shows that the server is
// this deployment's and that its addresses are deleted with it, so that no preparation is necessary.
func (p *Provider) toDelete(ctx context.Context, id string) (schema.Server, error) {
	now := p.cfg.Now()
	number, err := strconv.ParseInt(id, 10, 64)
	p.mu.Lock()
	s, ok := p.seen.servers[number]
	ok = ok && err == nil && now.Sub(s.at) < seenFor && s.Status != string(hcloud.ServerStatusDeleting) && p.addressesGoAlong(s.Server, now)
	p.mu.Unlock()
	if ok {
		return s.Server, nil
	}
	return p.oursByID(ctx, id)
}

// addressesGoAlong reports whether all addresses of a server are deleted along with it. The caller holds p.mu.
func (p *Provider) addressesGoAlong(s schema.Server, now time.Time) bool {
	if now.Sub(p.seen.goesAlongAt) >= seenFor {
		return false
	}
	for _, id := range []int64{s.PublicNet.IPv4.ID, s.PublicNet.IPv6.ID} {
		if id != 0 && !p.seen.goesAlong[id] {
			return false
		}
	}
	return true
}

// addressGoesAlong reports whether an address is deleted along with its server.
func (p *Provider) addressGoesAlong(id int64) bool {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.goesAlong[id] && now.Sub(p.seen.goesAlongAt) < seenFor
}

// rememberAddresses records which addresses of a complete list are deleted along with their servers.
func (p *Provider) rememberAddresses(list []schema.PrimaryIP) {
	goesAlong := map[int64]bool{}
	for _, i := range list {
		goesAlong[i.ID] = i.AutoDelete && i.AssigneeID != nil && *i.AssigneeID != 0
	}
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.goesAlong, p.seen.goesAlongAt = goesAlong, now
}

// rememberImage records that the API has just returned an image, if it is this deployment's.
func (p *Provider) rememberImage(img schema.Image) {
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.seen.images, func(_ int64, at time.Time) bool { return now.Sub(at) >= seenFor })
	if img.Labels[fleet.LabelDeployment] == p.cfg.Deployment {
		p.seen.images[img.ID] = now
	}
}

// forgetImages drops the cached images before a complete list renews them.
func (p *Provider) forgetImages() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.seen.images)
}

// isOurImage reports whether the API recently returned an image as this deployment's.
func (p *Provider) isOurImage(id string) bool {
	number, err := strconv.ParseInt(id, 10, 64)
	now := p.cfg.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.seen.images[number]
	return err == nil && ok && now.Sub(at) < seenFor
}
