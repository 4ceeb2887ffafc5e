package forge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
)

// tokenMargin is how long before its end a token is no longer given out.
const tokenMargin = 5 * time.Minute

// tokens keeps the read tokens of repositories.
type tokens struct {
	mu   sync.Mutex
	byID map[int64]gitToken
}

type gitToken struct {
	token   string
	expires time.Time
}

func newTokens() *tokens { return &tokens{byID: map[int64]gitToken{}} }

func (t *tokens) get(repo int64, now time.Time) (gitToken, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.byID[repo]
	if ok && !now.Before(k.expires.Add(-tokenMargin)) {
		delete(t.byID, repo)
		return gitToken{}, false
	}
	return k, ok
}

func (t *tokens) put(repo int64, k gitToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byID[repo] = k
}

func (t *tokens) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.byID)
}

func (t *tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, k := range t.byID {
		if k.token == token {
			delete(t.byID, id)
		}
	}
}

// GitToken returns a token that can read the contents of one repository and nothing else, good for at
// least five more minutes. The same one is returned until then. It is a secret of ours: it never
// enters a VM.
func (f *Forge) GitToken(ctx context.Context, r Repo) (token string, expires time.Time, err error) {
	if k, ok := f.tokens.get(r.ID, f.cfg.Now()); ok {
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
	f.tokens.put(r.ID, k)
	return k.token, k.expires, nil
}

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
