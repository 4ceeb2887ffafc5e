package simgithub

import (
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// serve serves clone, fetch and push by git http-backend.
func (gs gitServer) serve(w http.ResponseWriter, r *http.Request, g git.Request) {
	name := "git upload-pack"
	if g.Push {
		name = "git receive-pack"
	}
	f := gs.s.admit(r, name, r.URL.Path)
	if f.before(w, r) {
		return
	}
	body, size, err := git.Spool(w, r)
	if err != nil {
		http.Error(w, "read request: "+err.Error(), http.StatusBadRequest)
		return
	}
	defer body.Drop()
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(body.File), size, nil
	if g.Push && g.Post {
		rec := httptest.NewRecorder()
		gs.push(rec, r, g)
		if f.after(w, r) {
			return
		}
		copyAnswer(w, rec)
		return
	}
	repo, who, err := gs.access(r, g)
	if err != nil {
		refuseGit(w, err)
		return
	}
	backend(repo, g, who).ServeHTTP(w, r)
}

// access returns the repository and the session of a git request, or an error if it is not permitted.
func (gs gitServer) access(r *http.Request, g git.Request) (*Repo, *session, error) {
	gs.s.mu.Lock()
	defer gs.s.mu.Unlock()
	return gs.session(r, g)
}

// session does the same. It needs the lock of the Sim.
func (gs gitServer) session(r *http.Request, g git.Request) (*Repo, *session, error) {
	x := gs.s.auth.session(r)
	if x.bad != nil {
		return nil, nil, x.bad
	}
	repo, err := x.repo(g.Repo)
	if err != nil {
		if x.by == nil {
			return nil, nil, errNeedAuth() // GitHub requests credentials before it reports a missing repository
		}
		return nil, nil, err
	}
	if g.Push {
		return repo, x, x.need(repo, "contents", "write", RoleWrite)
	}
	if x.viaApp() && !repo.Private {
		return repo, x, nil
	}
	return repo, x, x.need(repo, "contents", "read", RoleRead)
}

func refuseGit(w http.ResponseWriter, err error) {
	e, ok := err.(*Error)
	if !ok {
		e = &Error{Status: http.StatusInternalServerError, Message: err.Error()}
	}
	if e.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
	}
	http.Error(w, e.Message, e.Status)
}

// backend serves a git request for an actor.
func backend(repo *Repo, g git.Request, x *session) http.Handler {
	env := []string{"REMOTE_USER=" + x.login()}
	if x.viaApp() && levelRank(x.tok.perms["workflows"]) < levelRank("write") {
		env = append(env, git.NoWorkflows)
	}
	return repo.Git.Handler(g, env...)
}

// push receives a push and applies the consequences of the moved references, both with the lock of the Sim.
func (gs gitServer) push(w http.ResponseWriter, r *http.Request, g git.Request) {
	gs.s.mu.Lock()
	defer gs.s.mu.Unlock()
	repo, x, err := gs.session(r, g)
	if err != nil {
		refuseGit(w, err)
		return
	}
	before, err := repo.Git.Refs("refs/")
	if err != nil {
		refuseGit(w, err)
		return
	}
	backend(repo, g, x).ServeHTTP(w, r)
	after, err := repo.Git.Refs("refs/")
	if err != nil {
		gs.s.log.Error().Err(err).Msg("failed to list references after a push")
		return
	}
	for _, c := range git.Moved(before, after) {
		if err := x.refs().moved(repo, c.Name, c.Before, c.After); err != nil {
			gs.s.log.Error().Err(err).Str("ref", c.Name).Msg("failed to apply the consequences of a push")
		}
	}
}

func copyAnswer(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // the client has disconnected
}
