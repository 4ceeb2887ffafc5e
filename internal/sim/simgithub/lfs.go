package simgithub

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// lfsType is what the API of large files speaks.
const lfsType = "application/vnd.git-lfs+json"

// Bounds of large files. GitHub's own bound of an object is 2 GB and more, by plan.
const (
	maxLFSBatch  = 1 << 20
	maxLFSObject = 2 << 30
	lfsTicket    = 15 * time.Minute // how long an address to down- or upload at is good for
)

// lfsPath is the API of large files, beside smart HTTP; lfsOID is how an object is called.
var (
	lfsPath = regexp.MustCompile(`^/([\w.-]+)/([\w.-]+?)(?:\.git)?/info/lfs/objects/batch$`)
	lfsOID  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func isLFS(path string) bool { return lfsPath.MatchString(path) }

// lfsObject is an object as it is asked for and answered.
type lfsObject struct {
	OID           string               `json:"oid"`
	Size          int64                `json:"size"`
	Authenticated bool                 `json:"authenticated,omitempty"`
	Actions       map[string]lfsAction `json:"actions,omitempty"`
	Error         *lfsProblem          `json:"error,omitempty"`
}

type lfsAction struct {
	Href      string            `json:"href"`
	Header    map[string]string `json:"header"`
	ExpiresIn int               `json:"expires_in"`
}

type lfsProblem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// lfsGrant is what one address to down- or upload at is good for.
type lfsGrant struct {
	action string // download, upload or verify
	repo   int64
	oid    string
	size   int64
	app    bool // given out to the App
	ends   time.Time
}

// serveLFS answers which objects there are, and where to get or put them. They are stored elsewhere, at
// addresses with a header of their own, as on GitHub.
func (s *Sim) serveLFS(w http.ResponseWriter, r *http.Request) {
	f := s.admit(r, "git lfs batch", r.URL.Path)
	if f.before(w, r) {
		return
	}
	status, answer := s.lfsBatch(r)
	if f.after(w, r) {
		return
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("LFS-Authenticate", `Basic realm="GitHub"`)
	}
	sayLFS(w, status, answer)
}

func sayLFS(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client is gone: nobody is left to tell
}

// lfsRefusal is the API's own form of an error.
func lfsRefusal(status int, message string) (int, any) {
	return status, map[string]string{
		"message": message, "documentation_url": "https://docs.github.com/repositories/working-with-files/managing-large-files",
	}
}

func (s *Sim) lfsBatch(r *http.Request) (int, any) {
	if r.Method != http.MethodPost {
		return lfsRefusal(http.StatusNotFound, "Not Found")
	}
	for _, header := range []string{"Accept", "Content-Type"} {
		if kind, _, err := mime.ParseMediaType(r.Header.Get(header)); err != nil || kind != lfsType {
			return lfsRefusal(http.StatusNotAcceptable, header+" must be "+lfsType)
		}
	}
	var ask struct {
		Operation string      `json:"operation"`
		Transfers []string    `json:"transfers"`
		Objects   []lfsObject `json:"objects"`
		HashAlgo  string      `json:"hash_algo"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxLFSBatch)).Decode(&ask); err != nil {
		return lfsRefusal(http.StatusUnprocessableEntity, "Problems parsing JSON")
	}
	switch {
	case ask.Operation != "download" && ask.Operation != "upload":
		return lfsRefusal(http.StatusUnprocessableEntity, "Validation Failed: operation must be download or upload")
	case len(ask.Objects) == 0 || len(ask.Objects) > 1000:
		return lfsRefusal(http.StatusUnprocessableEntity, "Validation Failed: between 1 and 1000 objects")
	case ask.HashAlgo != "" && ask.HashAlgo != "sha256":
		return lfsRefusal(http.StatusConflict, "hash_algo must be sha256")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := lfsPath.FindStringSubmatch(r.URL.Path)
	repo, x, err := s.gitSession(r, gitRequest{repo: m[1] + "/" + m[2], push: ask.Operation == "upload"})
	if err != nil {
		e := &Error{Status: http.StatusInternalServerError, Message: err.Error()}
		_ = errors.As(err, &e)
		return lfsRefusal(e.Status, e.Message)
	}
	answer := make([]lfsObject, 0, len(ask.Objects))
	for _, o := range ask.Objects {
		answer = append(answer, s.lfsAnswer(repo, x, ask.Operation, o))
	}
	return http.StatusOK, map[string]any{"transfer": "basic", "objects": answer, "hash_algo": "sha256"}
}

// lfsAnswer says of one object where to get or put it; neither if it is there already and to be put. It
// needs the lock of the Sim.
func (s *Sim) lfsAnswer(repo *Repo, x *session, operation string, ask lfsObject) lfsObject {
	o := lfsObject{OID: ask.OID, Size: ask.Size, Authenticated: true}
	refuse := func(code int, message string) lfsObject {
		o.Error = &lfsProblem{Code: code, Message: message}
		return o
	}
	if !lfsOID.MatchString(o.OID) || o.Size < 0 || o.Size > maxLFSObject {
		return refuse(http.StatusUnprocessableEntity, "Object is invalid")
	}
	info, err := os.Stat(s.lfsFile(repo.ID, o.OID))
	switch {
	case err == nil && info.Size() != o.Size:
		return refuse(http.StatusUnprocessableEntity, "Object has another size")
	case err == nil && operation == "upload":
		return o
	case err != nil && operation == "download":
		return refuse(http.StatusNotFound, "Object does not exist on the server")
	}
	o.Actions = map[string]lfsAction{operation: s.lfsAction(repo, x, operation, o)}
	if operation == "upload" {
		o.Actions["verify"] = s.lfsAction(repo, x, "verify", o)
	}
	return o
}

func (s *Sim) lfsAction(repo *Repo, x *session, action string, o lfsObject) lfsAction {
	key := "RemoteAuth " + rand.Text()
	s.grants[key] = lfsGrant{action: action, repo: repo.ID, oid: o.OID, size: o.Size, app: x.viaApp(), ends: s.cfg.AuthNow().Add(lfsTicket)}
	return lfsAction{
		Href: fmt.Sprintf("%s/_lfs/%d/%s/%s", s.base, repo.ID, o.OID, action), Header: map[string]string{"Authorization": key},
		ExpiresIn: int(lfsTicket / time.Second),
	}
}

func (s *Sim) lfsFile(repo int64, oid string) string {
	return filepath.Join(s.cfg.Dir, "lfs", fmt.Sprint(repo), oid)
}

// AddLFS puts an object beside a repository as `git lfs push` does, and returns the pointer to commit.
func (s *Sim) AddLFS(repo string, content []byte) (pointer string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[strings.ToLower(repo)]
	if r == nil {
		return "", errNotFound()
	}
	sum := sha256.Sum256(content)
	oid := hex.EncodeToString(sum[:])
	if err := keepLFS(s.lfsFile(r.ID, oid), content); err != nil {
		return "", err
	}
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content)), nil
}

// LFS returns an object of a repository; the error is fs.ErrNotExist if it is not there.
func (s *Sim) LFS(repo, oid string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.repos[strings.ToLower(repo)]
	if r == nil || !lfsOID.MatchString(oid) {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(s.lfsFile(r.ID, oid))
}
