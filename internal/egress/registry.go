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
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Registry is a server of packages. The proxy adds a credential to requests for it, which no VM sees.
type Registry struct {
	// Name is the name in the configuration, for messages.
	Name string
	// URL is an https address. Requests for the paths below it are forwarded.
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

// contains reports whether a path, which is clean, is the registry's or below it.
func (r Registry) contains(p string) bool {
	base := strings.TrimSuffix(r.URL.Path, "/")
	return p == base || strings.HasPrefix(p, base+"/")
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

// choose returns the registry with the longest path that contains a path, nil if there is none.
func choose(list []Registry, p string) *Registry {
	var best *Registry
	for i := range list {
		if list[i].contains(p) && (best == nil || len(list[i].URL.Path) > len(best.URL.Path)) {
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

// NewUpstream returns the transport by which registries are reached. They may have private addresses, because the operator names them.
func NewUpstream() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   helloTimeout,
		ResponseHeaderTimeout: answerTimeout,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
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
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("hijack the connection: %w", err)
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return fmt.Errorf("%w: answer: %w", errAnswered, err)
	}
	conn := tls.Server(bufferedConn{near, buffered.Reader}, &tls.Config{
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
			done.record(p.forwardToRegistry(w, r, done.Request, here, func() { _ = near.Close() }))
		}),
		ReadHeaderTimeout: registryHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxRegistryHeader,
		ErrorLog:  log.New(io.Discard, "", 0), // what clients do wrong is recorded or their own affair
		ConnState: l.state,
	}
	if err := srv.Serve(l); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("%w: %w", errAnswered, err)
	}
	done.recorded = true
	return nil
}

// forwardToRegistry forwards one request to the registry that its path belongs to, and returns its record.
func (p *Proxy) forwardToRegistry(w http.ResponseWriter, r *http.Request, done Request, here []Registry, hangUp func()) Request {
	done.At, done.Method, done.Path, done.Allowed = p.cfg.Now(), r.Method, r.URL.Path, false
	defer func() { done.Took = p.cfg.Now().Sub(done.At) }()
	registry, err := admit(r, done.Host, here)
	if err != nil {
		done.Reason = err.Error()
		http.Error(w, "errand: "+done.Reason, http.StatusForbidden)
		return done
	}
	done.Allowed = true
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	idle := time.AfterFunc(answerTimeout+idleTimeout, func() { cancel(); hangUp() })
	defer idle.Stop()
	var received atomic.Int64
	(&httputil.ReverseProxy{
		Transport: p.cfg.Upstream, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) { registry.sign(pr) },
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Del("Set-Cookie")
			if answer.StatusCode == http.StatusUnauthorized {
				answer.Header.Del("WWW-Authenticate") // the client has no credential that could help
				done.Reason = fmt.Sprintf("the registry %s refuses the credential that the operator configured (401)", registry.Name)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			done.Reason = fmt.Sprintf("the registry %s cannot be reached: %v", registry.Name, err)
			http.Error(w, "errand: the registry "+registry.Name+" cannot be reached", http.StatusBadGateway)
		},
	}).ServeHTTP(countingResponse{idleWriter{w, idle}, &received}, r.WithContext(ctx))
	done.Received = received.Load()
	return done
}

// admit returns the registry for a request, or why it is refused.
func admit(r *http.Request, host string, here []Registry) (*Registry, error) {
	if name, _, _ := strings.Cut(r.Host, ":"); !strings.EqualFold(name, host) {
		return nil, refuse("the request in the tunnel to %s is for the server %q", host, cut(r.Host))
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, refuse("%s only answers GET and HEAD here; nothing can be published", host)
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(r.URL.Path, `\`, "/"), "/") {
		if strings.Trim(part, ".") == "" && len(part) > 1 || strings.HasPrefix(part, "..;") { // some servers ignore what follows a semicolon
			return nil, refuse("paths must not contain ..")
		}
	}
	clean := path.Clean("/" + r.URL.Path)
	if registry := choose(here, clean); registry != nil {
		return registry, nil
	}
	return nil, refuse("%s%s is outside of the registries that the operator configured", host, cut(clean))
}

// sign replaces the credentials of a request by the registry's, and removes everything else that a VM could use for more than reading.
func (r Registry) sign(pr *httputil.ProxyRequest) {
	out := pr.Out
	out.URL.Scheme, out.URL.Host, out.Host = r.URL.Scheme, r.URL.Host, r.URL.Host
	out.Body, out.ContentLength = http.NoBody, 0
	kept := http.Header{}
	for _, name := range []string{"Accept", "Accept-Encoding", "Accept-Language", "If-Modified-Since", "If-None-Match", "If-Range", "Range", "User-Agent"} {
		if values := out.Header.Values(name); values != nil {
			kept[name] = values
		}
	}
	kept.Set(r.Header, r.Value)
	out.Header = kept
}

// idleWriter extends the time of a response with every write.
type idleWriter struct {
	http.ResponseWriter
	idle *time.Timer
}

func (w idleWriter) Write(b []byte) (int, error) {
	w.idle.Reset(idleTimeout)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController flush the response.
func (w idleWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bufferedConn is a connection of which some bytes were read before.
type bufferedConn struct {
	net.Conn
	from io.Reader
}

func (c bufferedConn) Read(b []byte) (int, error) { return c.from.Read(b) }

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
