package forge

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
)

// tokenMargin is how long before its end a token is no longer given out.
const tokenMargin = 5 * time.Minute

// tokens keeps the read tokens of repositories.
type tokens struct {
	mu sync.Mutex
	by map[string]gitToken // by the repository's id, #N, or its name in lower case
}

type gitToken struct {
	token   string
	expires time.Time
}

func newTokens() *tokens { return &tokens{by: map[string]gitToken{}} }

func (t *tokens) get(repo string, now time.Time) (gitToken, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.by[repo]
	if ok && !now.Before(k.expires.Add(-tokenMargin)) {
		delete(t.by, repo)
		return gitToken{}, false
	}
	return k, ok
}

func (t *tokens) put(repo string, k gitToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[repo] = k
}

func (t *tokens) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.by)
}

func (t *tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, k := range t.by {
		if k.token == token {
			delete(t.by, id)
		}
	}
}

// GitToken returns a token that can read the contents of one repository and nothing else, good for at
// least five more minutes. The same one is returned until then. It is a secret of ours: it never
// enters a VM.
func (f *Forge) GitToken(ctx context.Context, r Repo) (token string, expires time.Time, err error) {
	key := fmt.Sprintf("#%d", r.ID)
	if k, ok := f.tokens.get(key, f.cfg.Now()); ok {
		return k.token, k.expires, nil
	}
	u, err := f.reads(ctx, 0, "make a read token", "for "+r.FullName())
	if err != nil {
		return "", time.Time{}, err
	}
	got, _, err := u.client.Apps.CreateInstallationToken(u.ctx, r.Installation, &github.InstallationTokenOptions{
		RepositoryIDs: []int64{r.ID},
		Permissions:   &github.InstallationPermissions{Contents: github.String("read")},
	})
	if err != nil {
		return "", time.Time{}, u.wrap(installed(err))
	}
	k := gitToken{token: got.GetToken(), expires: got.GetExpiresAt().Time}
	f.tokens.put(key, k)
	return k.token, k.expires, nil
}

// NamedToken is GitToken for a repository, OWNER/NAME, of which nothing but its name is known, such as a
// submodule. It is empty, and no error, where the App is not installed: then only what everybody may read
// can be read.
func (f *Forge) NamedToken(ctx context.Context, fullName string) (string, error) {
	key := strings.ToLower(fullName)
	if k, ok := f.tokens.get(key, f.cfg.Now()); ok {
		return k.token, nil
	}
	owner, name, _ := strings.Cut(fullName, "/")
	u, err := f.reads(ctx, 0, "make a read token", "for "+fullName)
	if err != nil {
		return "", err
	}
	at, _, err := u.client.Apps.FindRepositoryInstallation(u.ctx, owner, name)
	if statusOf(err) == 404 {
		return "", nil
	}
	if err != nil {
		return "", u.wrap(err)
	}
	got, _, err := u.client.Apps.CreateInstallationToken(u.ctx, at.GetID(), &github.InstallationTokenOptions{
		Repositories: []string{name},
		Permissions:  &github.InstallationPermissions{Contents: github.String("read")},
	})
	if err != nil {
		return "", u.wrap(installed(err))
	}
	f.tokens.put(key, gitToken{token: got.GetToken(), expires: got.GetExpiresAt().Time})
	return got.GetToken(), nil
}

// ForgetToken has a token that GitHub refused not be given out again. It may be called for any token.
func (f *Forge) ForgetToken(token string) { f.tokens.drop(token) }

// installed marks the refusal of a token as what it is.
func installed(err error) error {
	if s := statusOf(err); s == 404 || s == 403 {
		return fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return err
}

// Revoke ends a token at once. A token that has ended already is no error.
func (f *Forge) Revoke(ctx context.Context, token string) error {
	f.tokens.drop(token)
	client, err := f.creator().NewTokenClient(token)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	u, err := f.reads(ctx, 0, "revoke a token", "") // may be repeated, and waits for nobody
	if err != nil {
		return err
	}
	_, err = client.Apps.RevokeInstallationToken(u.ctx)
	if statusOf(err) == 401 {
		return nil
	}
	return u.wrap(err)
}
