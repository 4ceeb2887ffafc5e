package simgithub

import (
	"errors"
	"io/fs"
	"net/http"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// serveLFS answers batch requests: which large files there are, and where to download or upload them.
func (gs gitServer) serveLFS(w http.ResponseWriter, r *http.Request) {
	f := gs.s.admit(r, "git lfs batch", r.URL.Path)
	if f.before(w, r) {
		return
	}
	answer, err := gs.lfsBatch(r)
	if f.after(w, r) {
		return
	}
	if err == nil {
		git.WriteLFS(w, http.StatusOK, answer)
		return
	}
	if err.Status == http.StatusUnauthorized {
		w.Header().Set("LFS-Authenticate", `Basic realm="GitHub"`)
	}
	git.WriteLFSError(w, err)
}

func (gs gitServer) lfsBatch(r *http.Request) (any, *git.LFSError) {
	b, err := git.ParseLFSBatch(r)
	if err != nil {
		return nil, err
	}
	gs.s.mu.Lock()
	defer gs.s.mu.Unlock()
	repo, x, refused := gs.session(r, git.Request{Repo: b.Repo, Push: b.Operation == git.LFSUpload})
	if refused != nil {
		e := &Error{Status: http.StatusInternalServerError, Message: refused.Error()}
		_ = errors.As(refused, &e)
		return nil, git.NewLFSError(e.Status, e.Message)
	}
	return gs.s.lfs.Answer(b, git.LFSClient{Repo: repo.ID, App: x.viaApp(), Base: gs.s.base}), nil
}

// serveLFSTransfer serves downloads, uploads and their verification at the addresses that the answer to a batch request
// names. A request without the header of its address is refused.
func (gs gitServer) serveLFSTransfer(w http.ResponseWriter, r *http.Request) {
	g, ok := gs.s.lfs.Granted(r)
	by := r.Clone(r.Context())
	if g.App {
		by.Header.Set("Authorization", "Bearer of the App") // the App sent it, although the header is not the App's token
	}
	f := gs.s.admit(by, "git lfs "+r.PathValue("action"), r.URL.Path)
	if f.before(w, r) {
		return
	}
	switch {
	case !ok:
		git.WriteLFSError(w, git.NewLFSError(http.StatusForbidden, "Forbidden"))
		return
	case g.Action == git.LFSDownload:
		gs.s.lfs.Download(w, r, g)
		return
	}
	err := gs.s.lfs.Receive(r, g)
	switch {
	case f.after(w, r):
	case err != nil:
		git.WriteLFSError(w, err)
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// AddLFS stores a large file of a repository as `git lfs push` does, and returns the pointer to commit.
func (s *Sim) AddLFS(repo string, content []byte) (pointer string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[repoKey(repo)]
	if r == nil {
		return "", errNotFound()
	}
	return s.lfs.Add(r.ID, content)
}

// LFS returns a large file of a repository; the error is fs.ErrNotExist if it does not exist.
func (s *Sim) LFS(repo, oid string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[repoKey(repo)]
	if r == nil {
		return nil, fs.ErrNotExist
	}
	return s.lfs.Read(r.ID, oid)
}
