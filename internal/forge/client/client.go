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

// Config says which GitHub it is and who we are there. AppID and PrivateKey are required.
type Config struct {
	AppID      int64
	PrivateKey []byte // PEM
	// WebURL, V3APIURL and V4APIURL are those of github.com by default. A GitHub Enterprise Server has
	// https://HOST, https://HOST/api/v3/ and https://HOST/api/graphql.
	WebURL   string
	V3APIURL string
	V4APIURL string

	UserAgent string        // default "errand"
	Timeout   time.Duration // of one request; default 30 s
	Backoff   time.Duration // before a read is repeated, doubled each time; default 500 ms
	// SecondaryWait is how long a secondary limit is waited out that names no time, doubled while it goes on;
	// default a minute, which is what GitHub asks for.
	SecondaryWait time.Duration
	// Writes is the pace of what people see, per installation; default 20 at once, then one a second.
	Writes RateLimit
	// Data is the pace of git objects, per installation; default 60 at once, then three a second.
	Data RateLimit
	// Installations is how many installations' clients are kept; default 512.
	Installations int
	// StatelessTokens is sent as X-GitHub-Stateless-S2S-Token ("enabled" or "disabled") when a token
	// is asked for; empty leaves the choice to GitHub.
	StatelessTokens string

	// Redact takes secrets out of a text before it is sent; nil leaves them.
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
	clients     githubapp.ClientCreator // keeps installations' clients with their tokens
	lastRenewal time.Time               // when clients was last thrown away
	windowStart time.Time               // when renewals began to be counted
	renewals    int                     // since then
}

// Repo is where a call goes. ID is used where a name will not do: tokens and GraphQL.
type Repo struct {
	Installation int64
	Owner        string
	Name         string
	ID           int64
}

// FullName returns OWNER/NAME.
func (r Repo) FullName() string { return r.Owner + "/" + r.Name }

// New makes a Client. It asks GitHub nothing, but refuses a key that cannot sign.
func New(cfg Config) (*Client, error) {
	if cfg.AppID <= 0 {
		return nil, errors.New("make GitHub client: the App's id is missing")
	}
	cfg = withDefaults(cfg)
	tr, err := newTransport(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, tr: tr}
	c.tokens = newTokens(c)
	if c.clients, err = c.newClients(); err != nil {
		return nil, err
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

// Now returns the present time of the Client's clock.
func (c *Client) Now() time.Time { return c.cfg.Now() }

// Tokens returns the tokens for git.
func (c *Client) Tokens() *Tokens { return c.tokens }

// Anonymous returns a client without credentials, over the same transport.
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

// creator returns the present maker of clients.
func (c *Client) clientCreator() githubapp.ClientCreator {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clients
}

// How often tokens are thrown away: calls that were under way with an old token must not throw the
// new one away, and credentials that are not accepted at all must not be tried for ever.
const (
	renewGap           = 2 * time.Second
	renewWindow        = time.Minute
	renewMax           = 5
	permissionRenewGap = 5 * time.Second
)

// renewTokens throws all installations' tokens away, and reports whether it is worth trying again. A token
// is refused before its end when the installation was suspended or made anew meanwhile.
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
	if !c.lastRenewal.IsZero() && now.Sub(c.lastRenewal) < renewGap {
		return true // somebody else just did
	}
	if c.renewals == renewMax {
		return false
	}
	c.clients, c.lastRenewal = clients, now
	c.tokens.clear()
	c.renewals++
	return true
}

// ForgetTokens throws all installations' tokens away: what they may do has changed.
func (c *Client) ForgetTokens() {
	clients, err := c.newClients()
	if err != nil { // they could be made before
		c.cfg.Log.Error().Err(err).Msg("make GitHub clients anew")
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients, c.lastRenewal = clients, c.cfg.Now()
	c.tokens.clear()
}

// renewOldTokens is renew for a call that began at a time and lacked a permission: a token holds those that the
// installation had when it was made, up to an hour ago. With a newer one the permission is lacking.
func (c *Client) renewOldTokens(began time.Time) bool {
	c.mu.Lock()
	renewed := c.lastRenewal
	c.mu.Unlock()
	if began.Before(renewed) {
		return true
	}
	return c.cfg.Now().Sub(renewed) >= permissionRenewGap && c.renewTokens()
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
		cfg.SecondaryWait = secondaryFirst
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

// GitURL returns where a repository is fetched from, without credentials.
func (c *Client) GitURL(r Repo) string {
	return strings.TrimSuffix(c.cfg.WebURL, "/") + "/" + r.FullName() + ".git"
}
