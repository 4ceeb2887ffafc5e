package hetzner

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// Get returns one VM of this deployment.
func (p *Provider) Get(ctx context.Context, name string) (fleet.VM, error) {
	vm, err := p.get(ctx, name)
	if err != nil {
		return fleet.VM{}, fmt.Errorf("get VM %s: %w", name, err)
	}
	return vm, nil
}

// GetByID returns the VM of this deployment with this ID.
func (p *Provider) GetByID(ctx context.Context, id string) (fleet.VM, error) {
	s, err := p.oursByID(ctx, id)
	var vm fleet.VM
	if err == nil {
		vm, err = p.vm(ctx, s)
	}
	if err != nil {
		return fleet.VM{}, fmt.Errorf("get server %s: %w", id, err)
	}
	return vm, nil
}

func (p *Provider) get(ctx context.Context, name string) (fleet.VM, error) {
	s, err := p.ours(ctx, name)
	if err != nil {
		return fleet.VM{}, err
	}
	return p.vm(ctx, *s)
}

// List returns all VMs of this deployment.
func (p *Provider) List(ctx context.Context) ([]fleet.VM, error) {
	servers, err := p.servers(ctx, url.Values{"label_selector": {selector(p.own(nil))}}, false)
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	vms := make([]fleet.VM, 0, len(servers))
	listed := map[int64]bool{}
	for _, s := range servers {
		if s.Labels[fleet.LabelDeployment] != p.cfg.Deployment {
			continue // the selector is a filter without guarantees
		}
		p.rememberServer(s)
		vm, err := p.vm(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("list VMs: %s: %w", s.Name, err)
		}
		vms = append(vms, vm)
		listed[s.ID] = true
	}
	p.forgetUnlisted(listed)
	return vms, nil
}

func (p *Provider) servers(ctx context.Context, query url.Values, low bool) ([]schema.Server, error) {
	return all(ctx, p, request{method: http.MethodGet, path: "/servers", query: query, low: low},
		func(r schema.ServerListResponse) []schema.Server { return r.Servers }, func(s schema.Server) int64 { return s.ID })
}

// named returns the project's server with this name; nil if there is none.
func (p *Provider) named(ctx context.Context, name string) (*schema.Server, error) {
	if err := fleet.ValidName(name); err != nil {
		return nil, err
	}
	servers, err := p.servers(ctx, url.Values{"name": {name}}, false)
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

// ours returns the server with this name, or fleet.ErrNotFound if it is missing or not this deployment's.
func (p *Provider) ours(ctx context.Context, name string) (*schema.Server, error) {
	s, err := p.named(ctx, name)
	if err != nil {
		return nil, err
	}
	if s == nil || s.Labels[fleet.LabelDeployment] != p.cfg.Deployment {
		return nil, fleet.ErrNotFound
	}
	return s, nil
}

// errNotOurs means that the server with this ID lacks this deployment's label.
var errNotOurs = fmt.Errorf("%w of this deployment", fleet.ErrNotFound)

// oursByID reads the server with this ID, or returns fleet.ErrNotFound if this deployment has none. The result has the
// ID in any case.
func (p *Provider) oursByID(ctx context.Context, id string) (schema.Server, error) {
	number, err := strconv.ParseInt(id, 10, 64)
	if err != nil || number <= 0 {
		return schema.Server{}, fmt.Errorf("%w: no server has the id %q", fleet.ErrInvalid, id)
	}
	s, err := p.server(ctx, number)
	switch {
	case err != nil:
	case s.ID != number:
		err = fmt.Errorf("%w: requested server %d, the response is about %d", errPassing, number, s.ID)
	case s.Labels[fleet.LabelDeployment] != p.cfg.Deployment:
		err = errNotOurs
	default:
		p.rememberServer(s)
	}
	s.ID = number
	return s, err
}

// server reads the server with this ID.
func (p *Provider) server(ctx context.Context, id int64) (schema.Server, error) {
	out, _, err := call[schema.ServerGetResponse](ctx, p, request{method: http.MethodGet, path: path("/servers/%d", id)})
	return out.Server, err
}

// vm converts a server.
func (p *Provider) vm(ctx context.Context, s schema.Server) (fleet.VM, error) {
	j, err := p.judge(ctx, s)
	if err != nil {
		return fleet.VM{}, err
	}
	hour, currency := p.hour(ctx, s)
	return fleet.VM{
		Name: s.Name, Labels: maps.Clone(s.Labels), State: j.state, Ended: j.ended, Detail: j.detail,
		Endpoint: remote.Endpoint{Network: "tcp", Address: p.address(s), User: User},
		Kind:     s.ServerType.Name, Isolation: fleet.IsolationVM, ID: fmt.Sprint(s.ID), Location: s.Location.Name,
		MicroHour: hour, Currency: currency, TetherPort: tetherPort, CreatedAt: s.Created.UTC(),
		Facts: facts(s.Labels),
	}, nil
}

// address returns the VM's SSH address, empty while it has none.
func (p *Provider) address(s schema.Server) string {
	ip := netip.Addr{}
	switch {
	case p.cfg.Private:
		for _, n := range s.PrivateNet {
			if n.Network == p.cfg.Network {
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
