package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// tunnel relays bytes between a VM's client and a host after the client's TLS hello has named that host.
func tunnel(w http.ResponseWriter, r *http.Request, done *Request, dial func(context.Context) (net.Conn, error)) error {
	far, err := dial(r.Context())
	if err != nil {
		return fmt.Errorf("connect to %s: %w", done.Host, err)
	}
	defer far.Close()
	near, from, err := openTunnel(w)
	if err != nil {
		return err
	}
	defer near.Close()
	hello, err := readHello(near, from, done.Host)
	if err != nil {
		done.Allowed = false
		return fmt.Errorf("%w: %w", errAnswered, err)
	}
	done.Sent, done.Received = splice(near, from, far, hello)
	return nil
}

// openTunnel tells the client that its tunnel is open, and returns the connection. What the client sends is read from the buffer.
func openTunnel(w http.ResponseWriter) (net.Conn, *bufio.Reader, error) {
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("hijack the connection: %w", err)
	}
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = near.Close()
		return nil, nil, fmt.Errorf("%w: answer: %w", errAnswered, err)
	}
	return near, buffered.Reader, nil
}

// errHello aborts the handshake that only serves to parse the client's first message.
var errHello = errors.New("client hello parsed")

// readHello reads the client's first message and returns its bytes if it is a TLS hello for host.
func readHello(near net.Conn, from io.Reader, host string) ([]byte, error) {
	var seen bytes.Buffer
	name, heard := "", false
	_ = near.SetReadDeadline(time.Now().Add(helloTimeout))
	err := tls.Server(readOnlyConn{Conn: near, from: io.TeeReader(from, &seen)}, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name, heard = h.ServerName, true
			return nil, errHello
		},
	}).HandshakeContext(context.Background())
	_ = near.SetReadDeadline(time.Time{})
	switch {
	case !heard:
		return nil, refuse("the tunnel to %s does not begin with a TLS hello: %v", host, err)
	case !strings.EqualFold(strings.TrimSuffix(name, "."), host):
		return nil, refuse("the tunnel to %s is for the server %q", host, name)
	}
	return seen.Bytes(), nil
}

// readOnlyConn reads from a connection and discards writes.
type readOnlyConn struct {
	net.Conn
	from io.Reader
}

func (l readOnlyConn) Read(b []byte) (int, error)  { return l.from.Read(b) }
func (l readOnlyConn) Write(b []byte) (int, error) { return len(b), nil }

// splice copies in both directions until both are closed or idle, and returns the number of bytes.
func splice(near net.Conn, from *bufio.Reader, far net.Conn, first []byte) (sent, received int64) {
	var up, down atomic.Int64
	idle := time.AfterFunc(idleTimeout, func() { _, _ = near.Close(), far.Close() })
	defer idle.Stop()
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := (meter{far, &up}).Write(first); err == nil {
			_, _ = io.Copy(meter{idleExtender{far, idle}, &up}, from)
		}
		closeWrite(far)
	})
	group.Go(func() {
		_, _ = io.Copy(meter{idleExtender{near, idle}, &down}, far)
		closeWrite(near)
	})
	group.Wait()
	return up.Load(), down.Load()
}

// idleExtender extends the idle timeout of a connection with every read.
type idleExtender struct {
	io.Writer
	idle *time.Timer
}

func (l idleExtender) Write(b []byte) (int, error) {
	l.idle.Reset(idleTimeout)
	return l.Writer.Write(b)
}

// closeWrite closes the write side, or the connection if it has no separate sides.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

// forward passes a plain request and its response on.
func forward(w http.ResponseWriter, r *http.Request, done *Request, dial func(context.Context) (net.Conn, error)) error {
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true, ResponseHeaderTimeout: answerTimeout, DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	var received atomic.Int64
	var failed error
	(&httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.Out.Host = done.Host // instead of the client's Host header
			if done.Port != "80" {
				pr.Out.Host = net.JoinHostPort(done.Host, done.Port)
			}
			pr.Out.URL.Host = pr.Out.Host
			pr.Out.Header.Del("Proxy-Authorization")
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { failed = err },
	}).ServeHTTP(countingResponse{w, &received}, r)
	done.Received = received.Load()
	if failed != nil {
		return fmt.Errorf("forward to %s: %w", done.Host, failed)
	}
	return nil
}

// countingResponse counts the bytes of a response body.
type countingResponse struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c countingResponse) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// Unwrap lets http.ResponseController flush the response.
func (c countingResponse) Unwrap() http.ResponseWriter { return c.ResponseWriter }
