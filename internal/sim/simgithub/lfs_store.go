package simgithub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// serveLFSStore is where objects are: GET, PUT and the POST by which an upload is confirmed. Who they are
// for was decided when the address was given out; an address without its header is worth nothing.
func (s *Sim) serveLFSStore(w http.ResponseWriter, r *http.Request) {
	g, ok := s.lfsGranted(r)
	by := r.Clone(r.Context())
	if g.app {
		by.Header.Set("Authorization", "Bearer of the App") // it is the App's request, whatever the header is called
	}
	f := s.admit(by, "git lfs "+r.PathValue("action"), r.URL.Path)
	if f.before(w, r) {
		return
	}
	if !ok {
		status, answer := lfsRefusal(http.StatusForbidden, "Forbidden")
		sayLFS(w, status, answer)
		return
	}
	file := s.lfsFile(g.repo, g.oid)
	if g.action == "download" {
		getLFS(w, r, file)
		return
	}
	status, message := http.StatusOK, ""
	if g.action == "upload" {
		status, message = putLFS(r, file, g)
	} else {
		status, message = verifyLFS(r, file, g)
	}
	if f.after(w, r) {
		return
	}
	if status == http.StatusOK {
		w.WriteHeader(status)
		return
	}
	status, answer := lfsRefusal(status, message)
	sayLFS(w, status, answer)
}

// lfsGranted finds what a request may do: its header has to belong to its address and its method.
func (s *Sim) lfsGranted(r *http.Request) (lfsGrant, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.grants[r.Header.Get("Authorization")]
	methods := map[string]string{"download": http.MethodGet, "upload": http.MethodPut, "verify": http.MethodPost}
	return g, ok && s.cfg.AuthNow().Before(g.ends) && r.Method == methods[g.action] && r.PathValue("action") == g.action &&
		r.PathValue("repo") == strconv.FormatInt(g.repo, 10) && r.PathValue("oid") == g.oid
}

func getLFS(w http.ResponseWriter, r *http.Request, file string) {
	f, err := os.Open(file)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
}

// putLFS takes an object in whose size and hash are what was said.
func putLFS(r *http.Request, file string, g lfsGrant) (status int, message string) {
	data, err := io.ReadAll(io.LimitReader(r.Body, g.size+1))
	if err != nil {
		return http.StatusBadRequest, "the object was cut off"
	}
	sum := sha256.Sum256(data)
	switch {
	case int64(len(data)) != g.size:
		return http.StatusUnprocessableEntity, "the object has another size"
	case hex.EncodeToString(sum[:]) != g.oid:
		return http.StatusUnprocessableEntity, "the object has another SHA-256"
	}
	if err := keepLFS(file, data); err != nil {
		return http.StatusInternalServerError, err.Error()
	}
	return http.StatusOK, ""
}

func verifyLFS(r *http.Request, file string, g lfsGrant) (status int, message string) {
	var said lfsObject
	if err := json.NewDecoder(io.LimitReader(r.Body, maxLFSBatch)).Decode(&said); err != nil || said.OID != g.oid || said.Size != g.size {
		return http.StatusUnprocessableEntity, "Validation Failed"
	}
	if info, err := os.Stat(file); err != nil || info.Size() != g.size {
		return http.StatusNotFound, "Object does not exist on the server"
	}
	return http.StatusOK, ""
}

// keepLFS puts an object in place whole.
func keepLFS(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make folder of large files: %w", err)
	}
	return writeWhole(file, data)
}
