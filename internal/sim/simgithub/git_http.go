package simgithub

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// gitPath is an address of smart HTTP, with or without ".git" after the name.
var gitPath = regexp.MustCompile(`^/([\w.-]+)/([\w.-]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

func isGit(path string) bool { return gitPath.MatchString(path) }

// gitRequest is a request of smart HTTP after it was understood.
type gitRequest struct {
	repo string
	path string
	push bool
	post bool
}

func parseGit(r *http.Request) gitRequest {
	m := gitPath.FindStringSubmatch(r.URL.Path)
	g := gitRequest{repo: m[1] + "/" + m[2], path: "/" + m[3], post: r.Method == http.MethodPost}
	g.push = m[3] == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	return g
}

// serveGit serves clone, fetch and push by git's own http-backend.
func (s *Sim) serveGit(w http.ResponseWriter, r *http.Request) {
	g := parseGit(r)
	name := "git upload-pack"
	if g.push {
		name = "git receive-pack"
	}
	f := s.admit(r, name, r.URL.Path)
	if f.before(w, r) {
		return
	}
	body, size, err := spool(w, r)
	if err != nil {
		http.Error(w, "read request: "+err.Error(), http.StatusBadRequest)
		return
	}
	defer body.drop()
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(body.file), size, nil
	if g.push && g.post {
		rec := httptest.NewRecorder()
		s.push(rec, r, g)
		if f.after(w, r) {
			return
		}
		copyAnswer(w, rec)
		return
	}
	repo, who, err := s.gitAccess(r, g)
	if err != nil {
		refuseGit(w, err)
		return
	}
	s.backend(repo, g, who).ServeHTTP(w, r)
}

// spooled is a request's body on disk: git's CGI needs to know its length before it starts.
type spooled struct{ file *os.File }

func (b spooled) drop() {
	_ = b.file.Close()
	_ = os.Remove(b.file.Name()) // best effort: it is a temporary file
}

func spool(w http.ResponseWriter, r *http.Request) (spooled, int64, error) {
	f, err := os.CreateTemp("", "simgithub-git-")
	if err != nil {
		return spooled{}, 0, fmt.Errorf("make spool file: %w", err)
	}
	b := spooled{file: f}
	size, err := io.Copy(f, http.MaxBytesReader(w, r.Body, 1<<30))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		b.drop()
		return spooled{}, 0, fmt.Errorf("spool request: %w", err)
	}
	return b, size, nil
}

// gitAccess decides about a git request and tells whom the backend serves.
func (s *Sim) gitAccess(r *http.Request, g gitRequest) (*Repo, *session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gitSession(r, g)
}

// gitSession needs the lock of the Sim.
func (s *Sim) gitSession(r *http.Request, g gitRequest) (*Repo, *session, error) {
	x := s.authenticate(r)
	if x.bad != nil {
		return nil, nil, x.bad
	}
	repo, err := x.repo(g.repo)
	if err != nil {
		if x.by == nil {
			return nil, nil, errNeedAuth() // GitHub asks for credentials before it says that there is nothing
		}
		return nil, nil, err
	}
	if g.push {
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

// backend is git http-backend for one repository.
func (s *Sim) backend(repo *Repo, g gitRequest, x *session) http.Handler {
	env := []string{
		"GIT_PROJECT_ROOT=" + repo.Dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=" + x.login(),
	}
	if x.viaApp() && levelRank(x.tok.perms["workflows"]) < levelRank("write") {
		env = append(env, "SIM_NO_WORKFLOWS=1")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.URL.Path = g.path
		if p := r.Header.Get("Git-Protocol"); p != "" {
			env = append(env, "GIT_PROTOCOL="+p)
		}
		h := &cgi.Handler{
			Path: s.git.backend, Dir: repo.Dir, Root: "", Env: append(s.git.env(), env...), Stderr: io.Discard,
		}
		h.ServeHTTP(w, r)
	})
}

// findBackend locates git http-backend, once per process.
var findBackend = sync.OnceValues(func() (string, error) {
	out, _, err := gitRunner{home: os.TempDir()}.run(gitCmd{dir: os.TempDir(), args: []string{"--exec-path"}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find git http-backend: %w", err)
	}
	return path, nil
})

// push receives a push under the lock, then does all that follows from the references that moved.
func (s *Sim) push(w http.ResponseWriter, r *http.Request, g gitRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo, x, err := s.gitSession(r, g)
	if err != nil {
		refuseGit(w, err)
		return
	}
	before, err := s.git.refs(repo, "refs/")
	if err != nil {
		refuseGit(w, err)
		return
	}
	s.backend(repo, g, x).ServeHTTP(w, r)
	after, err := s.git.refs(repo, "refs/")
	if err != nil {
		s.log.Error().Err(err).Msg("list references after a push")
		return
	}
	for _, c := range moved(before, after) {
		if err := x.refMoved(repo, c.Name, c.Before, c.After); err != nil {
			s.log.Error().Err(err).Str("ref", c.Name).Msg("follow a push")
		}
	}
}

// moved lists how references differ between two listings.
func moved(before, after []gitRef) []refChange {
	old := map[string]string{}
	for _, f := range before {
		old[f.Name] = f.SHA
	}
	var list []refChange
	for _, f := range after {
		was, ok := old[f.Name]
		delete(old, f.Name)
		if !ok {
			was = zeroSHA
		}
		if was != f.SHA {
			list = append(list, refChange{Name: f.Name, Before: was, After: f.SHA})
		}
	}
	for _, f := range before {
		if sha, gone := old[f.Name]; gone {
			list = append(list, refChange{Name: f.Name, Before: sha, After: zeroSHA})
		}
	}
	return list
}

func copyAnswer(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // the client is gone: nobody is left to tell
}

// preReceive refuses what GitHub refuses: its own references, and workflow files by Apps that may not touch them.
const preReceive = `#!/bin/sh
zero=0000000000000000000000000000000000000000
while read -r old new ref; do
	case "$ref" in
	refs/pull/*)
		echo "deny updating a hidden ref: $ref" >&2
		exit 1 ;;
	esac
	if [ -z "$SIM_NO_WORKFLOWS" ] || [ "$new" = "$zero" ]; then
		continue
	fi
	file=$(git log --format= --name-only -m "$new" --not --all -- .github/workflows | head -n 1)
	if [ -n "$file" ]; then
		echo "refusing to allow a GitHub App to create or update workflow \` + "`$file\\`" + ` without \` + "`workflows\\`" + ` permission" >&2
		exit 1
	fi
done
exit 0
`

func writeHook(r *Repo) error {
	dir := filepath.Join(r.Dir, "hooks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make hooks folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pre-receive"), []byte(preReceive), 0o755); err != nil {
		return fmt.Errorf("write hook: %w", err)
	}
	return nil
}
