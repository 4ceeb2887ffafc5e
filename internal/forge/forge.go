package forge

import (
	"sync"

	"github.com/errand-bot/errand/internal/forge/ci"
	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/publish"
	"github.com/errand-bot/errand/state"
)

// Forge performs operations on GitHub as one App. It is safe for concurrent use. Every error is an *Error.
type Forge struct {
	*client.Tokens
	*publish.Publisher
	*ci.Checker
	client *client.Client
	cache  *publish.Cache

	mu            sync.Mutex
	self          *App
	installations map[int64]cachedInstallation // by ID
}

// RepoOf returns the repository of a task by its current name.
func RepoOf(t *state.Task) Repo {
	return Repo{Installation: t.Installation, Owner: t.Repo.Owner, Name: t.Repo.Name, ID: t.Repo.ID}
}

// New makes a Forge. It sends no request, but fails for a key that cannot sign.
func New(cfg Config) (*Forge, error) {
	c, err := client.New(cfg)
	if err != nil {
		return nil, err
	}
	cache := publish.NewCache()
	return &Forge{
		Tokens: c.Tokens(), Publisher: publish.New(c, cache), Checker: ci.New(c), client: c, cache: cache,
		installations: map[int64]cachedInstallation{},
	}, nil
}

// InvalidateTokens discards the tokens and cached permissions of all installations, because their permissions have
// changed.
func (f *Forge) InvalidateTokens() {
	f.client.ForgetTokens()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expireInstallations()
}

// EnterpriseVersion returns the version of the Enterprise Server, as in its latest answer, or "" if there was none yet, or for github.com.
func (f *Forge) EnterpriseVersion() string { return f.client.EnterpriseVersion() }

// GitURL returns the address from which git fetches a repository, without credentials.
func (f *Forge) GitURL(r Repo) string { return f.client.GitURL(r) }

// Calls returns the number of HTTP requests for a purpose so far, with retries and requests for tokens, but without
// those of VMs through the tether.
func (f *Forge) Calls(p Purpose) int { return f.client.Calls(p) }
