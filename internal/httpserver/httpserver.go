// Package httpserver serves HTTP to the internet: it bounds the time of a request, the number of connections and
// headers, and finds out a client's address behind reverse proxies.
//
// Start with Serve.
package httpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// A Server serves one handler on one listener.
type Server struct {
	Listener net.Listener
	Handler  http.Handler
	// Proxies are the addresses of reverse proxies whose X-Forwarded-For header is trusted.
	Proxies []netip.Prefix
	// Shutdown is how long requests in flight may take after the end of Serve's context.
	Shutdown time.Duration
}

// Serve serves until ctx ends, waits for requests in flight, and closes the listener.
func (s Server) Serve(ctx context.Context) error {
	open := newConns(maxConns)
	srv := &http.Server{
		Handler: proxies(s.Proxies).wrap(closing(ctx, s.Handler)),
		ConnState: func(nc net.Conn, s http.ConnState) {
			nextHead(nc, s)
			open.changed(nc, s)
		},
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	errs := make(chan error, 1)
	go func() { errs <- srv.Serve(fewHeaders{s.Listener}) }()
	select {
	case err := <-errs:
		return fmt.Errorf("serve on %s: %w", s.Listener.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Shutdown)
	defer cancel()
	// Not by srv.Shutdown: it closes connections whose first request it has just read, and so loses a webhook.
	err := s.Listener.Close()
	<-errs // all connections that were accepted are in open
	open.wait(end)
	open.abortAll()
	return errors.Join(err, srv.Close())
}

// closing closes the connections of requests that are answered after the end of ctx.
func closing(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
