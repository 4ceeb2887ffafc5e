package simgithub

import (
	"errors"
	"io/fs"
	"net/http"
)

// serveLFS answers batch requests: which large files there are, and where to download or upload them.
func (s *Sim) serveLFS(w http.ResponseWriter, r *http.Request) {
	f := s.admit(r, "git lfs batch", r.URL.Path)
	if f.before(w, r) {
		return
	}
	answer, err := s.lfsBatch(r)
	if f.after(w, r) {
		return
	}
	if err == nil {
		writeLFS(w, http.StatusOK, answer)
		return
	}
	if err.Status == http.StatusUnauthorized {
		w.Header().Set("LFS-Authenticate", `Basic realm="GitHub"`)
	}
	writeLFSError(w, err)
}

func (s *Sim) lfsBatch(r *http.Request) (any, *lfsError) {
	b, err := parseLFSBatch(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	repo, x, refused := s.gitSession(r, gitRequest{repo: b.Repo, push: b.Operation == lfsUpload})
	if refused != nil {
		e := &Error{Status: http.StatusInternalServerError, Message: refused.Error()}
		_ = errors.As(refused, &e)
		return nil, lfsFailure(e.Status, e.Message)
	}
	return s.lfs.answer(b, lfsClient{repo: repo.ID, app: x.viaApp(), base: s.base}), nil
}

// serveLFSTransfer serves downloads, uploads and their verification at the addresses that the answer to a batch request
// names. A request without the header of its address is refused.
func (s *Sim) serveLFSTransfer(w http.ResponseWriter, r *http.Request) {
	g, ok := s.lfs.granted(r)
	by := r.Clone(r.Context())
	if g.app {
		by.Header.Set("Authorization", "Bearer of the App") // the App sent it, although the header is not the App's token
	}
	f := s.admit(by, "git lfs "+r.PathValue("action"), r.URL.Path)
	if f.before(w, r) {
		return
	}
	switch {
	case !ok:
		writeLFSError(w, lfsFailure(http.StatusForbidden, "Forbidden"))
		return
	case g.action == lfsDownload:
		s.lfs.download(w, r, g)
		return
	}
	err := s.lfs.receive(r, g)
	switch {
	case f.after(w, r):
	case err != nil:
		writeLFSError(w, err)
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
	return s.lfs.add(r.ID, content)
}

// LFS returns a large file of a repository; the error is fs.ErrNotExist if it does not exist.
func (s *Sim) LFS(repo, oid string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[repoKey(repo)]
	if r == nil {
		return nil, fs.ErrNotExist
	}
	return s.lfs.read(r.ID, oid)
}
