package forge

import (
	"sync"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/forge/publish"
	"github.com/errand-bot/errand/state"
)

// Forge is GitHub as one App sees it. All methods may be called at once. Every failure is an *Error.
type Forge struct {
	*client.Tokens
	*publish.Publisher
	client *client.Client
	cache  *publish.Cache

	mu            sync.Mutex
	self          *App
	installations map[int64]cachedInstallation // by installation
}

// RepoOf returns the repository of a task, by its present name.
func RepoOf(t *state.Task) Repo {
	return Repo{Installation: t.Installation, Owner: t.Repo.Owner, Name: t.Repo.Name, ID: t.Repo.ID}
}

// New makes a Forge. It asks GitHub nothing, but refuses a key that cannot sign.
func New(cfg Config) (*Forge, error) {
	c, err := client.New(cfg)
	if err != nil {
		return nil, err
	}
	cache := publish.NewCache()
	return &Forge{Tokens: c.Tokens(), Publisher: publish.New(c, cache), client: c, cache: cache, installations: map[int64]cachedInstallation{}}, nil
}

// InvalidateTokens throws all installations' tokens away: what they may do has changed.
func (f *Forge) InvalidateTokens() {
	f.client.ForgetTokens()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.expireInstallations()
}

// GitURL returns where a repository is fetched from, without credentials.
func (f *Forge) GitURL(r Repo) string { return f.client.GitURL(r) }

// Calls returns how many HTTP requests were made so far for a purpose, repeated ones and those for
// tokens included. What VMs read through the tether is not among them.
func (f *Forge) Calls(p Purpose) int { return f.client.Calls(p) }
