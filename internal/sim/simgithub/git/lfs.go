package git

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

// lfsType is the media type of the Git LFS API.
const lfsType = "application/vnd.git-lfs+json"

// Limits. GitHub's own limit of an object is 2 GB or more, depending on the plan.
const (
	maxLFSBatch  = 1 << 20
	maxLFSObject = 2 << 30
	lfsTicket    = 15 * time.Minute // lifetime of a grant
)

// lfsPath matches the path of batch requests, and lfsOID the id of an object.
var (
	lfsPath = regexp.MustCompile(`^/([\w.-]+)/([\w.-]+?)(?:\.git)?/info/lfs/objects/batch$`)
	lfsOID  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// The actions of a transfer.
const (
	LFSDownload = "download"
	LFSUpload   = "upload"
	LFSVerify   = "verify"
)

// lfsObject is an object of a batch request or of its answer.
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

// An LFSError is the reason to refuse a request.
type LFSError struct {
	Status  int
	Message string
}

func (e *LFSError) Error() string { return e.Message }

// NewLFSError returns an LFSError.
func NewLFSError(status int, message string) *LFSError {
	return &LFSError{Status: status, Message: message}
}

// An LFSGrant permits one transfer.
type LFSGrant struct {
	Action string // Download, Upload or Verify
	repo   int64
	oid    string
	size   int64
	App    bool // issued to the App
	ends   time.Time
}

// LFS keeps the large files of all repositories and serves their transfers. As on GitHub, a batch request names the
// objects, and its answer has an address and a header for each transfer.
type LFS struct {
	dir string
	now func() time.Time

	mu     sync.Mutex
	grants map[string]LFSGrant // by the required header
}

// NewLFS keeps large files in dir, which is created with the first of them. Grants expire by the clock now.
func NewLFS(dir string, now func() time.Time) *LFS {
	return &LFS{dir: dir, now: now, grants: map[string]LFSGrant{}}
}

// LFSBatch is a batch request.
type LFSBatch struct {
	Repo      string      `json:"-"` // OWNER/NAME
	Operation string      `json:"operation"`
	Objects   []lfsObject `json:"objects"`
	HashAlgo  string      `json:"hash_algo"`
}

// IsLFS reports whether a path is that of batch requests.
func IsLFS(path string) bool { return lfsPath.MatchString(path) }

// ParseLFSBatch parses a batch request, for whose path IsLFS is true.
func ParseLFSBatch(r *http.Request) (b LFSBatch, refused *LFSError) {
	if r.Method != http.MethodPost {
		return b, NewLFSError(http.StatusNotFound, "Not Found")
	}
	for _, header := range []string{"Accept", "Content-Type"} {
		if kind, _, err := mime.ParseMediaType(r.Header.Get(header)); err != nil || kind != lfsType {
			return b, NewLFSError(http.StatusNotAcceptable, header+" must be "+lfsType)
		}
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxLFSBatch)).Decode(&b); err != nil {
		return b, NewLFSError(http.StatusUnprocessableEntity, "Problems parsing JSON")
	}
	switch {
	case b.Operation != LFSDownload && b.Operation != LFSUpload:
		return b, NewLFSError(http.StatusUnprocessableEntity, "Validation Failed: operation must be download or upload")
	case len(b.Objects) == 0 || len(b.Objects) > 1000:
		return b, NewLFSError(http.StatusUnprocessableEntity, "Validation Failed: between 1 and 1000 objects")
	case b.HashAlgo != "" && b.HashAlgo != "sha256":
		return b, NewLFSError(http.StatusConflict, "hash_algo must be sha256")
	}
	m := lfsPath.FindStringSubmatch(r.URL.Path)
	b.Repo = m[1] + "/" + m[2]
	return b, nil
}

// LFSClient is the sender of a batch request.
type LFSClient struct {
	Repo int64
	App  bool
	Base string // base address of the transfers
}

// Answer grants the transfers that a batch requests and returns the body of the answer.
func (l *LFS) Answer(b LFSBatch, by LFSClient) any {
	objects := make([]lfsObject, 0, len(b.Objects))
	for _, o := range b.Objects {
		objects = append(objects, l.object(b.Operation, o, by))
	}
	return map[string]any{"transfer": "basic", "objects": objects, "hash_algo": "sha256"}
}

// object grants the transfers of one object. There are none if an upload is requested and the object exists already.
func (l *LFS) object(operation string, asked lfsObject, by LFSClient) lfsObject {
	o := lfsObject{OID: asked.OID, Size: asked.Size, Authenticated: true}
	refuse := func(code int, message string) lfsObject {
		o.Error = &lfsProblem{Code: code, Message: message}
		return o
	}
	if !lfsOID.MatchString(o.OID) || o.Size < 0 || o.Size > maxLFSObject {
		return refuse(http.StatusUnprocessableEntity, "Object is invalid")
	}
	info, err := os.Stat(l.file(by.Repo, o.OID))
	switch {
	case err == nil && info.Size() != o.Size:
		return refuse(http.StatusUnprocessableEntity, "Object has another size")
	case err == nil && operation == LFSUpload:
		return o
	case err != nil && operation == LFSDownload:
		return refuse(http.StatusNotFound, "Object does not exist on the server")
	}
	o.Actions = map[string]lfsAction{operation: l.permit(operation, o, by)}
	if operation == LFSUpload {
		o.Actions[LFSVerify] = l.permit(LFSVerify, o, by)
	}
	return o
}

// permit returns the address and the header of one transfer.
func (l *LFS) permit(action string, o lfsObject, by LFSClient) lfsAction {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := "RemoteAuth " + rand.Text()
	l.grants[key] = LFSGrant{Action: action, repo: by.Repo, oid: o.OID, size: o.Size, App: by.App, ends: l.now().Add(lfsTicket)}
	return lfsAction{
		Href: fmt.Sprintf("%s/_lfs/%d/%s/%s", by.Base, by.Repo, o.OID, action), Header: map[string]string{"Authorization": key},
		ExpiresIn: int(lfsTicket / time.Second),
	}
}

func (l *LFS) file(repo int64, oid string) string {
	return filepath.Join(l.dir, fmt.Sprint(repo), oid)
}

// WriteLFS writes the answer to a batch request.
func WriteLFS(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client has disconnected
}

// WriteLFSError writes a refusal in the API's format.
func WriteLFSError(w http.ResponseWriter, e *LFSError) {
	WriteLFS(w, e.Status, map[string]string{
		"message": e.Message, "documentation_url": "https://docs.github.com/repositories/working-with-files/managing-large-files",
	})
}
