package setup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/manifest"
)

// hasApp reports whether the App's credentials are stored in their files.
func (r *run) hasApp() bool {
	app := r.progress.App
	if app == nil || app.PEM != "" || app.WebhookSecret != "" ||
		r.given["app_id"] != "" && r.given["app_id"] != strconv.FormatInt(app.ID, 10) {
		return false
	}
	for _, name := range []string{"app.pem", "webhook-secret"} {
		if _, err := os.Stat(r.path(name)); err != nil {
			return false
		}
	}
	return true
}

// checkApp accepts a new App only if the folder has no secrets of another one.
func checkApp(r *run, how string) error {
	interrupted := r.progress.App != nil && r.progress.App.PEM != ""
	if how == "existing" || r.loaded || r.hasApp() || interrupted {
		return nil
	}
	for _, name := range []string{"app.pem", "webhook-secret", "client-secret"} {
		if _, err := os.Stat(r.path(name)); err == nil {
			return fmt.Errorf("%s exists, so a new App was not created. Move it away, or use its App with `app: existing`", r.path(name))
		}
	}
	return nil
}

// makeApp gets the App and its credentials, and stores them. The address of the webhook may be another one than when an App was created.
func (r *run) makeApp(ctx context.Context) error {
	if r.hasApp() {
		r.say("The App with ID %d exists.\n", r.progress.App.ID)
		if address := r.publicURL(); address != "" {
			r.say("The address of the webhook in its settings has to be %s. %s\n", manifest.HookURL(address), r.progress.App.SettingsURL)
		}
		return nil
	}
	if r.progress.App != nil && r.progress.App.PEM != "" {
		return r.storeApp() // an earlier setup was interrupted after the App was created
	}
	if err := r.askAll(ctx, asksOf("app")...); err != nil {
		return err
	}
	how := r.answer("app")
	if how == "existing" {
		return r.useExisting(ctx)
	}
	err := checkApp(r, how) // nobody may have been asked
	if err != nil {
		return err
	}
	if err := r.reserve(); err != nil {
		return err
	}
	if how == "code" {
		err = r.convert(ctx, r.answer("app_code"))
		delete(r.held, "app_code") // GitHub answers it once
	} else {
		err = r.createApp(ctx)
	}
	if err != nil {
		return errors.Join(err, r.release())
	}
	return r.storeApp()
}

// credentialsError says where the credentials of a new App are. The operator has to see it, even after leaving the step.
type credentialsError struct{ error }

func (e credentialsError) Unwrap() error { return e.error }

// convert exchanges the code of a created App for its credentials and saves them. An interruption does not stop it: GitHub answers
// only once.
func (r *run) convert(ctx context.Context, code string) error {
	github := config.GitHub{URL: r.answer("github")}.WithURLs()
	app, err := manifest.Convert(context.WithoutCancel(ctx), r.Transport, github.APIURL, github.URL, code)
	if errors.As(err, new(manifest.RefusedError)) {
		return err
	}
	if err != nil {
		settings := strings.TrimSuffix(manifest.SettingsPage(github.URL, "", r.answer("organization")), "/")
		return credentialsError{fmt.Errorf("%w\n%w", err, r.lostApp(settings))}
	}
	err = r.saveApp(SavedApp{
		ID: app.ID, Slug: app.Slug, SettingsURL: app.SettingsURL, PEM: app.PEM, WebhookSecret: app.WebhookSecret,
		ClientID: app.ClientID, ClientSecret: app.ClientSecret,
	})
	if err != nil {
		return credentialsError{err}
	}
	return nil
}

// storeApp moves the App's credentials from the progress file to files of their own.
func (r *run) storeApp() error {
	app := r.progress.App
	for _, f := range []struct{ name, value string }{
		{"app.pem", app.PEM}, {"webhook-secret", app.WebhookSecret}, {"client-secret", app.ClientSecret},
	} {
		if f.value == "" {
			continue
		}
		if err := r.storeSecret(f.name, f.value); err != nil {
			return credentialsError{fmt.Errorf("%w\nNothing is lost: the App's credentials are in %s. Correct the problem and %s",
				err, r.path(progressFile), r.front.again())}
		}
	}
	app.PEM, app.WebhookSecret, app.ClientSecret = "", "", ""
	r.say("The App @%s (ID %d) exists, and its credentials are stored. Its settings: %s\n", app.Slug, app.ID, app.SettingsURL)
	if err := r.saveProgress(); err != nil {
		return err
	}
	return r.removeRescued()
}

// existingTimeout bounds the check of an existing App.
const existingTimeout = time.Minute

// useExisting checks the credentials of an existing App and stores them.
func (r *run) useExisting(ctx context.Context) error {
	secrets := map[string]string{}
	for _, key := range []string{"private_key", "webhook_secret"} {
		value, err := r.secret(questionOf(key))
		if err != nil {
			return err
		}
		secrets[key] = value
	}
	id, err := strconv.ParseInt(r.answer("app_id"), 10, 64)
	if err != nil {
		return fmt.Errorf("read app_id: %w", err)
	}
	f, err := r.forge(config.GitHub{URL: r.answer("github"), AppID: id}, []byte(secrets["private_key"]))
	if err != nil {
		return fmt.Errorf("private_key: %w", err)
	}
	checking, cancel := context.WithTimeout(ctx, existingTimeout)
	defer cancel()
	app, err := f.ReadApp(checking)
	if err == nil && app.ID != id {
		err = fmt.Errorf("GitHub answered with App ID %d instead of %d", app.ID, id)
	}
	if err != nil {
		return fmt.Errorf("%w: compare app_id and private_key with the App's settings page on GitHub", err)
	}
	for key, value := range secrets {
		if err := r.storeAnswer(questionOf(key), value); err != nil {
			return err
		}
	}
	r.progress.App = &SavedApp{ID: app.ID, Slug: app.Slug, SettingsURL: app.SettingsURL}
	r.say("GitHub accepts the credentials of @%s. Its webhook has to be %s.\n", app.Slug, manifest.HookURL(r.publicURL()))
	return nil
}

// forge returns a client of GitHub with the credentials of an App.
func (r *run) forge(g config.GitHub, pem []byte) (*forge.Forge, error) {
	g = g.WithURLs()
	return forge.New(forge.Config{
		AppID: g.AppID, PrivateKey: pem, WebURL: g.URL, V3APIURL: g.APIURL, V4APIURL: g.GraphQLURL, Now: r.Now, Transport: r.Transport,
	})
}
