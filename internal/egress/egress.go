// Package egress is the VMs' way to package registries: an HTTP proxy with an allow-list.
//
// A VM whose firewall is shut reaches nothing but what is answered through its tether, and a request for
// another host that comes that way ends here. Hosts are allowed by name and port. A name is looked up
// once, here; every address that it has must be a public one, and not this host's own, for whose services its
// own requests may count as trusted. The connection goes to one of those addresses, so that a name which changes its mind reaches nothing inside. Addresses in place of names
// are refused. In a tunnel the server name of the TLS hello has to be the name that was asked for.
//
// Every request is told to Config.Record, allowed or not. Start reading at Proxy.ServeHTTP, then Policy.
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

// Bounds of what a VM may use at once and for how long.
const (
	maxOpen       = 64               // requests and tunnels of one VM at once
	lookUpTimeout = 10 * time.Second // of a name
	dialTimeout   = 15 * time.Second // of all addresses of a name together
	helloTimeout  = 15 * time.Second // until a tunnel's client has said which server it means
	idleTimeout   = 5 * time.Minute  // without a byte in either direction
	answerTimeout = 5 * time.Minute  // until the head of an answer
)

// Request is what became of one request.
type Request struct {
	At       time.Time     `json:"at"`
	Took     time.Duration `json:"took"`
	Method   string        `json:"method"` // CONNECT for a tunnel
	Host     string        `json:"host"`
	Port     string        `json:"port"`
	Allowed  bool          `json:"allowed"`
	Reason   string        `json:"reason,omitempty"` // of a refusal or a failure, one sentence
	Sent     int64         `json:"sent"`             // bytes from the VM, tunnels only
	Received int64         `json:"received"`         // bytes to the VM
}

// Resolver looks names up; *net.Resolver does.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config configures a Proxy.
type Config struct {
	// Resolver defaults to the host's own.
	Resolver Resolver
	// Dial connects to an address; the default is a plain dialler.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// OwnAddresses are those of this host's interfaces, asked for with each request; the default is net.InterfaceAddrs.
	OwnAddresses func() ([]net.Addr, error)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Proxy answers the requests of VMs for other hosts. It is safe for concurrent use.
type Proxy struct {
	cfg Config

	mu   sync.Mutex
	open map[string]int // by VM
}

// New returns a Proxy.
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
	return &Proxy{cfg: cfg, open: map[string]int{}}
}

// Asks reports whether a request is one for a proxy: a tunnel, or for an address of another host.
func Asks(r *http.Request) bool { return r.Method == http.MethodConnect || r.URL.IsAbs() }

// Serve answers one request of a VM by a policy, and tells record what became of it, once.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, vm string, policy Policy, record func(Request)) {
	begun := p.cfg.Now()
	done := Request{At: begun, Method: r.Method}
	defer func() {
		done.Took = p.cfg.Now().Sub(begun)
		record(done)
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

// errAnswered marks the failure of a request whose answer had begun.
var errAnswered = errors.New("broken off")

// RefusedError says why a host is not reached. Its text may be shown to the agent.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, vm string, policy Policy, done *Request) error {
	var err error
	if done.Host, done.Port, err = target(r); err != nil {
		return err
	}
	if err := policy.judge(done.Host, done.Port); err != nil {
		return err
	}
	release, err := p.enter(vm)
	if err != nil {
		return err
	}
	defer release()
	addresses, err := p.lookUp(r.Context(), done.Host)
	if err != nil {
		return err
	}
	done.Allowed = true
	dial := func(ctx context.Context) (net.Conn, error) { return p.dial(ctx, addresses, done.Port) }
	if r.Method == http.MethodConnect {
		return tunnel(w, r, done, dial)
	}
	return forward(w, r, done, dial)
}

// enter takes one of the VM's places.
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

// lookUp returns the addresses of a name. One that is not public, or is this host's, spoils them all: it is no
// name of a registry, or somebody plays with it.
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
		case !public(a):
			return nil, refuse("%s has the address %s, which is not a public one", host, a.Unmap())
		case own[a.Unmap()]:
			return nil, refuse("%s has the address %s, which is errand's own host", host, a.Unmap())
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("look up %s: it has no address", host)
	}
	return list, nil
}

// ownAddresses returns the addresses of this host's interfaces as they are now.
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

// dial connects to the first of the addresses that answers.
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

// meter counts what is written through it.
type meter struct {
	io.Writer
	n *atomic.Int64
}

func (m meter) Write(b []byte) (int, error) {
	n, err := m.Writer.Write(b)
	m.n.Add(int64(n))
	return n, err
}
