package setup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/manifest"
)

// createTimeout bounds the creation of the App in the browser.
const createTimeout = 2 * time.Hour

// createApp shows the form of an App on the local page until the App is created there.
func (r *run) createApp(ctx context.Context) (err error) {
	s, release, err := r.front.page(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	github := r.answer("github")
	if r.version == "" { // the step that asks for the address was left out
		if err := r.checkServer(ctx); err != nil {
			return err
		}
	}
	r.say("%s", WithoutEvents(github, r.version))
	m := manifest.New(manifest.Options{
		Name: r.answer("app_name"), GitHub: github, PublicURL: r.publicURL(), RedirectURL: s.createdURL(), Version: r.version,
	})
	form, err := newAppForm(manifest.NewAppPage(github, r.answer("organization")), m, r.Now, func(code string) (string, error) {
		if err := r.convert(ctx, code); err != nil {
			return "", err
		}
		return manifest.InstallPage(github, r.progress.App.Slug), nil
	})
	if err != nil {
		return err
	}
	defer form.close()
	s.showForm(form)
	if s.solo {
		r.say("%sIf the browser cannot open the page to which GitHub leads afterwards, stop this, run errand setup again within an hour, choose\n"+
			"`code`, and copy the code from the browser's address.\n\n", s.announcement("create the App"))
	}
	return r.waitForApp(ctx, s, form)
}

// waitForApp waits until the App is created, and says why an attempt failed.
func (r *run) waitForApp(ctx context.Context, s *site, form *appForm) error {
	timer := time.NewTimer(createTimeout)
	defer timer.Stop()
	for {
		select {
		case err := <-form.results:
			var refused manifest.RefusedError
			if errors.As(err, &refused) {
				r.say("%v. Open the page again.\n", err)
				s.showForm(form)
				continue
			}
			return err
		case <-s.down:
			return form.last(s.downErr)
		case <-timer.C:
			return form.last(fmt.Errorf("the App was not created within %s; %s", config.FormatDuration(createTimeout), r.front.again()))
		case <-ctx.Done():
			return form.last(ctx.Err())
		}
	}
}
