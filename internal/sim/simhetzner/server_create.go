package simhetzner

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/netip"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"

	"github.com/errand-bot/errand/internal/hetznerbill"
)

const maxUserData = 32 << 10

// order is a request for a server with all references resolved.
type order struct {
	schema.ServerCreateRequest
	typ       *serverType
	location  *location
	image     *image
	labels    map[string]string
	keys      []string
	firewalls []*firewall
	networks  []*network
	volumes   []*volume
	v4, v6    bool
	ownV4     *primaryIP
	ownV6     *primaryIP
	start     bool
}

func createServer(s *Sim, c *call) (answer, error) {
	req, err := decode[schema.ServerCreateRequest](c)
	if err != nil {
		return answer{}, err
	}
	o := order{ServerCreateRequest: req, v4: true, v6: true, start: req.StartAfterCreate == nil || *req.StartAfterCreate}
	for _, check := range []func(*order) error{s.orderWhat, s.orderWith, s.orderNet, s.orderLimits} {
		if err := check(&o); err != nil {
			return answer{}, err
		}
	}
	sv := s.newServer(&o, c.now)
	created, next := s.bootServer(c, sv, &o)
	var password *string
	if len(o.keys) == 0 {
		text := rand.Text()[:20]
		password = &text
	}
	s.actions.dropOldest(s.lastID)
	return answer{http.StatusCreated, map[string]any{
		"server": s.wireServer(sv), "action": s.wireAction(created), "next_actions": s.wireActions(next...), "root_password": password,
	}}, nil
}

// orderWhat resolves name, type, image and location.
func (s *Sim) orderWhat(o *order) error {
	if !validHostname(o.Name) {
		return newFieldError("name", "is no hostname")
	}
	if len(o.UserData) > maxUserData {
		return newFieldError("user_data", "is longer than 32 KiB")
	}
	if o.typ = s.catalog.serverType(o.ServerType); o.typ == nil {
		return newFieldError("server_type", "there is none like it")
	}
	if o.location = s.catalog.location(o.Location); o.location == nil {
		if o.Location != "" {
			return newFieldError("location", "there is none like it")
		}
		for _, l := range s.catalog.locations {
			if _, ok := o.typ.prices[l.Name]; ok {
				o.location = l
				break
			}
		}
	}
	if _, ok := o.typ.prices[o.location.Name]; !ok {
		return newFieldError("server_type", "unsupported location for server type")
	}
	if o.image = s.images.find(o.Image, o.typ.Architecture); o.image == nil {
		return newFieldError("image", "there is none like it")
	}
	switch {
	case o.image.arch != o.typ.Architecture:
		return newFieldError("image", "is for another architecture")
	case o.image.status != imageAvailable:
		return newError("conflict", "image is not available")
	case o.image.diskGB > o.typ.Disk:
		return newFieldError("image", "image disk is bigger than the server type's disk")
	}
	return checkNameFree(s.servers, "server", o.Name, 0)
}

// orderWith resolves labels, keys, firewalls, networks and volumes.
func (s *Sim) orderWith(o *order) (err error) {
	if o.labels, err = checkLabels(o.Labels); err != nil {
		return err
	}
	for _, id := range o.SSHKeys {
		k := s.keys[id]
		if k == nil {
			return notFound("ssh_key", id)
		}
		o.keys = append(o.keys, k.public)
	}
	for _, f := range o.Firewalls {
		fw := s.firewalls[f.Firewall]
		if fw == nil {
			return notFound("firewall", f.Firewall)
		}
		o.firewalls = append(o.firewalls, fw)
	}
	for _, id := range o.Networks {
		n := s.networks[id]
		if n == nil {
			return notFound("network", id)
		}
		if !n.freeAddress(s).IsValid() {
			return newError("no_space_left_in_ip_range", "no address is left in network %d", id)
		}
		o.networks = append(o.networks, n)
	}
	for _, id := range o.Volumes {
		v := s.volumes[id]
		switch {
		case v == nil:
			return notFound("volume", id)
		case v.server != nil:
			return newError("resource_in_use", "volume %d is attached", id)
		case v.location != o.location:
			return newFieldError("volumes", "volume %d is in another location", id)
		}
		o.volumes = append(o.volumes, v)
	}
	return nil
}

// orderNet resolves the public addresses.
func (s *Sim) orderNet(o *order) error {
	p := o.PublicNet
	if p == nil {
		return nil
	}
	o.v4, o.v6 = p.EnableIPv4, p.EnableIPv6
	for _, own := range []struct {
		id   int64
		kind string
		to   **primaryIP
	}{{p.IPv4ID, "ipv4", &o.ownV4}, {p.IPv6ID, "ipv6", &o.ownV6}} {
		if own.id == 0 {
			continue
		}
		ip := s.primaryIPs[own.id]
		switch {
		case ip == nil || ip.kind != own.kind:
			return notFound("primary_ip", own.id)
		case ip.server != nil:
			return newError("resource_in_use", "primary IP %d is assigned", own.id)
		case ip.location != o.location:
			return newFieldError("public_net", "primary IP %d is in another location", own.id)
		}
		*own.to = ip
	}
	if !o.v4 && !o.v6 && len(o.networks) == 0 {
		return newFieldError("public_net", "a server without public address needs a network")
	}
	return nil
}

// orderLimits checks the account's limits, then takes capacity of the location.
func (s *Sim) orderLimits(o *order) error {
	q := s.cfg.Quota
	cores := o.typ.Cores
	for _, sv := range s.servers {
		cores += sv.typ.Cores
	}
	v4 := 0
	for _, ip := range s.primaryIPs {
		if ip.kind == "ipv4" {
			v4++
		}
	}
	switch {
	case q.Servers > 0 && len(s.servers) >= q.Servers:
		return newError("resource_limit_exceeded", "server limit exceeded")
	case q.Cores > 0 && cores > q.Cores:
		return newError("resource_limit_exceeded", "core limit exceeded")
	case o.v4 && o.ownV4 == nil && !s.freeIPv4().IsValid():
		return newError("resource_unavailable", "no address is left")
	case q.PrimaryIPv4 > 0 && o.v4 && o.ownV4 == nil && v4 >= q.PrimaryIPv4:
		return newError("resource_limit_exceeded", "primary IP limit exceeded")
	}
	return s.stocks.takeServer(o.typ, o.location)
}

// newServer creates the server of an order.
func (s *Sim) newServer(o *order, now time.Time) *server {
	sv := &server{
		id: s.nextID(), name: o.Name, status: serverInitializing, created: now, typ: o.typ, location: o.location, image: o.image,
		labels: o.labels, firewalls: o.firewalls, applying: map[int64]*action{}, volumes: o.volumes, userData: o.UserData, keys: o.keys, diskGB: o.typ.Disk,
		synced: !o.start,
	}
	s.servers[sv.id] = sv
	p := o.typ.prices[o.location.Name]
	sv.meter = s.meters.start(meter{
		kind:     "server",
		id:       sv.id,
		name:     sv.name,
		labels:   sv.labels,
		typ:      o.typ.Name,
		location: o.location.Name,
		Meter:    hetznerbill.Meter{Price: p, From: now},
	})
	if o.v4 {
		sv.v4 = s.addressFor(sv, o.ownV4, "ipv4", now)
	}
	if o.v6 {
		sv.v6 = s.addressFor(sv, o.ownV6, "ipv6", now)
	}
	for _, v := range o.volumes {
		v.server = sv
	}
	for _, n := range o.networks {
		sv.nets = append(sv.nets, attachment{n, n.freeAddress(s)})
	}
	return sv
}

// bootServer starts the actions of a new server. Its computer starts immediately.
func (s *Sim) bootServer(c *call, sv *server, o *order) (created *action, next []*action) {
	took := s.cfg.Took.Create
	switch {
	case o.image.kind == "snapshot" && o.image.location != o.location:
		took = s.cfg.Took.FromFar
	case o.image.kind == "snapshot":
		took = s.cfg.Took.FromDisk
	}
	spec := sv.spec(o.start)
	booting := s.startWork(func(ctx context.Context) error {
		m, err := s.cfg.Machines.Boot(ctx, spec)
		s.mu.Lock()
		defer s.mu.Unlock()
		sv.machine = m
		return err
	})
	p := plan{command: "create_server", took: took, server: sv, on: imageRef(o.image), done: func(_ time.Time, failed bool) {
		sv.status = serverOff
		if !failed && o.start {
			sv.status = serverStarting
		}
	}}
	if !o.start {
		p.work = booting
	}
	created = s.startAction(c, p)
	for _, a := range sv.nets {
		next = append(next, s.startAction(c, plan{
			command: "attach_to_network", took: s.cfg.Took.Other, server: sv, after: created, on: networkRef(a.network),
		}))
	}
	if o.start {
		started := func(_ time.Time, failed bool) {
			sv.status = serverRunning
			if failed {
				sv.status = serverOff
			}
		}
		boot := plan{command: "start_server", took: s.cfg.Took.Start, server: sv, after: created, work: booting, done: started}
		next = append(next, s.startAction(c, boot))
	}
	return created, next
}

// spec returns the description of the server's computer.
func (sv *server) spec(start bool) MachineSpec {
	m := MachineSpec{
		ID: sv.id, Name: sv.name, UserData: []byte(sv.userData), Keys: sv.keys, Start: start,
		Cores: sv.typ.Cores, MemoryMB: int(sv.typ.Memory * 1024), DiskGB: sv.diskGB,
	}
	if sv.image != nil {
		m.Image, m.Disk = sv.image.name, sv.image.disk
	}
	if sv.v4 != nil {
		m.IPv4 = sv.v4.addr
	}
	if sv.v6 != nil {
		m.IPv6 = sv.v6.addr.Next()
	}
	for _, a := range sv.nets {
		m.Private = append(m.Private, a.ip)
	}
	return m
}

// addressFor assigns the requested address to a server, or a new one.
func (s *Sim) addressFor(sv *server, own *primaryIP, kind string, now time.Time) *primaryIP {
	if own == nil {
		own = s.newPrimaryIP(kind, "primary_ip-"+rand.Text()[:8], sv.location, now)
		own.autoDelete = !s.cfg.KeepAddresses
	}
	own.server = sv
	return own
}

// lowestFree returns the lowest free address of a prefix, invalid if there is none; the first ones belong to the
// network.
func lowestFree(p netip.Prefix, taken map[netip.Addr]bool) netip.Addr {
	a := p.Masked().Addr().Next().Next()
	for taken[a] && p.Contains(a) {
		a = a.Next()
	}
	if !p.Contains(a) {
		return netip.Addr{}
	}
	return a
}
