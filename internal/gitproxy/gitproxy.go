// Package gitproxy lets VMs read repositories: it forwards fetches and downloads of large files to the forge with a
// read-only token, and refuses everything else, above all pushes.
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

// maxReplay is the maximum length of a request that is kept to be repeated with another token. Fetches send a few
// kilobytes; longer requests are sent once.
const maxReplay = 1 << 20

// A Reader returns the URL of a repository, and a token that can only read it. The token is empty for public
// repositories.
type Reader func(ctx context.Context) (url, token string, err error)

// Config configures a Proxy.
type Config struct {
	// Repository returns where a task's repository is read, and a read-only token for it.
	Repository func(ctx context.Context, t *state.Task) (url, token string, err error)
	// Submodule returns the Reader of another repository, OWNER/NAME, or nil if the task may not read it. If Submodule
	// is nil, tasks can only read their own repository.
	Submodule func(t *state.Task, repo string) Reader
	// TokenRefused is called with a token that the forge refuses. After that, Repository and Submodule return another
	// one.
	TokenRefused func(token string)
	Transport    http.RoundTripper
	Log          zerolog.Logger
}

// A Proxy forwards reads of repositories to the forge.
type Proxy struct{ cfg Config }

// New returns a Proxy.
func New(cfg Config) *Proxy { return &Proxy{cfg: cfg} }

// A Client is the VM that sends a request, and the token of the request.
type Client struct{ VM, Token string }

// Serve answers a request for /git/{owner}/{repo}/, where owner and repo are path values. It forwards reads of the
// task's own repository and of its submodules.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, from Client) {
	repo := r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("repo"), ".git")
	read := p.readerFor(t, repo)
	if read == nil {
		http.Error(w, "errand: only the task's own repository and the configured submodules can be read", http.StatusForbidden)
		return
	}
	rest := strings.TrimPrefix(r.URL.Path, path.Join("/git", r.PathValue("owner"), r.PathValue("repo")))
	fetch := rest == "/git-upload-pack" && r.Method == http.MethodPost ||
		rest == "/info/refs" && r.Method == http.MethodGet && r.URL.Query().Get("service") == "git-upload-pack"
	object, isLFS := strings.CutPrefix(rest, objectsPath)
	if !fetch && !isLFS {
		http.Error(w, "errand: the repository can only be fetched from", http.StatusForbidden)
		return
	}
	base, token, err := read(r.Context())
	if err != nil {
		p.cfg.Log.Warn().Err(err).Str("vm", from.VM).Str("repository", repo).Msg("failed to get a token to read a repository")
		http.Error(w, "errand: the repository cannot be read now", http.StatusBadGateway)
		return
	}
	renewer := &tokenRenewer{next: p.cfg.Transport, token: token, refused: p.cfg.TokenRefused, read: read}
	if isLFS {
		p.serveLFS(w, r, lfsClient{base: base, transport: renewer, vmToken: from.Token}, object)
		return
	}
	out := forward.Request{BaseURL: base, Path: rest, Transport: renewer, Log: p.cfg.Log, Sign: func(out *http.Request) {
		out.URL.RawQuery = "" // only the checked parameter is forwarded
		if rest == "/info/refs" {
			out.URL.RawQuery = "service=git-upload-pack"
		}
	}}
	out.Forward(w, r)
}

// readerFor returns the Reader of a repository, or nil if the task may not read it.
func (p *Proxy) readerFor(t *state.Task, repo string) Reader {
	if strings.EqualFold(repo, t.Repo.FullName()) {
		return func(ctx context.Context) (string, string, error) { return p.cfg.Repository(ctx, t) }
	}
	if p.cfg.Submodule == nil {
		return nil
	}
	return p.cfg.Submodule(t, repo)
}

// A tokenRenewer sends a request to the forge with the token, and repeats it with another token if the forge refuses
// the first one, because it has expired or was revoked in the middle of a fetch.
type tokenRenewer struct {
	next    http.RoundTripper
	token   string
	refused func(token string)
	read    Reader // returns another token
}

// RoundTrip implements http.RoundTripper.
func (t *tokenRenewer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, whole, err := newReplay(r)
	if err != nil {
		return nil, fmt.Errorf("read the request of a VM: %w", err)
	}
	first := r.Clone(r.Context())
	if body != nil {
		first.Body = body()
	}
	t.setToken(first)
	answer, err := t.next.RoundTrip(first)
	if err != nil || answer.StatusCode != http.StatusUnauthorized || !whole || t.token == "" || t.refused == nil {
		return answer, err
	}
	t.refused(t.token)
	_, token, err := t.read(r.Context())
	if err != nil || token == t.token {
		return answer, nil // the forge's answer is passed on
	}
	_ = answer.Body.Close()
	t.token = token
	second := r.Clone(r.Context())
	if body != nil {
		second.Body = body()
	}
	t.setToken(second)
	return t.next.RoundTrip(second)
}

func (t *tokenRenewer) setToken(r *http.Request) {
	r.Header.Del("Authorization")
	if t.token != "" {
		r.SetBasicAuth("x-access-token", t.token)
	}
}

// newReplay returns a function that returns the request's body, nil if there is none, and whether it may be called
// more than once.
func newReplay(r *http.Request) (body func() io.ReadCloser, repeatable bool, err error) {
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
