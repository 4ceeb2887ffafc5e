package forge

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

	"github.com/errand-bot/errand/state"
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
	// Unsaid is how long a secondary limit is waited out that names no time, doubled while it goes on;
	// default a minute, which is what GitHub asks for.
	Unsaid time.Duration
	// Writes is the pace of what people see, per installation; default 20 at once, then one a second.
	Writes Pace
	// Data is the pace of git objects, per installation; default 60 at once, then three a second.
	Data Pace
	// Installations is how many installations' clients are kept; default 512.
	Installations int
	// StatelessTokens is sent as X-GitHub-Stateless-S2S-Token ("enabled" or "disabled") when a token
	// is asked for; empty leaves the choice to GitHub.
	StatelessTokens string

	// Redact takes secrets out of a text before it is sent; nil leaves them.
	Redact func(string) string

	Log       zerolog.Logger
	Metrics   func(Call)        // called after every HTTP request; must be quick
	Now       func() time.Time  // default time.Now
	Transport http.RoundTripper // default http.DefaultTransport
}

// Forge is GitHub as one App sees it. All methods may be called at once. Every failure is an *Error.
type Forge struct {
	cfg    Config
	app    *github.Client
	tr     *transport
	tokens *tokens
	known  *known

	mu       sync.Mutex
	clients  githubapp.ClientCreator // keeps installations' clients with their tokens
	renewed  time.Time               // when clients was last thrown away
	since    time.Time               // when renewals began to be counted
	renewals int                     // since then
	self     *App
	nodes    map[int64]string // GraphQL ids of repositories, by database id
	grants   map[int64]grant  // by installation
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

// RepoOf returns the repository of a task, by its present name.
func RepoOf(t *state.Task) Repo {
	return Repo{Installation: t.Installation, Owner: t.Repo.Owner, Name: t.Repo.Name, ID: t.Repo.ID}
}

// New makes a Forge. It asks GitHub nothing, but refuses a key that cannot sign.
func New(cfg Config) (*Forge, error) {
	if cfg.AppID <= 0 {
		return nil, errors.New("make GitHub client: the App's id is missing")
	}
	cfg = withDefaults(cfg)
	v4, err := url.Parse(cfg.V4APIURL)
	if err != nil {
		return nil, fmt.Errorf("parse GraphQL address: %w", err)
	}
	v3, err := url.Parse(cfg.V3APIURL)
	if err != nil {
		return nil, fmt.Errorf("parse REST address: %w", err)
	}
	f := &Forge{cfg: cfg, tokens: newTokens(), known: newKnown(), nodes: map[int64]string{}, grants: map[int64]grant{}}
	f.tr = &transport{
		base: cfg.Transport, now: cfg.Now, timeout: cfg.Timeout, backoff: cfg.Backoff, graphql: v4.Path,
		hosts: []string{v3.Host, v4.Host}, token: cfg.StatelessTokens, redact: cfg.Redact, gate: newGate(cfg.Now, cfg.Unsaid), log: cfg.Log, metrics: cfg.Metrics, write: cfg.Writes, data: cfg.Data,
		pacers: map[pacerKey]*pacer{}, sunset: map[string]bool{}, calls: newBook(),
	}
	if f.clients, err = f.newClients(); err != nil {
		return nil, err
	}
	if f.app, err = f.clients.NewAppClient(); err != nil {
		return nil, fmt.Errorf("read the App's private key: %w", err)
	}
	return f, nil
}

func (f *Forge) newClients() (githubapp.ClientCreator, error) {
	delegate := githubapp.NewClientCreator(f.cfg.V3APIURL, f.cfg.V4APIURL, f.cfg.AppID, f.cfg.PrivateKey,
		githubapp.WithClientUserAgent(f.cfg.UserAgent), githubapp.WithTransport(f.tr))
	clients, err := githubapp.NewCachingClientCreator(delegate, f.cfg.Installations)
	if err != nil {
		return nil, fmt.Errorf("make GitHub clients: %w", err)
	}
	return clients, nil
}

// creator returns the present maker of clients.
func (f *Forge) creator() githubapp.ClientCreator {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clients
}

// How often tokens are thrown away: calls that were under way with an old token must not throw the
// new one away, and credentials that are not accepted at all must not be tried for ever.
const (
	renewGap    = 2 * time.Second
	renewWindow = time.Minute
	renewMax    = 5
	regrantGap  = 5 * time.Second
)

// renew throws all installations' tokens away, and reports whether it is worth trying again. A token
// is refused before its end when the installation was suspended or made anew meanwhile.
func (f *Forge) renew() bool {
	clients, err := f.newClients()
	if err != nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	if now.Sub(f.since) >= renewWindow {
		f.since, f.renewals = now, 0
	}
	if !f.renewed.IsZero() && now.Sub(f.renewed) < renewGap {
		return true // somebody else just did
	}
	if f.renewals == renewMax {
		return false
	}
	f.clients, f.renewed = clients, now
	f.tokens.clear()
	f.renewals++
	return true
}

// Forget throws all installations' tokens away: what they may do has changed.
func (f *Forge) Forget() {
	clients, err := f.newClients()
	if err != nil { // they could be made before
		f.cfg.Log.Error().Err(err).Msg("make GitHub clients anew")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clients, f.renewed = clients, f.cfg.Now()
	f.forgetGrants()
	f.tokens.clear()
}

// regrant is renew for a call that began at a time and lacked a permission: a token holds those that the
// installation had when it was made, up to an hour ago. With a newer one the permission is lacking.
func (f *Forge) regrant(began time.Time) bool {
	f.mu.Lock()
	renewed := f.renewed
	f.mu.Unlock()
	if began.Before(renewed) {
		return true
	}
	return f.cfg.Now().Sub(renewed) >= regrantGap && f.renew()
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
	if cfg.Unsaid == 0 {
		cfg.Unsaid = secondaryFirst
	}
	if cfg.Writes == (Pace{}) {
		cfg.Writes = Pace{Burst: 20, Every: time.Second}
	}
	if cfg.Data == (Pace{}) {
		cfg.Data = Pace{Burst: 60, Every: time.Second / 3}
	}
	if cfg.Installations == 0 {
		cfg.Installations = 512
	}
	if cfg.Metrics == nil {
		cfg.Metrics = func(Call) {}
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
func (f *Forge) GitURL(r Repo) string {
	return strings.TrimSuffix(f.cfg.WebURL, "/") + "/" + r.FullName() + ".git"
}
