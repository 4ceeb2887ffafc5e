package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/manifest"
)

// createTimeout bounds the creation of the App in the browser.
const createTimeout = 2 * time.Hour

// closeTimeout is how long the local page may take to finish its last answer.
const closeTimeout = 2 * time.Second

// createApp serves the local page until the App is created there.
func (r *run) createApp(ctx context.Context) error {
	ln, err := r.listenLocally(ctx)
	if err != nil {
		return err
	}
	addr := ln.Addr().String()
	github := r.answer("github")
	p, err := newPage(pageConfig{
		Addr: addr, Action: manifest.NewAppPage(github, r.answer("organization")), Now: r.Now,
		Manifest: manifest.New(manifest.Options{
			Name: r.answer("app_name"), GitHub: github, PublicURL: r.publicURL(), RedirectURL: "http://" + addr + createdPath,
		}),
		Convert: func(code string) (string, error) {
			if err := r.convert(ctx, code); err != nil {
				return "", err
			}
			return manifest.InstallPage(github, r.progress.App.Slug), nil
		},
	})
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	srv := &http.Server{Handler: p, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	_, port, _ := net.SplitHostPort(addr) // an address of a listener
	r.say("Open this page in a browser, and create the App there:\n\n  %s\n\n"+
		"If the browser runs on another computer, first run this there, and keep it running:\n\n  ssh -N -L %s:%s USER@THIS-HOST\n\n"+
		"If the browser cannot open the page to which GitHub leads afterwards, stop this, run errand setup again within an hour, choose\n"+
		"`code`, and copy the code from the browser's address.\n\n", p.URL(), port, addr)
	err = r.waitForPage(ctx, p, served)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if cerr := srv.Shutdown(closing); cerr != nil {
		err = errors.Join(err, srv.Close())
	}
	return err
}

// waitForPage waits until the App is created, and prints why an attempt failed.
func (r *run) waitForPage(ctx context.Context, p *page, served <-chan error) error {
	timer := time.NewTimer(createTimeout)
	defer timer.Stop()
	for {
		select {
		case err := <-p.results:
			var refused manifest.RefusedError
			if errors.As(err, &refused) {
				r.say("%v. Open the page again.\n", err)
				continue
			}
			return err
		case err := <-served:
			return fmt.Errorf("serve the local page: %w", err)
		case <-timer.C:
			return fmt.Errorf("the App was not created within %s; run errand setup again", config.FormatDuration(createTimeout))
		case <-ctx.Done():
			p.close() // a conversion under way is finished first, because GitHub answers it only once
			select {
			case err := <-p.results:
				if !errors.As(err, new(manifest.RefusedError)) {
					return err
				}
			default:
			}
			return ctx.Err()
		}
	}
}

// listenLocally listens on this host only: nothing but its own address protects the page on the way.
func (r *run) listenLocally(ctx context.Context) (net.Listener, error) {
	addr, err := netip.ParseAddrPort(r.opts.Listen)
	if err != nil || !addr.Addr().IsLoopback() {
		return nil, fmt.Errorf("--listen %q: write an address of this host only, such as 127.0.0.1:8099", r.opts.Listen)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr.String())
	if err != nil {
		return nil, fmt.Errorf("serve the local page: %w; choose another port with --listen", err)
	}
	return ln, nil
}
