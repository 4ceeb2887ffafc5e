// Package egress is the HTTP proxy through which VMs reach package registries. It has an allow-list.
//
// A VM with a closed firewall reaches only the services behind its tether; its requests for other hosts end here. Hosts
// are allowed by name and port. The proxy resolves a name once. All its addresses must be public and none may belong to
// this host, whose services might trust the proxy's requests. The proxy connects to one of these addresses, so DNS
// rebinding cannot reach internal services. It refuses IP addresses in place of names. In a tunnel the server name of
// the TLS hello must equal the requested name.
//
// Every request is reported to the record function of [Proxy.Serve], allowed or not.
//
// Start here: [Proxy.Serve], then [Policy].
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Limits per VM and per request.
const (
	maxOpen       = 64               // concurrent requests and tunnels of one VM
	lookUpTimeout = 10 * time.Second // resolving a name
	dialTimeout   = 15 * time.Second // connecting, over all addresses of a name
	helloTimeout  = 15 * time.Second // until the client of a tunnel has sent its TLS hello
	idleTimeout   = 5 * time.Minute  // without a byte in either direction
	answerTimeout = 5 * time.Minute  // until the response header
)

// A Request is the record of one finished request.
type Request struct {
	At       time.Time     `json:"at"`
	Took     time.Duration `json:"took"`
	Method   string        `json:"method"` // CONNECT for a tunnel
	Host     string        `json:"host"`
	Port     string        `json:"port"`
	Path     string        `json:"path,omitempty"` // of a request for a registry
	Allowed  bool          `json:"allowed"`
	Reason   string        `json:"reason,omitempty"` // one sentence if the request was refused or failed
	Sent     int64         `json:"sent"`             // bytes from the VM; tunnels only
	Received int64         `json:"received"`         // bytes to the VM
}

// An outcome is the record of a request that is being answered.
type outcome struct {
	Request
	record   func(Request)
	recorded bool // the requests in this tunnel were recorded instead of it
}

// A Resolver resolves host names. *net.Resolver implements it.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config configures a [Proxy].
type Config struct {
	// Resolver defaults to net.DefaultResolver.
	Resolver Resolver
	// Dial connects to an address; it defaults to a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OwnAddresses returns the addresses of this host's interfaces. It is called for each request and defaults to
	// net.InterfaceAddrs.
	OwnAddresses func() ([]net.Addr, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Authority issues the certificates for the hosts of registries; nil refuses them.
	Authority *Authority
	// Upstream reaches registries; nil means NewUpstream.
	Upstream http.RoundTripper

	// tunnelIdle is the time without a byte after which a tunnel to a registry ends; tests set it.
	tunnelIdle time.Duration
}

// A Proxy serves the requests of VMs for other hosts. It is safe for concurrent use.
type Proxy struct {
	cfg Config

	mu   sync.Mutex
	open map[string]int // connections by VM
}

// New returns a [Proxy].
func New(cfg Config) *Proxy {
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	if cfg.Dial == nil {
		cfg.Dial = (&net.Dialer{}).DialContext
	}
	if cfg.OwnAddresses == nil {
		cfg.OwnAddresses = net.InterfaceAddrs
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.tunnelIdle == 0 {
		cfg.tunnelIdle = answerTimeout + idleTimeout
	}
	if cfg.Upstream == nil {
		cfg.Upstream = NewUpstream()
	}
	return &Proxy{cfg: cfg, open: map[string]int{}}
}

// Authority returns the certificate, in PEM, of the authority for the hosts of registries, nil without any.
func (p *Proxy) Authority() []byte {
	if p.cfg.Authority == nil {
		return nil
	}
	return p.cfg.Authority.PEM()
}

// IsProxyRequest reports whether r is a request to a proxy: a CONNECT, or one with an absolute URL.
func IsProxyRequest(r *http.Request) bool { return r.Method == http.MethodConnect || r.URL.IsAbs() }

// Serve answers one request of a VM according to policy and calls record once with the outcome, or, for a tunnel to a host with registries, once
// for each request in it.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, vm string, policy Policy, record func(Request)) {
	begun := p.cfg.Now()
	done := outcome{Request: Request{At: begun, Method: r.Method}, record: record}
	defer func() {
		if done.Took = p.cfg.Now().Sub(begun); !done.recorded {
			record(done.Request)
		}
	}()
	err := p.serve(w, r, vm, policy, &done)
	if err == nil {
		return
	}
	done.Reason = err.Error()
	status := http.StatusBadGateway
	var refused *RefusedError
	if errors.As(err, &refused) {
		status = http.StatusForbidden
	}
	if !errors.Is(err, errAnswered) {
		http.Error(w, "errand: "+err.Error(), status)
	}
}

// errAnswered marks the failure of a request after its response had begun.
var errAnswered = errors.New("broken off")

// A RefusedError explains why a host is not reachable. Its text may be shown to the agent.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, vm string, policy Policy, done *outcome) error {
	var err error
	if done.Host, done.Port, err = requestTarget(r); err != nil {
		return err
	}
	registries := policy.registriesAt(done.Host, done.Port)
	if err := policy.check(done.Host, done.Port); err != nil && registries == nil {
		return err
	}
	release, err := p.enter(vm)
	if err != nil {
		return err
	}
	defer release()
	if registries != nil {
		return p.serveRegistries(w, r, done, registries)
	}
	addresses, err := p.lookUp(r.Context(), done.Host)
	if err != nil {
		return err
	}
	done.Allowed = true
	dial := func(ctx context.Context) (net.Conn, error) { return p.dial(ctx, addresses, done.Port) }
	if r.Method == http.MethodConnect {
		return tunnel(w, r, &done.Request, dial)
	}
	return forward(w, r, &done.Request, dial)
}

// enter claims one of the VM's maxOpen connections.
func (p *Proxy) enter(vm string) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[vm] >= maxOpen {
		return nil, refuse("%d connections are open already", maxOpen)
	}
	p.open[vm]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.open[vm]--; p.open[vm] == 0 {
			delete(p.open, vm)
		}
	}, nil
}

// lookUp resolves a name. It fails if any address is not public or belongs to this host, because that is not a registry
// or someone manipulates the name.
func (p *Proxy) lookUp(ctx context.Context, host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	list, err := p.cfg.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	own, err := p.ownAddresses()
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		switch {
		case !isPublic(a):
			return nil, refuse("%s has the address %s, which is not public", host, a.Unmap())
		case own[a.Unmap()]:
			return nil, refuse("%s has the address %s, which belongs to errand's own host", host, a.Unmap())
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", host)
	}
	return list, nil
}

// ownAddresses returns the current addresses of this host's interfaces.
func (p *Proxy) ownAddresses() (map[netip.Addr]bool, error) {
	list, err := p.cfg.OwnAddresses()
	if err != nil {
		return nil, fmt.Errorf("list this host's addresses: %w", err)
	}
	own := make(map[netip.Addr]bool, len(list))
	for _, a := range list {
		ip, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if address, ok := netip.AddrFromSlice(ip.IP); ok {
			own[address.Unmap()] = true
		}
	}
	return own, nil
}

// dial connects to the first address that accepts a connection.
func (p *Proxy) dial(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var errs []error
	for _, a := range addresses {
		conn, err := p.cfg.Dial(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// meter counts the bytes written through it.
type meter struct {
	io.Writer
	n *atomic.Int64
}

func (m meter) Write(b []byte) (int, error) {
	n, err := m.Writer.Write(b)
	m.n.Add(int64(n))
	return n, err
}
