package simhetzner

import (
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

type primaryIP struct {
	id         int64
	name       string
	kind       string // ipv4, ipv6
	addr       netip.Addr
	location   *location
	labels     map[string]string
	created    time.Time
	autoDelete bool
	protected  bool
	server     *server
	meter      *meter
}

func (p *primaryIP) about() (int64, string, time.Time, map[string]string) {
	return p.id, p.name, p.created, p.labels
}

// address returns the address in the API's form: for IPv6 the network.
func (p *primaryIP) address() string {
	if p.kind == "ipv6" {
		return p.addr.String() + "/64"
	}
	return p.addr.String()
}

func (p *primaryIP) dns() string {
	b := p.addr.As4()
	return fmt.Sprintf("static.%d.%d.%d.%d.clients.your-server.de", b[3], b[2], b[1], b[0])
}

func (s *Sim) newPrimaryIP(kind, name string, where *location, now time.Time) *primaryIP {
	p := &primaryIP{id: s.nextID(), name: name, kind: kind, location: where, labels: map[string]string{}, created: now}
	var price hetznerbill.Price
	if kind == "ipv6" {
		raw := netip.MustParseAddr("2001:db8::").As16()
		raw[4], raw[5], raw[6], raw[7] = byte(p.id>>24), byte(p.id>>16), byte(p.id>>8), byte(p.id)
		p.addr = netip.AddrFrom16(raw)
	} else {
		p.addr = s.freeIPv4()
		price = hetznerbill.IPv4()
	}
	p.meter = s.meters.start(meter{
		kind:     "primary_ip",
		id:       p.id,
		name:     name,
		labels:   p.labels,
		typ:      kind,
		location: where.Name,
		Meter:    hetznerbill.Meter{Price: price, From: now},
	})
	s.primaryIPs[p.id] = p
	return p
}

// freeIPv4 returns the next address to assign.
func (s *Sim) freeIPv4() netip.Addr {
	taken := map[netip.Addr]bool{}
	for _, p := range s.primaryIPs {
		taken[p.addr] = true
	}
	return lowestFree(s.cfg.IPv4, taken)
}

func (p *primaryIP) wire() any {
	w := schema.PrimaryIP{
		ID:           p.id,
		IP:           p.address(),
		Labels:       p.labels,
		Name:         p.name,
		Type:         p.kind,
		Protection:   schema.PrimaryIPProtection{Delete: p.protected},
		DNSPtr:       []schema.PrimaryIPDNSPTR{},
		AssigneeType: "server",
		AutoDelete:   p.autoDelete,
		Created:      p.created.UTC().Truncate(time.Second),
		Location:     p.location.Location,
	}
	if p.kind == "ipv4" {
		w.DNSPtr = append(w.DNSPtr, schema.PrimaryIPDNSPTR{DNSPtr: p.dns(), IP: p.address()})
	}
	if p.server != nil {
		w.AssigneeID = &p.server.id
	}
	return w
}

func listPrimaryIPs(s *Sim, c *call) (answer, error) {
	return list(c, "primary_ips", s.primaryIPs, func(p *primaryIP) bool { return anyOf(c, "ip", p.address()) }, (*primaryIP).wire)
}

func getPrimaryIP(s *Sim, c *call) (answer, error) {
	p, err := pathObject(c, "primary_ip", s.primaryIPs)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"primary_ip": p.wire()}}, nil
}

func createPrimaryIP(s *Sim, c *call) (answer, error) {
	req, err := decode[schema.PrimaryIPCreateRequest](c)
	if err != nil {
		return answer{}, err
	}
	labels, err := checkLabels(req.Labels)
	if err != nil {
		return answer{}, err
	}
	where := s.catalog.location(req.Location)
	switch {
	case req.Name == "":
		return answer{}, newFieldError("name", "is needed")
	case req.Type != "ipv4" && req.Type != "ipv6":
		return answer{}, newFieldError("type", "has to be ipv4 or ipv6")
	case where == nil:
		return answer{}, newFieldError("location", "there is none like it")
	}
	if err := checkNameFree(s.primaryIPs, "primary_ip", req.Name, 0); err != nil {
		return answer{}, err
	}
	if req.Type == "ipv4" && !s.freeIPv4().IsValid() {
		return answer{}, newError("resource_unavailable", "no address is left")
	}
	p := s.newPrimaryIP(req.Type, req.Name, where, c.now)
	p.labels, p.autoDelete = labels, req.AutoDelete != nil && *req.AutoDelete
	return answer{http.StatusCreated, map[string]any{"primary_ip": p.wire()}}, nil
}

func updatePrimaryIP(s *Sim, c *call) (answer, error) {
	p, err := pathObject(c, "primary_ip", s.primaryIPs)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.PrimaryIPUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	if req.Name != "" {
		if err := checkNameFree(s.primaryIPs, "primary_ip", req.Name, p.id); err != nil {
			return answer{}, err
		}
		p.name = req.Name
	}
	if req.Labels != nil {
		if p.labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	if req.AutoDelete != nil {
		p.autoDelete = *req.AutoDelete
	}
	return answer{http.StatusOK, map[string]any{"primary_ip": p.wire()}}, nil
}

func deletePrimaryIP(s *Sim, c *call) (answer, error) {
	p, err := pathObject(c, "primary_ip", s.primaryIPs)
	switch {
	case err != nil:
		return answer{}, err
	case p.protected:
		return answer{}, newError("protected", "primary IP deletion is protected")
	case p.server != nil:
		return answer{}, newError("resource_in_use", "primary IP is assigned")
	}
	delete(s.primaryIPs, p.id)
	p.meter.stop(c.now)
	return answer{status: http.StatusNoContent}, nil
}
