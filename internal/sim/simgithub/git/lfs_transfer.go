package git

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Granted returns the grant of a transfer. It returns false if the header of the request does not permit this method at
// this address.
func (l *LFS) Granted(r *http.Request) (LFSGrant, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, ok := l.grants[r.Header.Get("Authorization")]
	methods := map[string]string{LFSDownload: http.MethodGet, LFSUpload: http.MethodPut, LFSVerify: http.MethodPost}
	return g, ok && l.now().Before(g.ends) && r.Method == methods[g.Action] && r.PathValue("action") == g.Action &&
		r.PathValue("repo") == strconv.FormatInt(g.repo, 10) && r.PathValue("oid") == g.oid
}

// Download serves the granted object.
func (l *LFS) Download(w http.ResponseWriter, r *http.Request, g LFSGrant) {
	f, err := os.Open(l.file(g.repo, g.oid))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// Receive stores or verifies the granted object. It returns nil if size and hash are correct.
func (l *LFS) Receive(r *http.Request, g LFSGrant) *LFSError {
	if g.Action == LFSVerify {
		return l.verify(r, g)
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, g.size+1))
	if err != nil {
		return NewLFSError(http.StatusBadRequest, "the object was cut off")
	}
	sum := sha256.Sum256(data)
	switch {
	case int64(len(data)) != g.size:
		return NewLFSError(http.StatusUnprocessableEntity, "the object has another size")
	case hex.EncodeToString(sum[:]) != g.oid:
		return NewLFSError(http.StatusUnprocessableEntity, "the object has another SHA-256")
	}
	if err := l.store(g.repo, g.oid, data); err != nil {
		return NewLFSError(http.StatusInternalServerError, err.Error())
	}
	return nil
}

func (l *LFS) verify(r *http.Request, g LFSGrant) *LFSError {
	var sent lfsObject
	if err := json.NewDecoder(io.LimitReader(r.Body, maxLFSBatch)).Decode(&sent); err != nil || sent.OID != g.oid || sent.Size != g.size {
		return NewLFSError(http.StatusUnprocessableEntity, "Validation Failed")
	}
	if info, err := os.Stat(l.file(g.repo, g.oid)); err != nil || info.Size() != g.size {
		return NewLFSError(http.StatusNotFound, "Object does not exist on the server")
	}
	return nil
}

func (l *LFS) store(repo int64, oid string, data []byte) error {
	file := l.file(repo, oid)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make folder of large files: %w", err)
	}
	return WriteFile(file, data)
}

// Add stores an object as `git lfs push` does, and returns the pointer file to commit.
func (l *LFS) Add(repo int64, content []byte) (pointer string, err error) {
	sum := sha256.Sum256(content)
	oid := hex.EncodeToString(sum[:])
	if err := l.store(repo, oid, content); err != nil {
		return "", err
	}
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, len(content)), nil
}

// Read returns the content of an object; the error is fs.ErrNotExist if it does not exist.
func (l *LFS) Read(repo int64, oid string) ([]byte, error) {
	if !lfsOID.MatchString(oid) {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(l.file(repo, oid))
}
