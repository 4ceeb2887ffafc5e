package simgithub

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
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

// The actions of a transfer.
const (
	lfsDownload = "download"
	lfsUpload   = "upload"
	lfsVerify   = "verify"
)

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

// lfsError is a refusal, with the status code that goes with it.
type lfsError struct {
	Status  int
	Message string
}

func (e *lfsError) Error() string { return e.Message }

// lfsFailure makes an lfsError.
func lfsFailure(status int, message string) *lfsError {
	return &lfsError{Status: status, Message: message}
}

// lfsGrant is what the address of one transfer permits.
type lfsGrant struct {
	action string // Download, Upload or Verify
	repo   int64
	oid    string
	size   int64
	app    bool // issued to the App
	ends   time.Time
}

// lfsServer keeps large files and permits their transfer. As on GitHub, a batch request names the objects, and its answer has
// an address and a header for each of them.
type lfsServer struct {
	dir string
	now func() time.Time

	mu     sync.Mutex
	grants map[string]lfsGrant // by the header that has to be sent
}

func newLFSServer(dir string, now func() time.Time) *lfsServer {
	return &lfsServer{dir: dir, now: now, grants: map[string]lfsGrant{}}
}

// lfsBatch is a batch request.
type lfsBatch struct {
	Repo      string      `json:"-"` // OWNER/NAME
	Operation string      `json:"operation"`
	Objects   []lfsObject `json:"objects"`
	HashAlgo  string      `json:"hash_algo"`
}

// isLFS reports whether a path is the address of batch requests.
func isLFS(path string) bool { return lfsPath.MatchString(path) }

// parseLFSBatch reads a batch request, whose path has to be such an address.
func parseLFSBatch(r *http.Request) (b lfsBatch, refused *lfsError) {
	if r.Method != http.MethodPost {
		return b, lfsFailure(http.StatusNotFound, "Not Found")
	}
	for _, header := range []string{"Accept", "Content-Type"} {
		if kind, _, err := mime.ParseMediaType(r.Header.Get(header)); err != nil || kind != lfsType {
			return b, lfsFailure(http.StatusNotAcceptable, header+" must be "+lfsType)
		}
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxLFSBatch)).Decode(&b); err != nil {
		return b, lfsFailure(http.StatusUnprocessableEntity, "Problems parsing JSON")
	}
	switch {
	case b.Operation != lfsDownload && b.Operation != lfsUpload:
		return b, lfsFailure(http.StatusUnprocessableEntity, "Validation Failed: operation must be download or upload")
	case len(b.Objects) == 0 || len(b.Objects) > 1000:
		return b, lfsFailure(http.StatusUnprocessableEntity, "Validation Failed: between 1 and 1000 objects")
	case b.HashAlgo != "" && b.HashAlgo != "sha256":
		return b, lfsFailure(http.StatusConflict, "hash_algo must be sha256")
	}
	m := lfsPath.FindStringSubmatch(r.URL.Path)
	b.Repo = m[1] + "/" + m[2]
	return b, nil
}

// lfsClient is who sent a batch request.
type lfsClient struct {
	repo int64
	app  bool
	base string // address under which transfers are served
}

// answer permits the transfers that a batch asks for.
func (l *lfsServer) answer(b lfsBatch, by lfsClient) any {
	objects := make([]lfsObject, 0, len(b.Objects))
	for _, o := range b.Objects {
		objects = append(objects, l.object(b.Operation, o, by))
	}
	return map[string]any{"transfer": "basic", "objects": objects, "hash_algo": "sha256"}
}

// object returns the transfers of one object; there are none if it is to be uploaded and already there.
func (l *lfsServer) object(operation string, asked lfsObject, by lfsClient) lfsObject {
	o := lfsObject{OID: asked.OID, Size: asked.Size, Authenticated: true}
	refuse := func(code int, message string) lfsObject {
		o.Error = &lfsProblem{Code: code, Message: message}
		return o
	}
	if !lfsOID.MatchString(o.OID) || o.Size < 0 || o.Size > maxLFSObject {
		return refuse(http.StatusUnprocessableEntity, "Object is invalid")
	}
	info, err := os.Stat(l.file(by.repo, o.OID))
	switch {
	case err == nil && info.Size() != o.Size:
		return refuse(http.StatusUnprocessableEntity, "Object has another size")
	case err == nil && operation == lfsUpload:
		return o
	case err != nil && operation == lfsDownload:
		return refuse(http.StatusNotFound, "Object does not exist on the server")
	}
	o.Actions = map[string]lfsAction{operation: l.permit(operation, o, by)}
	if operation == lfsUpload {
		o.Actions[lfsVerify] = l.permit(lfsVerify, o, by)
	}
	return o
}

// permit issues the address and the header of one transfer.
func (l *lfsServer) permit(action string, o lfsObject, by lfsClient) lfsAction {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := "RemoteAuth " + rand.Text()
	l.grants[key] = lfsGrant{action: action, repo: by.repo, oid: o.OID, size: o.Size, app: by.app, ends: l.now().Add(lfsTicket)}
	return lfsAction{
		Href: fmt.Sprintf("%s/_lfs/%d/%s/%s", by.base, by.repo, o.OID, action), Header: map[string]string{"Authorization": key},
		ExpiresIn: int(lfsTicket / time.Second),
	}
}

func (l *lfsServer) file(repo int64, oid string) string {
	return filepath.Join(l.dir, fmt.Sprint(repo), oid)
}

// writeLFS answers a request.
func writeLFS(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has disconnected
}

// writeLFSError answers a request that is refused, in the API's own form.
func writeLFSError(w http.ResponseWriter, e *lfsError) {
	writeLFS(w, e.Status, map[string]string{
		"message": e.Message, "documentation_url": "https://docs.github.com/repositories/working-with-files/managing-large-files",
	})
}
