package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"
)

// Config is the address of GitHub, the credentials of the App, and the limits of a Client. AppID and PrivateKey are
// required.
type Config struct {
	AppID      int64
	PrivateKey []byte // PEM
	// Token is that of a person or a workflow, instead of the App's credentials. Only reads without an installation use it.
	Token string
	// WebURL, V3APIURL and V4APIURL default to the addresses of github.com. A GitHub Enterprise Server has
	// https://HOST, https://HOST/api/v3/ and https://HOST/api/graphql.
	WebURL   string
	V3APIURL string
	V4APIURL string

	UserAgent string        // default "errand"
	Timeout   time.Duration // of one request; default 30 s
	Backoff   time.Duration // before the first retry of a read, doubled for each further one; default 500 ms
	// SecondaryWait is how long calls stop after a secondary rate limit without a time, doubled each time in a row.
	// The default is a minute, as GitHub demands.
	SecondaryWait time.Duration
	// Writes limits writes that people see, per installation; default 20 at once, then one a second.
	Writes RateLimit
	// Data limits uploads of git objects, per installation; default 60 at once, then three a second.
	Data RateLimit
	// Installations is how many installations' clients are cached; default 512.
	Installations int
	// StatelessTokens is sent as X-GitHub-Stateless-S2S-Token ("enabled" or "disabled") when a token
	// is requested; empty leaves the choice to GitHub.
	StatelessTokens string

	// Redact removes secrets from a text before it is sent; nil removes none.
	Redact func(string) string

	Log       zerolog.Logger
	Metrics   func(Request)     // called after every HTTP request; must be quick
	Now       func() time.Time  // default time.Now
	Transport http.RoundTripper // default http.DefaultTransport
}

// Client calls GitHub's API as one App. All methods may be called at once. Every failure is an *Error.
type Client struct {
	cfg    Config
	app    *github.Client
	tr     *transport
	tokens *Tokens

	mu          sync.Mutex
	clients     githubapp.ClientCreator // caches installations' clients with their tokens
	lastRenewal time.Time               // when clients was last replaced
	windowStart time.Time               // start of the interval in which renewals are counted
	renewals    int                     // since windowStart
}

// Repo is the repository of a call, and the installation whose token is used. ID is needed for tokens and GraphQL.
type Repo struct {
	Installation int64
	Owner        string
	Name         string
	ID           int64
}

// FullName returns OWNER/NAME.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// New makes a Client. It sends no request, but fails for a key that cannot sign.
func New(cfg Config) (*Client, error) {
	if cfg.AppID <= 0 && cfg.Token == "" {
		return nil, errors.New("make GitHub client: the App's ID is missing")
	}
	cfg = withDefaults(cfg)
	tr, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, tr: tr}
	c.tokens = newTokens(c)
	if cfg.Token != "" {
		c.app = c.Anonymous().WithAuthToken(cfg.Token)
	}
	if c.clients, err = c.newClients(); err != nil {
		return nil, err
	}
	if c.app != nil {
		return c, nil
	}
	if c.app, err = c.clients.NewAppClient(); err != nil {
		return nil, fmt.Errorf("read the App's private key: %w", err)
	}
	return c, nil
}

// Config returns the configuration with its defaults.
func (c *Client) Config() Config { return c.cfg }

// Log returns the configured log.
func (c *Client) Log() *zerolog.Logger { return &c.cfg.Log }

// Now returns the current time by the Client's clock.
func (c *Client) Now() time.Time { return c.cfg.Now() }

// Tokens returns the tokens for git.
func (c *Client) Tokens() *Tokens { return c.tokens }

// EnterpriseVersion returns the version of the Enterprise Server, as in its latest answer, or "" if there was none yet, or for github.com.
func (c *Client) EnterpriseVersion() string {
	if v := c.tr.version.Load(); v != nil {
		return *v
	}
	return ""
}

// Anonymous returns a client without credentials that uses the same transport.
func (c *Client) Anonymous() *github.Client {
	client := github.NewClient(&http.Client{Transport: c.tr})
	client.UserAgent = c.cfg.UserAgent
	if base, err := url.Parse(c.cfg.V3APIURL); err == nil {
		client.BaseURL = base
	}
	return client
}

func (c *Client) newClients() (githubapp.ClientCreator, error) {
	delegate := githubapp.NewClientCreator(c.cfg.V3APIURL, c.cfg.V4APIURL, c.cfg.AppID, c.cfg.PrivateKey,
		githubapp.WithClientUserAgent(c.cfg.UserAgent), githubapp.WithTransport(c.tr))
	clients, err := githubapp.NewCachingClientCreator(delegate, c.cfg.Installations)
	if err != nil {
		return nil, fmt.Errorf("make GitHub clients: %w", err)
	}
	return clients, nil
}

// clientCreator returns the current cache of clients.
func (c *Client) clientCreator() githubapp.ClientCreator {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clients
}

// Limits of the renewal of tokens: calls in flight with an old token must not discard the new one, and credentials that
// are never accepted must not be tried forever.
const (
	minRenewInterval           = 2 * time.Second
	renewWindow                = time.Minute
	maxRenewals                = 5
	minPermissionRenewInterval = 5 * time.Second
)

// renewTokens discards the tokens of all installations, and reports whether a retry makes sense. A token is rejected
// before it expires if the installation was suspended or recreated meanwhile.
func (c *Client) renewTokens() bool {
	clients, err := c.newClients()
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	if now.Sub(c.windowStart) >= renewWindow {
		c.windowStart, c.renewals = now, 0
	}
	if !c.lastRenewal.IsZero() && now.Sub(c.lastRenewal) < minRenewInterval {
		return true // another call has just done so
	}
	if c.renewals == maxRenewals {
		return false
	}
	c.clients, c.lastRenewal = clients, now
	c.tokens.clear()
	c.renewals++
	return true
}

// ForgetTokens discards the tokens of all installations, because their permissions have changed.
func (c *Client) ForgetTokens() {
	clients, err := c.newClients()
	if err != nil { // New made them before
		c.cfg.Log.Error().Err(err).Msg("failed to replace GitHub clients")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients, c.lastRenewal = clients, c.cfg.Now()
	c.tokens.clear()
}

// renewOldTokens is renewTokens for an operation that lacked a permission. A token has the permissions that the
// installation had when the token was created, up to an hour ago. If the token was new, renewOldTokens returns false:
// the permission is missing.
func (c *Client) renewOldTokens(began time.Time) bool {
	c.mu.Lock()
	last := c.lastRenewal
	c.mu.Unlock()
	if began.Before(last) {
		return true
	}
	return c.cfg.Now().Sub(last) >= minPermissionRenewInterval && c.renewTokens()
}

func withDefaults(cfg Config) Config {
	text := func(v *string, d string) {
		if *v == "" {
			*v = d
		}
	}
	text(&cfg.WebURL, "https://github.com")
	text(&cfg.V3APIURL, "https://api.github.com/")
	text(&cfg.V4APIURL, "https://api.github.com/graphql")
	text(&cfg.UserAgent, "errand")
	if !strings.HasSuffix(cfg.V3APIURL, "/") {
		cfg.V3APIURL += "/"
	}
	cfg.V4APIURL = strings.TrimSuffix(cfg.V4APIURL, "/")
	if cfg.Timeout == 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.Backoff == 0 {
		cfg.Backoff = 500 * time.Millisecond
	}
	if cfg.SecondaryWait == 0 {
		cfg.SecondaryWait = minSecondaryWait
	}
	if cfg.Writes == (RateLimit{}) {
		cfg.Writes = RateLimit{Burst: 20, Every: time.Second}
	}
	if cfg.Data == (RateLimit{}) {
		cfg.Data = RateLimit{Burst: 60, Every: time.Second / 3}
	}
	if cfg.Installations == 0 {
		cfg.Installations = 512
	}
	if cfg.Metrics == nil {
		cfg.Metrics = func(Request) {}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	return cfg
}

// NoreplyAddress returns the email address that identifies an account in commits without revealing its own address.
func (c *Client) NoreplyAddress(id int64, login string) string {
	host := "github.com"
	if u, err := url.Parse(c.cfg.WebURL); err == nil && u.Hostname() != "" {
		host = u.Hostname()
	}
	return fmt.Sprintf("%d+%s@users.noreply.%s", id, login, host)
}

// GitURL returns the address from which git fetches a repository, without credentials.
func (c *Client) GitURL(r Repo) string {
	return strings.TrimSuffix(c.cfg.WebURL, "/") + "/" + r.FullName() + ".git"
}
