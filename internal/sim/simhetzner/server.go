package simhetzner

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"github.com/hetznercloud/hcloud-go/v2/hcloud/schema"
)

// Statuses of servers.
const (
	serverInitializing = "initializing"
	serverStarting     = "starting"
	serverRunning      = "running"
	serverStopping     = "stopping"
	serverOff          = "off"
	serverDeleting     = "deleting"
	serverRebuilding   = "rebuilding"
)

type server struct {
	id         int64
	name       string
	status     string
	created    time.Time
	typ        *serverType
	location   *location
	image      *image // nil if it has been deleted
	labels     map[string]string
	v4, v6     *primaryIP
	nets       []attachment
	firewalls  []*firewall
	applying   map[int64]*action // the actions that apply firewalls to the running server, by the firewalls' IDs
	volumes    []*volume
	protection schema.ServerProtection
	userData   string
	keys       []string
	diskGB     int
	running    int // running actions; the server is locked while there is one
	machine    Machine
	meter      *meter
	// synced states that the disk has all data that its computer has written: it has shut down cleanly, or was synced
	// since the last start.
	synced bool
}

// attachment is a server's membership in a network.
type attachment struct {
	network *network
	ip      netip.Addr
}

func (sv *server) about() (int64, string, time.Time, map[string]string) {
	return sv.id, sv.name, sv.created, sv.labels
}

// wireServer differs from the client's type where the API sends null.
type wireServer struct {
	schema.Server
	PublicNet  wirePublicNet `json:"public_net"`
	ServerType wireType      `json:"server_type"`
	Image      *wireImage    `json:"image"`
}

type wirePublicNet struct {
	IPv4        *schema.ServerPublicNetIPv4 `json:"ipv4"`
	IPv6        *schema.ServerPublicNetIPv6 `json:"ipv6"`
	FloatingIPs []int64                     `json:"floating_ips"`
	Firewalls   []schema.ServerFirewall     `json:"firewalls"`
}

const includedTraffic = 20 << 40

func (s *Sim) wireServer(sv *server) any {
	none := uint64(0)
	w := wireServer{Server: schema.Server{
		ID: sv.id, Name: sv.name, Status: sv.status, Created: sv.created.UTC().Truncate(time.Second),
		PrivateNet: []schema.ServerPrivateNet{}, IncludedTraffic: includedTraffic,
		OutgoingTraffic: &none, IngoingTraffic: &none, Locked: sv.running > 0, Location: sv.location.Location,
		Protection: sv.protection, Labels: sv.labels, Volumes: []int64{}, PrimaryDiskSize: sv.diskGB, LoadBalancers: []int64{},
	}}
	w.ServerType = s.wireType(sv.typ)
	if sv.image != nil {
		img := sv.image.wire()
		w.Image = &img
	}
	for _, a := range sv.nets {
		w.PrivateNet = append(w.PrivateNet, schema.ServerPrivateNet{
			Network: a.network.id, IP: a.ip.String(), AliasIPs: []string{}, MACAddress: macOf(a.ip),
		})
	}
	for _, v := range sv.volumes {
		w.Volumes = append(w.Volumes, v.id)
	}
	w.PublicNet = wirePublicNet{FloatingIPs: []int64{}, Firewalls: []schema.ServerFirewall{}}
	if sv.v4 != nil {
		w.PublicNet.IPv4 = &schema.ServerPublicNetIPv4{ID: sv.v4.id, IP: sv.v4.address(), DNSPtr: sv.v4.dns()}
	}
	if sv.v6 != nil {
		w.PublicNet.IPv6 = &schema.ServerPublicNetIPv6{ID: sv.v6.id, IP: sv.v6.address(), DNSPtr: []schema.ServerPublicNetIPv6DNSPtr{}}
	}
	for _, f := range sv.firewalls {
		status := "applied"
		if a := sv.applying[f.id]; a != nil && a.running() {
			status = "pending"
		}
		w.PublicNet.Firewalls = append(w.PublicNet.Firewalls, schema.ServerFirewall{ID: f.id, Status: status})
	}
	return w
}

// macOf derives a hardware address.
func macOf(ip netip.Addr) string {
	const digits = "0123456789abcdef"
	mac := []byte("86:00:")
	for i, b := range ip.As4() {
		if i > 0 {
			mac = append(mac, ':')
		}
		mac = append(mac, digits[b>>4], digits[b&15])
	}
	return string(mac)
}

func listServers(s *Sim, c *call) (answer, error) {
	return list(c, "servers", s.servers, func(sv *server) bool { return anyOf(c, "status", sv.status) }, s.wireServer)
}

func getServer(s *Sim, c *call) (answer, error) {
	sv, err := pathObject(c, "server", s.servers)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, map[string]any{"server": s.wireServer(sv)}}, nil
}

func updateServer(s *Sim, c *call) (answer, error) {
	sv, err := pathObject(c, "server", s.servers)
	if err != nil {
		return answer{}, err
	}
	req, err := decode[schema.ServerUpdateRequest](c)
	if err != nil {
		return answer{}, err
	}
	labels := sv.labels
	if req.Labels != nil {
		if labels, err = checkLabels(req.Labels); err != nil {
			return answer{}, err
		}
	}
	if req.Name != "" {
		if !validHostname(req.Name) {
			return answer{}, newFieldError("name", "is no hostname")
		}
		if err := checkNameFree(s.servers, "server", req.Name, sv.id); err != nil {
			return answer{}, err
		}
		sv.name = req.Name
	}
	sv.labels = labels
	return answer{http.StatusOK, map[string]any{"server": s.wireServer(sv)}}, nil
}

func validHostname(name string) bool { return len(name) <= 253 && hostname.MatchString(name) }

// deleteServer releases the name, the capacity and the addresses when it is done.
func deleteServer(s *Sim, c *call) (answer, error) {
	sv, err := s.unlockedServer(c)
	if err != nil {
		return answer{}, err
	}
	if sv.protection.Delete {
		return answer{}, newError("protected", "server deletion is protected")
	}
	was := sv.status
	sv.status = serverDeleting
	m := sv.machine
	var do func(context.Context) error
	if m != nil {
		do = m.Delete
	}
	done := func(at time.Time, failed bool) {
		if failed {
			sv.status = was
			return
		}
		sv.machine = nil
		s.removeServer(sv, at)
	}
	a := s.startAction(c, plan{command: "delete_server", took: s.cfg.Took.Delete, server: sv, work: s.startWork(do), done: done})
	return answer{http.StatusOK, map[string]any{"action": s.wireAction(a)}}, nil
}

// removeServer removes a server with its dependent resources.
func (s *Sim) removeServer(sv *server, at time.Time) {
	if s.servers[sv.id] == nil {
		return
	}
	delete(s.servers, sv.id)
	sv.meter.stop(at)
	s.stocks.giveBack(sv.typ, sv.location)
	for _, ip := range []*primaryIP{sv.v4, sv.v6} {
		if ip == nil {
			continue
		}
		ip.server = nil
		if ip.autoDelete {
			delete(s.primaryIPs, ip.id)
			ip.meter.stop(at)
		}
	}
	for _, v := range sv.volumes {
		v.server = nil
	}
	for _, img := range s.images {
		if img.boundTo == sv {
			img.boundTo = nil
		}
	}
}

// Vanish deletes a server as if by hand in the console, without an action. It reports whether the server existed.
func (s *Sim) Vanish(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.servers[id]
	if sv == nil {
		return false
	}
	if m := sv.machine; m != nil {
		sv.machine = nil
		s.startWork(m.Delete)
	}
	s.removeServer(sv, s.cfg.Now())
	return true
}

// WentOff records that a server's computer has shut down without a request, as after its own timer. It reports whether
// the server exists.
func (s *Sim) WentOff(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.servers[id]
	if sv != nil {
		sv.status, sv.synced = serverOff, true
	}
	return sv != nil
}

// Synced records that a server's computer has just written its memory to its disk. It reports whether the server
// exists.
func (s *Sim) Synced(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sv := s.servers[id]
	if sv != nil {
		sv.synced = true
	}
	return sv != nil
}

// unlockedServer returns the server in the path, or an error while it is locked by an action.
func (s *Sim) unlockedServer(c *call) (*server, error) {
	sv, err := pathObject(c, "server", s.servers)
	if err != nil {
		return nil, err
	}
	if sv.running > 0 {
		return nil, newError(codeLocked, "server is locked")
	}
	return sv, nil
}
