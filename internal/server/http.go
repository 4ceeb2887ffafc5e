package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/state"
)

// listen opens the listeners, so that a port that is taken is an error of New.
func (s *Server) listen(ctx context.Context) (err error) {
	s.listener = s.opts.Listener
	if s.listener == nil {
		var lc net.ListenConfig
		if s.listener, err = lc.Listen(ctx, "tcp", s.cfg.Listen); err != nil {
			return fmt.Errorf("listen: %w; choose another address with `listen`", err)
		}
	}
	if a := s.cfg.Admin.Listen; a != "" {
		var lc net.ListenConfig
		if s.adminLn, err = lc.Listen(ctx, "tcp", a); err != nil {
			return fmt.Errorf("admin.listen: %w", err)
		}
	}
	return nil
}

// routes is what is served on the public address: the webhook, health, and the pages unless they
// have an address of their own.
func (s *Server) routes(pages http.Handler) (http.Handler, error) {
	// Deliveries are stored from the first moment on, also before GitHub has said who we are.
	inbox := handlers.NewInbox(s.store, s.store, nil, s.opts.Log, s.opts.Now)
	inbox.Received = s.received
	hook, err := handlers.Front(s.cfg.GitHub.WebhookSecret.Reveal(), inbox)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/api/github/hook", hook)
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", s.readyz)
	if s.adminLn == nil {
		mux.Handle("/", pages)
	}
	return mux, nil
}

// readyz answers 200 once webhooks are worked on, and while they can be stored.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		http.Error(w, "not yet: GitHub has not said who we are", http.StatusServiceUnavailable)
		return
	}
	if s.stuck.Load() {
		http.Error(w, "the store cannot be written; the log says why", http.StatusServiceUnavailable)
		return
	}
	health(w, r)
}

// pages are the status pages and metrics. Live logs end with ctx, so that the server can end at once.
func (s *Server) pages(ctx context.Context) (*admin.Pages, error) {
	return admin.New(admin.Config{
		Store: s.store, Transcripts: s.archive, Diffs: s.archive, Token: s.cfg.Admin.Token.Reveal(), Open: s.adminLn != nil, Secure: strings.HasPrefix(strings.ToLower(s.cfg.PublicURL), "https:"), Facts: s.store, Stopping: ctx.Done(), Log: s.opts.Log, Metrics: s.metrics, Version: s.opts.Version, Now: s.opts.Now,
		Spent: s.spent, Missing: s.missing, Providers: s.store.Upstreams,
		VMs: s.store.VMs, VMCaps: s.vmCaps(), Alarms: s.alarms,
		Reached:  func(task state.TaskKey, n int) ([]egress.Request, int, error) { return s.reached.Last(owner(task), n) },
		Describe: s.source,
	})
}

// serve runs one HTTP server until ctx ends, then lets requests end for a while.
func (s *Server) serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	open := newConns(maxConns)
	srv := &http.Server{
		Handler: proxies(s.cfg.Proxies()).wrap(h),
		ConnState: func(nc net.Conn, s http.ConnState) {
			nextHead(nc, s)
			open.changed(nc, s)
		},
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
	}
	errs := make(chan error, 1)
	go func() { errs <- srv.Serve(fewHeaders{ln}) }()
	select {
	case err := <-errs:
		return fmt.Errorf("serve on %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timing.Shutdown)
	defer cancel()
	err := srv.Shutdown(end)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	return err
}
