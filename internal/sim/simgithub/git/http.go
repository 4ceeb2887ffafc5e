package git

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// gitPath matches the paths of smart HTTP, with or without ".git" after the name.
var gitPath = regexp.MustCompile(`^/([\w.-]+)/([\w.-]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)$`)

// Request is a request of smart HTTP for the repository OWNER/NAME.
type Request struct {
	Repo string
	path string
	Push bool
	Post bool
}

// ParseRequest parses a request; ok is false if its path is not one of smart HTTP.
func ParseRequest(r *http.Request) (g Request, ok bool) {
	m := gitPath.FindStringSubmatch(r.URL.Path)
	if m == nil {
		return Request{}, false
	}
	g = Request{Repo: m[1] + "/" + m[2], path: "/" + m[3], Post: r.Method == http.MethodPost}
	g.Push = m[3] == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"
	return g, true
}

// Body is the body of a request in a temporary file: git's CGI program needs its length before it starts.
type Body struct{ File *os.File }

// Drop deletes the file.
func (b Body) Drop() {
	_ = b.File.Close()
	_ = os.Remove(b.File.Name()) // best effort: it is in the temporary folder
}

// Spool writes the body of a request to a file and returns its length.
func Spool(w http.ResponseWriter, r *http.Request) (Body, int64, error) {
	f, err := os.CreateTemp("", "simgithub-git-")
	if err != nil {
		return Body{}, 0, fmt.Errorf("make spool file: %w", err)
	}
	b := Body{File: f}
	size, err := io.Copy(f, http.MaxBytesReader(w, r.Body, 1<<30))
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		b.Drop()
		return Body{}, 0, fmt.Errorf("spool request: %w", err)
	}
	return b, size, nil
}

// FindBackend returns the path of git http-backend. It looks for it once per process.
var FindBackend = sync.OnceValues(func() (string, error) {
	out, _, err := runner{home: os.TempDir()}.run(command{dir: os.TempDir(), args: []string{"--exec-path"}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("find git http-backend: %w", err)
	}
	return path, nil
})

// Handler serves a request by git http-backend, with env added to its environment.
func (r *Repository) Handler(g Request, env ...string) http.Handler {
	env = append([]string{"GIT_PROJECT_ROOT=" + r.Dir, "GIT_HTTP_EXPORT_ALL=1"}, env...)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		backend, err := FindBackend()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		req = req.Clone(req.Context())
		req.URL.Path = g.path
		if p := req.Header.Get("Git-Protocol"); p != "" {
			env = append(env, "GIT_PROTOCOL="+p)
		}
		h := &cgi.Handler{Path: backend, Dir: r.Dir, Env: append(r.git.env(), env...), Stderr: io.Discard}
		h.ServeHTTP(w, req)
	})
}
