// Package oauth signs people in with GitHub: the web flow of the App, and what the token of a person can read.
//
// Tokens stay in memory, in an [Account], and appear in no error. GitHub's answers are bounded and checked, and redirects are not
// followed. The token is not renewed when it expires. Start with [Client.SignIn].
package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"
	"golang.org/x/oauth2"

	"github.com/errand-bot/errand/state"
)

const (
	callTimeout = 10 * time.Second
	listTimeout = 20 * time.Second // of all pages of repositories
	maxAnswer   = 4 << 20          // bytes; a hundred repositories have less than one MB
	maxToken    = 4096             // bytes
	// maxLife is how long a token is used at most. GitHub's tokens expire after eight hours, unless the App has opted out.
	maxLife = 8 * time.Hour
)

// Limits of the lists of an account. A list that is longer is cut.
const (
	maxInstallations = 100 // one page
	maxPages         = 50  // of all installations' repositories, a hundred each
)

// CallbackURL returns the address to which GitHub sends a browser after a person has agreed, for errand's public address.
func CallbackURL(publicURL string) string {
	return strings.TrimSuffix(publicURL, "/") + "/login/github/callback"
}

// Config configures a [Client].
type Config struct {
	// ClientID reads the App's client ID.
	ClientID     func(ctx context.Context) (string, error)
	ClientSecret string
	// WebURL and APIURL are the addresses of GitHub's pages and of its REST API.
	WebURL, APIURL string
	// RedirectURL is where GitHub sends the browser: a callback URL of the App.
	RedirectURL string
	UserAgent   string
	Transport   http.RoundTripper // default http.DefaultTransport
	Now         func() time.Time
}

// Client signs people in. It is safe for concurrent use.
type Client struct {
	cfg  Config
	api  *url.URL
	http *http.Client
}

// New returns a [Client].
func New(cfg Config) (*Client, error) {
	api, err := url.Parse(strings.TrimSuffix(cfg.APIURL, "/") + "/")
	if err != nil {
		return nil, fmt.Errorf("read the address of GitHub's API: %w", err)
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	return &Client{cfg: cfg, api: api, http: &http.Client{
		Transport:     bounded{cfg.Transport},
		Timeout:       callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *Client) flow(ctx context.Context) (*oauth2.Config, error) {
	id, err := c.cfg.ClientID(ctx)
	if err == nil && id == "" {
		err = errors.New("GitHub did not name it")
	}
	if err != nil {
		return nil, fmt.Errorf("read the App's client ID: %w", err)
	}
	web := strings.TrimSuffix(c.cfg.WebURL, "/")
	return &oauth2.Config{
		ClientID: id, ClientSecret: c.cfg.ClientSecret, RedirectURL: c.cfg.RedirectURL,
		Endpoint: oauth2.Endpoint{
			AuthURL: web + "/login/oauth/authorize", TokenURL: web + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams,
		},
	}, nil
}

// AuthorizeURL returns the page of GitHub on which a person agrees to sign in. GitHub returns state, and gives a token only to the
// one who knows verifier (PKCE).
func (c *Client) AuthorizeURL(ctx context.Context, state, verifier string) (string, error) {
	f, err := c.flow(ctx)
	if err != nil {
		return "", err
	}
	return f.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)), nil
}

// ErrRefused means that GitHub does not accept the code: it is wrong, used or too old.
var ErrRefused = errors.New("GitHub does not accept the code of this sign-in: codes are valid for ten minutes, and once")

// SignIn exchanges the code of a completed flow for a token. GitHub accepts a code only once, so the request is not repeated.
func (c *Client) SignIn(ctx context.Context, code, verifier string) (*Account, error) {
	f, err := c.flow(ctx)
	if err != nil {
		return nil, err
	}
	begun := c.cfg.Now()
	t, err := f.Exchange(context.WithValue(ctx, oauth2.HTTPClient, c.http), code, oauth2.VerifierOption(verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode == "bad_verification_code":
		return nil, ErrRefused
	case errors.As(err, &refused): // its text can quote the answer
		return nil, fmt.Errorf("exchange the code of a sign-in: GitHub answered with status %d%s", refused.Response.StatusCode, named(refused.ErrorCode))
	case err != nil:
		return nil, fmt.Errorf("exchange the code of a sign-in: %w", withoutAnswer(err))
	case !strings.EqualFold(t.Type(), "bearer") || len(t.AccessToken) > maxToken || strings.ContainsFunc(t.AccessToken, unprintable):
		return nil, errors.New("exchange the code of a sign-in: GitHub's answer contains no usable token")
	}
	life := maxLife
	if left := time.Duration(t.ExpiresIn) * time.Second; left > 0 {
		life = min(life, left)
	}
	return &Account{
		expires: begun.Add(life),
		client:  c,
		token:   t.AccessToken,
	}, nil
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// named adds GitHub's name of an error, which is a word, to a sentence.
func named(code string) string {
	word := func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' }
	if code == "" || len(code) > 60 || strings.ContainsFunc(code, word) {
		return ""
	}
	return " and the error " + code
}

// withoutAnswer returns an error without GitHub's answer and without an address.
func withoutAnswer(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return errors.New("GitHub's answer could not be read")
}

// Account is a person who has signed in, with their token.
type Account struct {
	client  *Client
	token   string
	expires time.Time
}

// Expires returns when the token expires.
func (a *Account) Expires() time.Time { return a.expires }

// Format prints no token, whatever the verb.
func (a *Account) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "GitHub account") }

// call returns the client of one call.
func (a *Account) call() *github.Client {
	c := github.NewClient(a.client.http).WithAuthToken(a.token)
	c.BaseURL, c.UserAgent = a.client.api, a.client.cfg.UserAgent
	return c
}

// Check reads whose account it is. It returns false if GitHub no longer accepts the token: it was revoked, or has expired.
func (a *Account) Check(ctx context.Context) (state.Person, bool, error) {
	u, resp, err := a.call().Users.Get(ctx, "")
	switch {
	case err != nil && resp != nil && resp.StatusCode == http.StatusUnauthorized:
		return state.Person{}, false, nil
	case err != nil:
		return state.Person{}, false, failed("read the account", resp, err)
	case u.GetID() <= 0 || !isLogin(u.GetLogin()) || u.GetType() != "User":
		return state.Person{}, false, errors.New("read the account: GitHub's answer names no person")
	}
	return state.Person{ID: u.GetID(), Login: u.GetLogin()}, true, nil
}

// isLogin reports whether a text has the form of a person's login.
func isLogin(s string) bool {
	return s != "" && len(s) <= 100 &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == "" && s[0] != '-'
}

// Repositories returns the person's permission in each repository to which the App and the person both have access, by the
// repository's ID. It is not complete for a person with thousands of them.
func (a *Account) Repositories(ctx context.Context) (list map[int64]state.Permission, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	c := a.call()
	installed, resp, err := c.Apps.ListUserInstallations(ctx, &github.ListOptions{PerPage: maxInstallations})
	if err != nil {
		return nil, false, failed("list the installations", resp, err)
	}
	list, complete = map[int64]state.Permission{}, resp.NextPage == 0
	pages := 0
	for _, in := range installed {
		if in == nil || in.SuspendedAt != nil {
			continue
		}
		for page := 1; page != 0; {
			if pages++; pages > maxPages {
				return list, false, nil
			}
			repos, resp, err := c.Apps.ListUserRepos(ctx, in.GetID(), &github.ListOptions{Page: page, PerPage: 100})
			if err != nil && resp != nil && resp.StatusCode == http.StatusNotFound {
				break // it was uninstalled meanwhile
			}
			if err != nil {
				return nil, false, failed("list the repositories", resp, err)
			}
			if repos == nil {
				return nil, false, errors.New("list the repositories: GitHub's answer contains no list")
			}
			for _, r := range repos.Repositories {
				if p := permissionOf(r); p != state.PermissionNone {
					list[r.GetID()] = p
				}
			}
			page = resp.NextPage
		}
	}
	return list, complete, nil
}

func permissionOf(r *github.Repository) state.Permission {
	p := r.GetPermissions()
	switch {
	case r.GetID() <= 0: // also for an empty entry
		return state.PermissionNone
	case p["admin"]:
		return state.PermissionAdmin
	case p["maintain"], p["push"]:
		return state.PermissionWrite
	case p["triage"], p["pull"]:
		return state.PermissionRead
	}
	return state.PermissionNone
}

// failed returns the error of a call without GitHub's answer, which is not for people who sign in.
func failed(what string, resp *github.Response, err error) error {
	if resp != nil && resp.Response != nil && resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: GitHub answered with status %d", what, resp.StatusCode)
	}
	return fmt.Errorf("%s: %w", what, withoutAnswer(err))
}

// bounded limits the size of answers, and asks for JSON where the caller does not say.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Accept") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", "application/json")
	}
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}
