package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/manifest"
	"github.com/errand-bot/errand/internal/selfclient"
)

// askAddress asks for the addresses, and looks whether GitHub answers at its own, and whether errand can have the one on this host.
func (r *run) askAddress(ctx context.Context) error {
	keys := asksOf("address")
	for range maxTries {
		if err := r.askAll(ctx, keys...); err != nil {
			return err
		}
		q := questionOf("github")
		err := r.checkServer(ctx)
		_, given := r.given[q.Key]
		if err != nil && (given || !r.front.interactive() || q.fixed(r) || ctx.Err() != nil) {
			return fmt.Errorf("%s: %w", q.Key, err)
		}
		if err != nil {
			r.refuse(q, err)
			keys = []string{q.Key}
			continue
		}
		if err = r.checkPort(ctx); err == nil {
			return r.checkFoldersEarly()
		}
		keys, r.refused["listen"] = []string{"listen"}, err.Error()
		r.say("%v.\n", err)
	}
	return errors.New("no address was entered that can be used")
}

// checkPort returns an error, once per address, if the operator has to choose whether errand shall serve at an address that it cannot have now.
// Nobody is stopped: the other program may be an earlier errand, or about to end.
func (r *run) checkPort(ctx context.Context) error {
	listen := r.answer("listen")
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", listen)
	if err == nil {
		return ln.Close()
	}
	switch {
	case ctx.Err() != nil:
		return nil // the step ends
	case errors.Is(err, syscall.EADDRINUSE):
		if selfclient.Answers(ctx, config.Config{Listen: listen}, listen) {
			return nil
		}
		err = fmt.Errorf("another program uses %s now; keep it only if that program ends before errand starts", listen)
	case errors.Is(err, syscall.EACCES):
		return nil // systemd opens it
	default:
		err = fmt.Errorf("errand cannot serve at %s: %w", listen, err)
	}
	_, given := r.given["listen"]
	if r.warned == listen || given || !r.front.interactive() {
		r.say("%v.\n", err)
		return nil
	}
	r.warned = listen
	return err
}

// checkServer reads the version of an Enterprise Server. It returns an error if something else answers at its address; a server that does not
// answer now may do so later.
func (r *run) checkServer(ctx context.Context) error {
	github := r.answer("github")
	if r.version = ""; !manifest.IsEnterpriseServer(github) {
		return nil
	}
	version, err := manifest.ServerVersion(ctx, r.Transport, config.GitHub{URL: github}.WithURLs().APIURL)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, manifest.ErrNotGitHub):
		return fmt.Errorf("%w; write the address at which people open GitHub in a browser", err)
	case err != nil:
		r.say("Not checked: %v.\n", err)
		return nil
	}
	r.version = version
	r.say("A GitHub Enterprise Server %s answers at %s.\n", version, strings.TrimSuffix(github, "/"))
	return nil
}

// WithoutEvents says which events a new App does without because its GitHub does not know them, or returns "" if it has all of them.
func WithoutEvents(github, version string) string {
	unknown := strings.Join(manifest.UnknownEvents(github, version), " and ")
	const later = "errand notices such changes a little later"
	switch {
	case unknown == "":
		return ""
	case version == "":
		return fmt.Sprintf("The version of this GitHub Enterprise Server is not known, and older ones do not know the events %s: the App does without, and\n"+
			"%s. If your server knows them, add them in the App's settings.\n", unknown, later)
	}
	return fmt.Sprintf("GitHub Enterprise Server %s does not know %s: the App does without, and %s.\n", version, unknown, later)
}
