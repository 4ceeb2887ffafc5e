// Package gitproxy lets VMs read repositories: it forwards fetches and downloads of large files to the forge with a read-only
// token, and refuses everything else, above all pushes.
//
// Start with [Proxy.Serve].
package gitproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/state"
)

// maxReplay is how much of a request is kept so that it can be sent again with another token. What a
// fetch asks for is a few kilobytes; a longer request is sent once.
const maxReplay = 1 << 20

// Reader returns where a repository is read, and a token that can read it and nothing else. An empty
// token is for what everybody may read.
type Reader func(ctx context.Context) (url, token string, err error)

// Config configures a Proxy.
type Config struct {
	// Repository returns where a task's repository is read, and a read-only token for it.
	Repository func(ctx context.Context, t *state.Task) (url, token string, err error)
	// Submodule returns how another repository, named as OWNER/NAME, is read for a task, nil if the
	// configuration does not let the task read it; nil itself lets none.
	Submodule func(t *state.Task, repo string) Reader
	// TokenRefused hears of a token that the forge takes no more: Git and Submodule have to return another then.
	TokenRefused func(token string)
	Transport    http.RoundTripper
	Log          zerolog.Logger
}

// Proxy passes reads of repositories on to the forge.
type Proxy struct{ cfg Config }

// New returns a Proxy.
func New(cfg Config) *Proxy { return &Proxy{cfg: cfg} }

// Client is the VM that sends a request, and the token that it showed.
type Client struct{ VM, Token string }

// Serve answers what asks for a repository: the task's own, and those that may be its submodules. Only
// reading is passed on.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, from Client) {
	repo := r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("repo"), ".git")
	read := p.reader(t, repo)
	if read == nil {
		http.Error(w, "errand: only the task's own repository can be read, and what the configuration names under submodules", http.StatusForbidden)
		return
	}
	rest := strings.TrimPrefix(r.URL.Path, path.Join("/git", r.PathValue("owner"), r.PathValue("repo")))
	fetch := rest == "/git-upload-pack" && r.Method == http.MethodPost ||
		rest == "/info/refs" && r.Method == http.MethodGet && r.URL.Query().Get("service") == "git-upload-pack"
	large, isLarge := strings.CutPrefix(rest, objectsPath)
	if !fetch && !isLarge {
		http.Error(w, "errand: the repository can be fetched from, not pushed to", http.StatusForbidden)
		return
	}
	base, token, err := read(r.Context())
	if err != nil {
		p.cfg.Log.Warn().Err(err).Str("vm", from.VM).Str("repository", repo).Msg("tether: no token to read the repository")
		http.Error(w, "errand: the repository cannot be read now", http.StatusBadGateway)
		return
	}
	via := &tokenRenewer{next: p.cfg.Transport, token: token, refused: p.cfg.TokenRefused, again: read}
	if isLarge {
		p.serveLFS(w, r, lfsClient{base: base, transport: via, vmToken: from.Token}, large)
		return
	}
	out := forward.Request{BaseURL: base, Path: rest, Transport: via, Log: p.cfg.Log, Sign: func(out *http.Request) {
		out.URL.RawQuery = "" // nothing but what was judged goes further
		if rest == "/info/refs" {
			out.URL.RawQuery = "service=git-upload-pack"
		}
	}}
	out.Forward(w, r)
}

// reader returns how a repository is read for a task, nil if the task has nothing to read there.
func (p *Proxy) reader(t *state.Task, repo string) Reader {
	if strings.EqualFold(repo, t.Repo.FullName()) {
		return func(ctx context.Context) (string, string, error) { return p.cfg.Repository(ctx, t) }
	}
	if p.cfg.Submodule == nil {
		return nil
	}
	return p.cfg.Submodule(t, repo)
}

// tokenRenewer is how one request to the forge is sent: with the token put in, and a second time with
// another one if that is refused, as it is when it expires or is revoked in the middle of a fetch.
type tokenRenewer struct {
	next    http.RoundTripper
	token   string
	refused func(token string)
	again   Reader
}

// RoundTrip sends the request.
func (t *tokenRenewer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, whole, err := replayable(r)
	if err != nil {
		return nil, fmt.Errorf("read what the VM sends: %w", err)
	}
	first := r.Clone(r.Context())
	if body != nil {
		first.Body = body()
	}
	t.sign(first)
	answer, err := t.next.RoundTrip(first)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || !whole || t.token == "" || t.refused == nil {
		return answer, err
	}
	t.refused(t.token)
	_, token, err := t.again(r.Context())
	if err != nil || token == t.token {
		return answer, nil // the forge's own answer says it best
	}
	_ = answer.Body.Close()
	t.token = token
	second := r.Clone(r.Context())
	if body != nil {
		second.Body = body()
	}
	t.sign(second)
	return t.next.RoundTrip(second)
}

func (t *tokenRenewer) sign(r *http.Request) {
	r.Header.Del("Authorization")
	if t.token != "" {
		r.SetBasicAuth("x-access-token", t.token)
	}
}

// replayable returns what makes the request's body anew, nil if there is none, and whether it may be
// called more than once.
func replayable(r *http.Request) (body func() io.ReadCloser, whole bool, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true, nil
	}
	begin, err := io.ReadAll(io.LimitReader(r.Body, maxReplay+1))
	if err != nil {
		return nil, false, err
	}
	if len(begin) <= maxReplay {
		_ = r.Body.Close()
		return func() io.ReadCloser { return io.NopCloser(bytes.NewReader(begin)) }, true, nil
	}
	rest := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(begin), r.Body), r.Body}
	return func() io.ReadCloser { return rest }, false, nil
}
