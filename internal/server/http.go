package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/oauth"
	"github.com/errand-bot/errand/internal/httpserver"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/selfclient"
	"github.com/errand-bot/errand/state"
)

// listen opens the listeners, so that a port in use is an error of New.
func (s *Server) listen(ctx context.Context) (err error) {
	s.listener = s.opts.Listener
	if s.listener == nil {
		var lc net.ListenConfig
		if s.listener, err = lc.Listen(ctx, "tcp", s.cfg.Listen); err != nil {
			return fmt.Errorf("listen: %w; choose another address with `listen`", err)
		}
	}
	if host := s.cfg.TLSHost(); host != "" {
		s.certs = s.newCertificates(host)
		s.listener = s.certs.wrap(s.listener)
	}
	if a := s.cfg.Admin.Listen; a != "" {
		var lc net.ListenConfig
		if s.adminLn, err = lc.Listen(ctx, "tcp", a); err != nil {
			return fmt.Errorf("admin.listen: %w", err)
		}
	}
	return nil
}

// routes returns the handler of the public address: the webhook, health, and the pages unless they have a separate
// address.
func (s *Server) routes(pages http.Handler) (http.Handler, error) {
	// Deliveries are stored at once, also before the App is identified.
	inbox := handlers.NewInbox(s.store, s.store, nil, s.opts.Log, s.opts.Now)
	inbox.Received = s.handleDelivery
	mux := http.NewServeMux()
	if s.cfg.GitHub.Webhooks != config.WebhooksPoll {
		hook, err := handlers.Front(s.cfg.GitHub.WebhookSecret.Lines(), inbox)
		if err != nil {
			return nil, err
		}
		mux.Handle(handlers.HookPath, hook)
	}
	mux.HandleFunc("GET "+provenance.KeysPath, s.publicKeys)
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", s.readyz)
	if s.adminLn == nil {
		mux.Handle("/", pages)
	}
	return mux, nil
}

// readyz answers 200 once webhooks are processed, and while the store can be written.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if !s.ready.Load() {
		http.Error(w, "not ready: errand has not read its App from GitHub yet", http.StatusServiceUnavailable)
		return
	}
	if s.stuck.Load() {
		http.Error(w, "the store cannot be written; the log says why", http.StatusServiceUnavailable)
		return
	}
	health(w, r)
}

// signIn returns how people sign in with GitHub, or nil if they cannot.
func (s *Server) signIn() (*login.GitHub, error) {
	if !s.cfg.Admin.SignIn {
		return nil, nil
	}
	g := s.cfg.GitHub.WithURLs()
	c, err := oauth.New(oauth.Config{
		ClientID: func(ctx context.Context) (string, error) {
			app, err := s.forge.Self(ctx)
			return app.ClientID, err
		},
		ClientSecret: g.ClientSecret.Reveal(),
		WebURL:       g.URL,
		APIURL:       g.APIURL,
		RedirectURL:  oauth.CallbackURL(s.cfg.PublicURL),
		UserAgent:    "errand/" + s.opts.Version,
		Transport:    s.opts.Transport,
		Now:          s.opts.Now,
	})
	if err != nil {
		return nil, err
	}
	return &login.GitHub{
		PublicURL: s.cfg.PublicURL, Operators: s.cfg.Admin.Accounts(), Teams: s.cfg.Admin.Teams(), AuthorizeURL: c.AuthorizeURL,
		IsMember: func(ctx context.Context, t config.Team, who state.Person) (bool, int64, error) {
			return s.forge.IsTeamMember(ctx, t.Organization, t.Slug, who)
		},
		Reason: func(err error) string {
			reason, _ := forge.Explain(err)
			return reason
		},
		SignIn: func(ctx context.Context, code, verifier string) (login.Account, error) {
			a, err := c.SignIn(ctx, code, verifier)
			if errors.Is(err, oauth.ErrRefused) {
				err = fmt.Errorf("%w: %w", login.ErrRefused, err)
			}
			return a, err
		}, // nothing uses the account if there is an error
	}, nil
}

// pages returns the status pages and metrics. Live logs end with ctx, so that the server can shut down at once.
func (s *Server) pages(ctx context.Context) (*admin.Pages, error) {
	people, err := s.signIn()
	if err != nil {
		return nil, err
	}
	return admin.New(admin.Config{
		Store:       s.store,
		Facts:       s.store,
		Transcripts: s.archive,
		Diffs:       s.archive,
		Token:       s.cfg.Admin.Token.Reveal(),
		GitHub:      people,
		Open:        s.adminLn != nil,
		Secure:      strings.HasPrefix(strings.ToLower(s.cfg.PublicURL), "https:"),
		Stopping:    ctx.Done(),
		Log:         s.opts.Log,
		Metrics:     s.metrics,
		Version:     s.opts.Version,
		Now:         s.opts.Now,
		Spent:       s.budget.Spent,
		Missing:     s.missingPermissions,
		Unstarted:   s.unstarted,
		Adopt:       s.adopt,
		Preview:     s.previewRun,
		Begin:       s.beginRun,
		Act:         s.act,
		Audit:       s.store.Audit,
		Pauses:      s.pauses(),
		Backup:      s.backup,
		Purge:       s.purge,
		Destroy:     s.destroy,
		Doctor:      func(ctx context.Context) any { return s.Doctor(ctx) },
		Providers:   s.store.ProviderStates.All,
		VMs:         s.store.VMs,
		VMCaps:      s.cfg.VMCaps(),
		Alarms:      s.alarms,
		Reached: func(task state.TaskKey, n int) ([]egress.Request, int, error) {
			return s.reached.Last(egressLog(task), n)
		},
		Describe: s.source,
	})
}

// serve serves a handler on a listener until ctx ends.
func (s *Server) serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	return httpserver.Server{
		Listener: ln,
		Handler:  named(h),
		Proxies:  s.cfg.Proxies(),
		Shutdown: s.cfg.Timing.Shutdown,
	}.Serve(ctx)
}

// named puts errand's name into the header of every answer, by which errand's commands tell it from other programs.
func named(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", selfclient.ServerName)
		h.ServeHTTP(w, r)
	})
}

// health answers that the process serves.
func health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}
