package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// A Registry is a server of packages. The proxy adds a credential to requests for it, which no VM sees.
type Registry struct {
	// Name is the name in the configuration, for messages.
	Name string
	// URL is an https address without a slash at its end. Requests for the paths below it are forwarded.
	URL *url.URL
	// Header and Value are the header that carries the credential, such as "Authorization" and "Bearer TOKEN".
	Header, Value string
}

// host returns the name and port of the registry's host.
func (r Registry) host() (name, port string) {
	if port = r.URL.Port(); port == "" {
		port = "443"
	}
	return r.URL.Hostname(), port
}

// contains reports whether an address is the registry's or below it, also as it is written: a slash that is encoded does not separate parts.
func (r Registry) contains(u *url.URL) bool {
	below := func(base, p string) bool { return p == base || strings.HasPrefix(p, base+"/") }
	return below(r.URL.Path, u.Path) && below(r.URL.EscapedPath(), u.EscapedPath())
}

// registriesAt returns the registries on a host.
func (p Policy) registriesAt(host, port string) (list []Registry) {
	for _, r := range p.Registries {
		if name, at := r.host(); name == host && at == port {
			list = append(list, r)
		}
	}
	return list
}

// choose returns the registry with the longest path that contains an address, nil if there is none.
func choose(list []Registry, u *url.URL) *Registry {
	var best *Registry
	for i := range list {
		if list[i].contains(u) && (best == nil || len(list[i].URL.Path) > len(best.URL.Path)) {
			best = &list[i]
		}
	}
	return best
}

// The limits on requests for registries.
const (
	maxRegistryHeader     = 64 << 10
	registryHeaderTimeout = 30 * time.Second
)

// NewUpstream returns the transport by which registries are reached. They may have private addresses, because the operator names them. It does
// not use HTTP/2, which buffers the answers that VMs do not read.
func NewUpstream() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   helloTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true,
	}
}

// serveRegistries ends the TLS connection of a tunnel to a host with registries, and answers the requests in it. Each of them is recorded, and
// the tunnel only if it fails.
func (p *Proxy) serveRegistries(w http.ResponseWriter, r *http.Request, done *outcome, here []Registry) error {
	if r.Method != http.MethodConnect {
		return refuse("%s is a registry; use https", done.Host)
	}
	if p.cfg.Authority == nil {
		return errors.New("the registries' certificates are missing")
	}
	near, from, err := openTunnel(w)
	if err != nil {
		return err
	}
	defer near.Close()
	idle := time.AfterFunc(p.cfg.tunnelIdle, func() { _ = near.Close() })
	defer idle.Stop()
	conn := tls.Server(tunnelConn{Conn: near, from: from, idle: idle, limit: p.cfg.tunnelIdle}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if name := strings.TrimSuffix(hello.ServerName, "."); !strings.EqualFold(name, done.Host) {
				return nil, refuse("the tunnel to %s is for the server %q", done.Host, name)
			}
			return p.cfg.Authority.leaf(done.Host)
		},
	})
	ctx, cancel := context.WithTimeout(context.Background(), helloTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("%w: the client refused errand's certificate, or spoke no TLS: %w", errAnswered, err)
	}
	l := newOneConn(conn)
	srv := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p.forwardToRegistry(w, r, *done, here)
		}),
		ReadHeaderTimeout: registryHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxRegistryHeader,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     log.New(io.Discard, "", 0), // errors of clients are in the record of requests
		ConnState:                    l.state,
	}
	if err := srv.Serve(l); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%w: %w", errAnswered, err)
	}
	done.recorded = true
	return nil
}

// forwardToRegistry forwards one request to the registry that its path belongs to, and records it.
func (p *Proxy) forwardToRegistry(w http.ResponseWriter, r *http.Request, done outcome, here []Registry) {
	done.At, done.Method, done.Path, done.Allowed = p.cfg.Now(), r.Method, r.URL.Path, false
	var received atomic.Int64
	defer func() {
		done.Took, done.Received = p.cfg.Now().Sub(done.At), received.Load()
		done.record(done.Request)
	}()
	registry, err := admit(r, done.Host, here)
	if err != nil {
		done.Reason = err.Error()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // its body is not waited for
		w.Header().Set("Connection", "close")
		http.Error(w, "errand: "+done.Reason, http.StatusForbidden)
		return
	}
	done.Allowed = true
	answer, err := p.cfg.Upstream.RoundTrip(registry.request(r))
	if err != nil {
		done.Reason = fmt.Sprintf("the registry %s cannot be reached: %v", registry.Name, err)
		http.Error(w, "errand: the registry "+registry.Name+" cannot be reached", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusUnauthorized {
		done.Reason = fmt.Sprintf("the registry %s refuses the credential that the operator configured (401)", registry.Name)
	}
	secrets := registry.secrets()
	copyHeader(w.Header(), answer.Header, secrets)
	w.WriteHeader(answer.StatusCode)
	if err := copyWithout(countingResponse{w, &received}, answer.Body, secrets); err != nil {
		done.Reason = fmt.Sprintf("the answer of the registry %s was broken off: %v", registry.Name, err)
		panic(http.ErrAbortHandler) // the VM must not take the answer for a complete one
	}
}

// admit returns the registry for a request, or why it is refused.
func admit(r *http.Request, host string, here []Registry) (*Registry, error) {
	if name, _, _ := strings.Cut(r.Host, ":"); !strings.EqualFold(strings.TrimSuffix(name, "."), host) {
		return nil, refuse("the request in the tunnel to %s is for the server %q", host, cut(r.Host))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.ContentLength != 0 {
		return nil, refuse("%s only answers GET and HEAD without a body here; nothing can be published", host)
	}
	if err := checkPath(r.URL); err != nil {
		return nil, err
	}
	if registry := choose(here, r.URL); registry != nil {
		return registry, nil
	}
	return nil, refuse("%s%s is outside of the registries that the operator configured", host, cut(r.URL.Path))
}

// checkPath refuses paths that a server may take for another one than the proxy does.
func checkPath(u *url.URL) error {
	p := u.Path
	if u.Opaque != "" || !strings.HasPrefix(p, "/") || u.IsAbs() {
		return refuse("the request must name a path")
	}
	if !utf8.ValidString(p) || strings.ContainsFunc(p, func(c rune) bool { return c < ' ' || c == 0x7f || c == '%' || c == '\\' }) {
		return refuse("the path must not contain control characters, %% or a backslash")
	}
	parts := strings.Split(strings.TrimSuffix(p[1:], "/"), "/")
	for i, part := range parts {
		name := part
		if at := strings.IndexAny(part, ";#?"); at >= 0 { // some servers ignore what follows
			name = part[:at]
		}
		name = strings.TrimSpace(name)
		if name == "" && (i > 0 || len(parts) > 1) || name != "" && strings.Trim(name, ".") == "" {
			return refuse("the path must not contain empty parts, . or ..")
		}
	}
	return nil
}

// request returns the request for the registry: a VM's path and query, the few headers that downloads need, and the registry's credential.
func (r Registry) request(from *http.Request) *http.Request {
	out := (&http.Request{
		Method: from.Method, Host: r.URL.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		URL: &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: from.URL.Path, RawPath: from.URL.RawPath, RawQuery: from.URL.RawQuery},
	}).WithContext(from.Context())
	for _, name := range []string{"Accept", "Accept-Language", "If-Modified-Since", "If-None-Match", "If-Range", "Range", "User-Agent"} {
		if values := from.Header.Values(name); values != nil {
			out.Header[name] = values
		}
	}
	out.Header.Set(r.Header, r.Value)
	return out
}

// copyHeader copies the header of an answer, except what belongs to the connection, and what a VM must not get.
func copyHeader(to, from http.Header, secrets [][]byte) {
	left := []string{
		"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Set-Cookie", "Www-Authenticate", // the VM has no credential that could help
	}
	for name, values := range from {
		holds := slices.ContainsFunc(values, func(v string) bool { return holdsSecret([]byte(v), secrets) })
		if !slices.Contains(left, name) && !holds {
			to[name] = values
		}
	}
}

// tunnelConn is the connection of a tunnel, of which some bytes were read before. Each byte in either direction extends its time.
type tunnelConn struct {
	net.Conn
	from  io.Reader
	idle  *time.Timer
	limit time.Duration
}

func (c tunnelConn) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	if n > 0 {
		c.idle.Reset(c.limit)
	}
	return n, err
}

func (c tunnelConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if n > 0 {
		c.idle.Reset(c.limit)
	}
	return n, err
}

// oneConn is a listener that accepts one connection, and ends when that connection does.
type oneConn struct {
	conn  net.Conn
	once  sync.Once     // accepts it
	ended chan struct{} // is closed when it has ended
	end   sync.Once
}

func newOneConn(c net.Conn) *oneConn {
	return &oneConn{conn: c, ended: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	first := false
	l.once.Do(func() { first = true })
	if first {
		return l.conn, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *oneConn) Close() error { return nil }

// Addr implements net.Listener.
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// state is called by http.Server when the state of the connection changes.
func (l *oneConn) state(_ net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		l.end.Do(func() { close(l.ended) })
	}
}
