package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
)

// App is an App that GitHub created, with its credentials. GitHub reveals the private key only once.
type App struct {
	ID            int64
	Slug          string
	Owner         string
	SettingsURL   string
	PEM           string
	WebhookSecret string
	ClientID      string
	ClientSecret  string
}

// RefusedError means that GitHub does not know the code.
type RefusedError struct{ status int }

func (e RefusedError) Error() string {
	return fmt.Sprintf("GitHub does not accept the code of the new App (status %d): codes are valid for an hour, and once", e.status)
}

// UnknownOutcomeError means that GitHub may have given out the credentials although they did not arrive here.
type UnknownOutcomeError struct{ err error }

func (e UnknownOutcomeError) Error() string {
	return fmt.Sprintf("GitHub's answer with the App's credentials did not arrive: %v", e.err)
}

func (e UnknownOutcomeError) Unwrap() error { return e.err }

const (
	convertTimeout = 30 * time.Second
	maxAnswer      = 1 << 20 // bytes
)

var codeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)

// Convert exchanges the code of a created App for its credentials. API is the address of the REST API, web that of the pages. The
// request needs no authentication. GitHub answers it only once per code, so it is not repeated.
func Convert(ctx context.Context, transport http.RoundTripper, api, web, code string) (App, error) {
	if !codeForm.MatchString(code) {
		return App{}, errors.New("the code of the new App has at most 200 letters, digits, hyphens and underscores: copy it from the " +
			"address to which GitHub sent the browser, between code= and &")
	}
	base, err := url.Parse(strings.TrimSuffix(api, "/") + "/")
	if err != nil {
		return App{}, fmt.Errorf("read the address of GitHub's API: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, convertTimeout)
	defer cancel()
	client := github.NewClient(&http.Client{
		Transport:     bounded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	client.BaseURL, client.UserAgent = base, "errand"
	got, resp, err := client.Apps.CompleteAppManifest(ctx, code)
	switch {
	case err != nil && resp == nil:
		var request *url.Error
		if errors.As(err, &request) {
			err = request.Err // without the address, which contains the code
		}
		return App{}, UnknownOutcomeError{err}
	case err != nil && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusUnprocessableEntity):
		return App{}, RefusedError{resp.StatusCode}
	case err != nil && resp.StatusCode/100 == 2, err != nil && resp.StatusCode >= http.StatusInternalServerError:
		return App{}, UnknownOutcomeError{fmt.Errorf("status %d", resp.StatusCode)} // the error can quote the body, which may hold secrets
	case err != nil:
		return App{}, fmt.Errorf("exchange the code of the new App: GitHub answered with status %d", resp.StatusCode)
	}
	a := App{
		ID: got.GetID(), Slug: got.GetSlug(), Owner: got.GetOwner().GetLogin(), PEM: got.GetPEM(), WebhookSecret: got.GetWebhookSecret(),
		ClientID: got.GetClientID(), ClientSecret: got.GetClientSecret(),
	}
	if a.ID <= 0 || a.Slug == "" || a.PEM == "" || a.WebhookSecret == "" {
		return App{}, UnknownOutcomeError{errors.New("the answer lacks the App's ID, its key or its webhook secret")}
	}
	a.SettingsURL = SettingsPage(web, a.Slug, organization(got))
	return a, nil
}

// organization returns the login of the organization that owns an App, or "" if a person owns it.
func organization(app *github.AppConfig) string {
	if owner := app.GetOwner(); owner.GetType() == "Organization" {
		return owner.GetLogin()
	}
	return ""
}

// SettingsPage returns the page with the settings of an App, which only its owner can open.
func SettingsPage(web, slug, organization string) string {
	path := "/settings/apps/" + url.PathEscape(slug)
	if organization != "" {
		path = "/organizations/" + url.PathEscape(organization) + path
	}
	return strings.TrimSuffix(web, "/") + path
}

// bounded limits the size of answers.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}
