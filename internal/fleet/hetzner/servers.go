package hetzner

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// servers reads this deployment's servers and interprets their status.
type servers struct {
	*api
	market *market

	mu     sync.Mutex
	states map[int64]serverState // by server
	// cachedServers are the last responses about servers that need not be read again before they are deleted.
	cachedServers map[int64]cachedServer
}

// cachedServer is the API's last response about a server of this deployment.
type cachedServer struct {
	schema.Server
	at time.Time
}

// serverTTL is how long this package assumes that a server or image has this deployment's label, and that an address is
// deleted along with its server. The reapers' lists, which renew it every few minutes, also drop missing ones. IDs are
// never reused.
const serverTTL = 15 * time.Minute

// cacheServer records that the API has just returned a server of this deployment.
func (v *servers) cacheServer(s schema.Server) {
	now := v.cfg.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.cachedServers, func(_ int64, old cachedServer) bool { return now.Sub(old.at) >= serverTTL })
	v.cachedServers[s.ID] = cachedServer{s, now}
}

// Get returns one VM of this deployment.
func (p *Provider) Get(ctx context.Context, name string) (fleet.VM, error) {
	vm, err := p.servers.get(ctx, name)
	if err != nil {
		return fleet.VM{}, fmt.Errorf("get VM %s: %w", name, err)
	}
	return vm, nil
}

// GetByID returns the VM of this deployment with this ID.
func (p *Provider) GetByID(ctx context.Context, id string) (fleet.VM, error) {
	s, err := p.servers.ownServerByID(ctx, id)
	var vm fleet.VM
	if err == nil {
		vm, err = p.servers.convertServer(ctx, s)
	}
	if err != nil {
		return fleet.VM{}, fmt.Errorf("get server %s: %w", id, err)
	}
	return vm, nil
}

func (v *servers) get(ctx context.Context, name string) (fleet.VM, error) {
	s, err := v.ownServerByName(ctx, name)
	if err != nil {
		return fleet.VM{}, err
	}
	return v.convertServer(ctx, *s)
}

// List returns all VMs of this deployment.
func (p *Provider) List(ctx context.Context) ([]fleet.VM, error) {
	servers, err := p.servers.list(ctx, url.Values{"label_selector": {labelSelector(p.withDeploymentLabel(nil))}}, false)
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	vms := make([]fleet.VM, 0, len(servers))
	listed := map[int64]bool{}
	for _, s := range servers {
		if s.Labels[fleet.LabelDeployment] != p.cfg.Deployment {
			continue // the selector is a filter without guarantees
		}
		p.servers.cacheServer(s)
		vm, err := p.servers.convertServer(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("list VMs: %s: %w", s.Name, err)
		}
		vms = append(vms, vm)
		listed[s.ID] = true
	}
	p.servers.dropUnlistedStates(listed)
	return vms, nil
}

func (v *servers) list(ctx context.Context, query url.Values, low bool) ([]schema.Server, error) {
	return listAll(ctx, v.api, request{method: http.MethodGet, path: "/servers", query: query, low: low},
		func(r schema.ServerListResponse) []schema.Server { return r.Servers }, func(s schema.Server) int64 { return s.ID })
}

// serverByName returns the project's server with this name; nil if there is none.
func (v *servers) serverByName(ctx context.Context, name string) (*schema.Server, error) {
	if err := fleet.ValidName(name); err != nil {
		return nil, err
	}
	servers, err := v.list(ctx, url.Values{"name": {name}}, false)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		if s.Name == name {
			return &s, nil
		}
	}
	return nil, nil //nolint:nilnil // nil means absent
}

// ownServerByName returns the server with this name, or fleet.ErrNotFound if it is missing or not this deployment's.
func (v *servers) ownServerByName(ctx context.Context, name string) (*schema.Server, error) {
	s, err := v.serverByName(ctx, name)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Labels[fleet.LabelDeployment] != v.cfg.Deployment {
		return nil, fleet.ErrNotFound
	}
	return s, nil
}

// errNotOurs means that the server with this ID lacks this deployment's label.
var errNotOurs = fmt.Errorf("%w of this deployment", fleet.ErrNotFound)

// ownServerByID reads the server with this ID, or returns fleet.ErrNotFound if this deployment has none. The result has
// the ID in any case.
func (v *servers) ownServerByID(ctx context.Context, id string) (schema.Server, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 {
		return schema.Server{}, fmt.Errorf("%w: no server has the id %q", fleet.ErrInvalid, id)
	}
	s, err := v.byID(ctx, number)
	switch {
	case err != nil:
	case s.ID != number:
		err = fmt.Errorf("%w: requested server %d, the response is about %d", errTemporary, number, s.ID)
	case s.Labels[fleet.LabelDeployment] != v.cfg.Deployment:
		err = errNotOurs
	default:
		v.cacheServer(s)
	}
	s.ID = number
	return s, err
}

// byID reads the server with this ID.
func (v *servers) byID(ctx context.Context, id int64) (schema.Server, error) {
	out, _, err := call[schema.ServerGetResponse](ctx, v.api, request{method: http.MethodGet, path: formatPath("/servers/%d", id)})
	return out.Server, err
}

// convertServer converts a server.
func (v *servers) convertServer(ctx context.Context, s schema.Server) (fleet.VM, error) {
	j, err := v.determineState(ctx, s)
	if err != nil {
		return fleet.VM{}, err
	}
	hour, currency := v.market.hourPrice(ctx, s)
	return fleet.VM{
		Name: s.Name, Labels: maps.Clone(s.Labels), State: j.state, Ended: j.ended, Detail: j.detail,
		Endpoint: remote.Endpoint{Network: "tcp", Address: v.address(s), User: User},
		Kind:     s.ServerType.Name, Isolation: fleet.IsolationVM, ID: fmt.Sprint(s.ID), Location: s.Location.Name,
		MicroHour: hour, Currency: currency, TetherPort: tetherPort, CreatedAt: s.Created.UTC(),
		Facts: factsFromLabels(s.Labels),
	}, nil
}

// address returns the VM's SSH address, empty while it has none.
func (v *servers) address(s schema.Server) string {
	ip := netip.Addr{}
	switch {
	case v.cfg.Private:
		for _, n := range s.PrivateNet {
			if n.Network == v.cfg.Network {
				ip, _ = netip.ParseAddr(n.IP)
			}
		}
	case s.PublicNet.IPv4.IP != "":
		ip, _ = netip.ParseAddr(s.PublicNet.IPv4.IP)
	default: // the API returns the network; the host is its first address
		if net, err := netip.ParsePrefix(s.PublicNet.IPv6.IP); err == nil {
			ip = net.Masked().Addr().Next()
		}
	}
	if !ip.IsValid() {
		return ""
	}
	return netip.AddrPortFrom(ip, 22).String()
}

// recentServer returns a server of this deployment if the API returned it recently.
func (v *servers) recentServer(id int64) (schema.Server, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.cachedServers[id]
	return s.Server, ok && v.cfg.Now().Sub(s.at) < serverTTL
}
