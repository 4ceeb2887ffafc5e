package client

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/go-github/v66/github"
)

// tokenMargin is the remaining lifetime below which a token is not returned any more.
const tokenMargin = 5 * time.Minute

// Tokens creates and caches the tokens with which git reads repositories. It is safe for concurrent use.
type Tokens struct {
	client *Client

	mu     sync.Mutex
	tokens map[string]gitToken // by the repository's ID, #N, or its name in lower case
}

type gitToken struct {
	token   string
	expires time.Time
}

func newTokens(c *Client) *Tokens { return &Tokens{client: c, tokens: map[string]gitToken{}} }

func (t *Tokens) get(repo string, now time.Time) (gitToken, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.tokens[repo]
	if ok && !now.Before(k.expires.Add(-tokenMargin)) {
		delete(t.tokens, repo)
		return gitToken{}, false
	}
	return k, ok
}

func (t *Tokens) put(repo string, k gitToken) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tokens[repo] = k
}

func (t *Tokens) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.tokens)
}

func (t *Tokens) drop(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, k := range t.tokens {
		if k.token == token {
			delete(t.tokens, id)
		}
	}
}

// GitToken returns a token that can only read the contents of one repository and is valid for at least five more
// minutes. It returns the same token until then. The token is a secret that must never reach a VM.
func (t *Tokens) GitToken(ctx context.Context, r Repo) (token string, expires time.Time, err error) {
	key := fmt.Sprintf("#%d", r.ID)
	if k, ok := t.get(key, t.client.cfg.Now()); ok {
		return k.token, k.expires, nil
	}
	op, err := t.client.Read(ctx, 0, "make a read token", "for "+r.FullName())
	if err != nil {
		return "", time.Time{}, err
	}
	k, err := op.repositoryToken(r, "read")
	if err != nil {
		return "", time.Time{}, err
	}
	t.put(key, k)
	return k.token, k.expires, nil
}

// NamedToken is GitToken for a repository of which only the name, OWNER/NAME, is known, such as a submodule. If the App
// is not installed there, it returns an empty token and no error: git can then read only public repositories.
func (t *Tokens) NamedToken(ctx context.Context, fullName string) (string, error) {
	key := strings.ToLower(fullName)
	if k, ok := t.get(key, t.client.cfg.Now()); ok {
		return k.token, nil
	}
	owner, name, _ := strings.Cut(fullName, "/")
	op, err := t.client.Read(ctx, 0, "make a read token", "for "+fullName)
	if err != nil {
		return "", err
	}
	at, _, err := op.GitHub.Apps.FindRepositoryInstallation(op.Ctx, owner, name)
	if StatusOf(err) == 404 {
		return "", nil
	}
	if err != nil {
		return "", op.Wrap(err)
	}
	got, _, err := op.GitHub.Apps.CreateInstallationToken(op.Ctx, at.GetID(), &github.InstallationTokenOptions{
		Repositories: []string{name},
		Permissions:  &github.InstallationPermissions{Contents: github.String("read")},
	})
	if err != nil {
		return "", op.Wrap(notInstalled(err))
	}
	t.put(key, gitToken{token: got.GetToken(), expires: got.GetExpiresAt().Time})
	return got.GetToken(), nil
}

// ForgetToken removes a token that GitHub rejected from the cache. Any token is accepted.
func (t *Tokens) ForgetToken(token string) { t.drop(token) }

// WriteToken creates a token that can only write the contents of one repository. The caller must revoke it.
func (op *Operation) WriteToken(r Repo) (string, error) {
	k, err := op.repositoryToken(r, "write")
	return k.token, err
}

// repositoryToken creates a token for the contents of one repository.
func (op *Operation) repositoryToken(r Repo, level string) (gitToken, error) {
	got, _, err := op.GitHub.Apps.CreateInstallationToken(op.Ctx, r.Installation, &github.InstallationTokenOptions{
		RepositoryIDs: []int64{r.ID},
		Permissions:   &github.InstallationPermissions{Contents: &level},
	})
	if err != nil {
		return gitToken{}, op.Wrap(notInstalled(err))
	}
	return gitToken{token: got.GetToken(), expires: got.GetExpiresAt().Time}, nil
}

// notInstalled marks the refusal of a token as ErrNotInstalled.
func notInstalled(err error) error {
	if s := StatusOf(err); s == 404 || s == 403 {
		return fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return err
}

// Revoke revokes a token. It succeeds for a token that is not valid any more.
func (t *Tokens) Revoke(ctx context.Context, token string) error {
	t.drop(token)
	client, err := t.client.clientCreator().NewTokenClient(token)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	op, err := t.client.Read(ctx, 0, "revoke a token", "") // a read is repeated and not queued
	if err != nil {
		return err
	}
	_, err = client.Apps.RevokeInstallationToken(op.Ctx)
	if StatusOf(err) == 401 {
		return nil
	}
	return op.Wrap(err)
}
