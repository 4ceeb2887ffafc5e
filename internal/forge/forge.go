package forge

import (
	"context"
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
	// Writes is the pace of what people see, per installation; default 20 at once, then one a second.
	Writes Pace
	// Data is the pace of git objects, per installation; default 60 at once, then three a second.
	Data Pace
	// Installations is how many installations' clients are kept; default 512.
	Installations int
	// StatelessTokens is sent as X-GitHub-Stateless-S2S-Token ("enabled" or "disabled") when a token
	// is asked for; empty leaves the choice to GitHub.
	StatelessTokens string

	Log       zerolog.Logger
	Metrics   func(Call)        // called after every HTTP request; must be quick
	Now       func() time.Time  // default time.Now
	Transport http.RoundTripper // default http.DefaultTransport
}

// Forge is GitHub as one App sees it. All methods may be called at once. Every failure is an *Error.
type Forge struct {
	cfg     Config
	creator githubapp.ClientCreator
	app     *github.Client
	tr      *transport
	tokens  *tokens

	mu    sync.Mutex
	self  *App
	nodes map[int64]string // GraphQL ids of repositories, by database id
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
	f := &Forge{cfg: cfg, tokens: newTokens(), nodes: map[int64]string{}}
	f.tr = &transport{
		base: cfg.Transport, now: cfg.Now, timeout: cfg.Timeout, backoff: cfg.Backoff, graphql: v4.Path, token: cfg.StatelessTokens,
		gate: newGate(cfg.Now), log: cfg.Log, metrics: cfg.Metrics, write: cfg.Writes, data: cfg.Data,
		pacers: map[pacerKey]*pacer{}, sunset: map[string]bool{},
	}
	delegate := githubapp.NewClientCreator(cfg.V3APIURL, cfg.V4APIURL, cfg.AppID, cfg.PrivateKey,
		githubapp.WithClientUserAgent(cfg.UserAgent), githubapp.WithTransport(f.tr))
	if f.creator, err = githubapp.NewCachingClientCreator(delegate, cfg.Installations); err != nil {
		return nil, fmt.Errorf("make GitHub clients: %w", err)
	}
	if f.app, err = f.creator.NewAppClient(); err != nil {
		return nil, fmt.Errorf("read the App's private key: %w", err)
	}
	return f, nil
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

// Calls returns how many HTTP requests were made so far.
func (f *Forge) Calls() int64 { return f.tr.calls.Load() }

// GitURL returns where a repository is fetched from, without credentials.
func (f *Forge) GitURL(r Repo) string {
	return strings.TrimSuffix(f.cfg.WebURL, "/") + "/" + r.FullName() + ".git"
}

// use is one call under way: its client, its context, and the maker of its errors.
type use struct {
	*call
	ctx    context.Context
	client *github.Client
}

// reads begins a call that changes nothing. name is for metrics, about says which thing it is.
func (f *Forge) reads(ctx context.Context, installation int64, name, about string) (*use, error) {
	return f.begin(ctx, &call{name: name, kind: kindRead, installation: installation}, about)
}

// writes begins a call that people see the effect of.
func (f *Forge) writes(ctx context.Context, installation int64, name, about string) (*use, error) {
	return f.begin(ctx, &call{name: name, kind: kindWrite, installation: installation, priority: priorityOf(ctx, PriorityAnswer)}, about)
}

// begin makes a use of a call. Installation 0 stands for the App itself.
func (f *Forge) begin(ctx context.Context, c *call, about string) (*use, error) {
	c.op, c.now = strings.TrimSpace(c.name+" "+about), f.cfg.Now
	u := &use{call: c, ctx: c.in(ctx), client: f.app}
	if c.installation != 0 {
		client, err := f.creator.NewInstallationClient(c.installation)
		if err != nil {
			return nil, c.wrap(fmt.Errorf("make client: %w", err))
		}
		u.client = client
	}
	return u, nil
}

// get fetches one page of path (relative to the REST address) into out and returns the next page's
// number, 0 at the end.
func (u *use) get(path string, out any) (next int, err error) {
	req, err := u.client.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return 0, fmt.Errorf("make request: %w", err)
	}
	resp, err := u.client.Do(u.ctx, req, out)
	if err != nil {
		return 0, err
	}
	return resp.NextPage, nil
}

// maxPages bounds every loop over pages: 100 × 100 things are more than any issue has.
const maxPages = 100

// pages calls one with page numbers until it returns 0 as the next one.
func pages(one func(page int) (next int, err error)) error {
	page := 1
	for range maxPages {
		next, err := one(page)
		if err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		page = next
	}
	return nil
}

// all gathers a list of all pages that go-github's method one returns.
func all[T any](one func(o github.ListOptions) ([]T, *github.Response, error)) ([]T, error) {
	var list []T
	err := pages(func(page int) (int, error) {
		part, resp, err := one(github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return 0, err
		}
		list = append(list, part...)
		return resp.NextPage, nil
	})
	return list, err
}

// person maps an account; nil is the ghost of a deleted one.
func person(u *github.User) state.Person {
	if u == nil {
		return state.Person{Login: "ghost"}
	}
	return state.Person{ID: u.GetID(), Login: u.GetLogin(), Bot: u.GetType() == "Bot"}
}
