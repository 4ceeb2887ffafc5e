package simhetzner

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

type network struct {
	id      int64
	name    string
	ipRange netip.Prefix
	subnets []schema.NetworkSubnet
	routes  []schema.NetworkRoute
	labels  map[string]string
	created time.Time
}

func (n *network) about() (int64, string, time.Time, map[string]string) {
	return n.id, n.name, n.created, n.labels
}

func networkRef(n *network) []schema.ActionResourceReference {
	return []schema.ActionResourceReference{{ID: n.id, Type: "network"}}
}

func (n *network) usedAddresses(s *Sim) map[netip.Addr]bool {
	taken := map[netip.Addr]bool{}
	for _, sv := range s.servers {
		for _, a := range sv.nets {
			if a.network == n {
				taken[a.ip] = true
			}
		}
	}
	return taken
}

func (n *network) freeAddress(s *Sim) netip.Addr {
	in := n.ipRange
	if len(n.subnets) > 0 {
		in = netip.MustParsePrefix(n.subnets[0].IPRange) // was checked at its creation
	}
	return lowestFree(in, n.usedAddresses(s))
}

func (s *Sim) wireNetwork(n *network) any {
	w := schema.Network{
		ID:            n.id,
		Name:          n.name,
		Created:       n.created.UTC().Truncate(time.Second),
		IPRange:       n.ipRange.String(),
		Subnets:       n.subnets,
		Routes:        n.routes,
		Servers:       []int64{},
		LoadBalancers: []int64{},
		Labels:        n.labels,
	}
	for _, sv := range s.servers {
		for _, a := range sv.nets {
			if a.network == n {
				w.Servers = append(w.Servers, sv.id)
			}
		}
	}
	return w
}

func listNetworks(s *Sim, c *call) (answer, error) {
	return list(c, "networks", s.networks, nil, s.wireNetwork)
}

func getNetwork(s *Sim, c *call) (answer, error) {
	n, err := pathObject(c, "network", s.networks)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"network": s.wireNetwork(n)}}, nil
}

func createNetwork(s *Sim, c *call) (answer, error) {
	req, err := decode[schema.NetworkCreateRequest](c)
	if err != nil {
		return answer{}, err
	}
	labels, err := checkLabels(req.Labels)
	if err != nil {
		return answer{}, err
	}
	if req.Name == "" {
		return answer{}, newFieldError("name", "is needed")
	}
	ipRange, err := netip.ParsePrefix(req.IPRange)
	if err != nil || !ipRange.Addr().Is4() || !ipRange.Addr().IsPrivate() {
		return answer{}, newFieldError("ip_range", "has to be a private IPv4 network")
	}
	if err := checkNameFree(s.networks, "network", req.Name, 0); err != nil {
		return answer{}, err
	}
	n := &network{
		id:      s.nextID(),
		name:    req.Name,
		ipRange: ipRange.Masked(),
		subnets: []schema.NetworkSubnet{},
		routes:  req.Routes,
		labels:  labels,
		created: c.now,
	}
	if n.routes == nil {
		n.routes = []schema.NetworkRoute{}
	}
	for _, sub := range req.Subnets {
		p, err := netip.ParsePrefix(sub.IPRange)
		if err != nil || !n.ipRange.Overlaps(p) || p.Bits() < n.ipRange.Bits() {
			return answer{}, newFieldError("subnets", "%q does not lie in the network", sub.IPRange)
		}
		sub.Gateway = n.ipRange.Addr().Next().String()
		n.subnets = append(n.subnets, sub)
	}
	s.networks[n.id] = n
	return answer{http.StatusCreated, map[string]any{"network": s.wireNetwork(n)}}, nil
}

func updateNetwork(s *Sim, c *call) (answer, error) {
	n, err := pathObject(c, "network", s.networks)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.NetworkUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if req.Name != "" {
		if err := checkNameFree(s.networks, "network", req.Name, n.id); err != nil {
			return answer{}, err
		}
		n.name = req.Name
	}
	if req.Labels != nil {
		if n.labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	return answer{http.StatusOK, map[string]any{"network": s.wireNetwork(n)}}, nil
}

func deleteNetwork(s *Sim, c *call) (answer, error) {
	n, err := pathObject(c, "network", s.networks)
	if err != nil {
		return answer{}, err
	}
	if len(n.usedAddresses(s)) > 0 {
		return answer{}, newError("resource_in_use", "network still has servers")
	}
	delete(s.networks, n.id)
	return answer{status: http.StatusNoContent}, nil
}
