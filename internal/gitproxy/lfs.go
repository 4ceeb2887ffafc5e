package gitproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The path of Git LFS objects within a repository, and the media type of the LFS API.
const (
	objectsPath = "/info/lfs/objects/"
	lfsType     = "application/vnd.git-lfs+json"
)

// Limits of the LFS API.
const (
	maxBatch      = 1 << 20 // bytes of a batch request
	maxBatchOut   = 8 << 20 // bytes of its answer
	batchTimeout  = time.Minute
	objectTimeout = time.Hour
	maxRedirects  = 3
)

// lfsClient calls the LFS API of one repository.
type lfsClient struct {
	base      string // the repository's URL
	transport http.RoundTripper
	vmToken   string // the token of the VM's request
}

// lfsObject is an object in requests and answers of the LFS API.
type lfsObject struct {
	OID           string               `json:"oid"`
	Size          int64                `json:"size"`
	Authenticated bool                 `json:"authenticated,omitempty"`
	Actions       map[string]lfsAction `json:"actions,omitempty"`
	Error         json.RawMessage      `json:"error,omitempty"`
}

type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header,omitempty"`
}

type lfsBatch struct {
	Operation string          `json:"operation,omitempty"`
	Transfer  string          `json:"transfer,omitempty"`
	Transfers []string        `json:"transfers,omitempty"`
	Ref       json.RawMessage `json:"ref,omitempty"`
	Objects   []lfsObject     `json:"objects"`
	HashAlgo  string          `json:"hash_algo,omitempty"`
}

// objectPath matches the path of an object: its ID and size, so that it can be requested again at any time.
var objectPath = regexp.MustCompile(`^([0-9a-f]{64})/(\d{1,15})$`)

// serveLFS answers batch requests and downloads of objects. The VM gets URLs of errand: the addresses and credentials
// of the storage stay on this side.
func (p *Proxy) serveLFS(w http.ResponseWriter, r *http.Request, l lfsClient, rest string) {
	name := objectPath.FindStringSubmatch(rest)
	switch {
	case rest == "batch" && r.Method == http.MethodPost:
		p.serveBatch(w, r, l)
	case name != nil && r.Method == http.MethodGet:
		size, _ := strconv.ParseInt(name[2], 10, 64) // fits: 15 digits
		p.serveObject(w, r, l, lfsObject{OID: name[1], Size: size})
	default:
		lfsError(w, http.StatusForbidden, "LFS objects can only be downloaded")
	}
}

// lfsError answers with an error in the form of the API.
func lfsError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": "errand: " + message}) // an error means that the VM has disconnected
}

// serveBatch answers a batch request with URLs of errand.
func (p *Proxy) serveBatch(w http.ResponseWriter, r *http.Request, l lfsClient) {
	var request lfsBatch
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBatch)).Decode(&request); err != nil {
		lfsError(w, http.StatusUnprocessableEntity, "the request cannot be read: "+err.Error())
		return
	}
	if request.Operation != "download" {
		lfsError(w, http.StatusForbidden, "LFS objects can only be downloaded, not uploaded")
		return
	}
	request.Transfers = []string{"basic"}
	answer, status, err := l.requestBatch(r.Context(), request)
	if err != nil {
		p.cfg.Log.Warn().Err(err).Msg("failed to look up LFS objects")
		lfsError(w, status, "the LFS objects cannot be read now")
		return
	}
	base := "http://" + r.Host + strings.TrimSuffix(r.URL.Path, "batch")
	for i := range answer.Objects {
		o := &answer.Objects[i]
		_, has := o.Actions["download"]
		o.Actions, o.Authenticated = nil, true
		if has {
			o.Actions = map[string]lfsAction{"download": {
				Href: fmt.Sprintf("%s%s/%d", base, o.OID, o.Size), Header: map[string]string{"Authorization": "Bearer " + l.vmToken},
			}}
		}
	}
	w.Header().Set("Content-Type", lfsType)
	_ = json.NewEncoder(w).Encode(answer) // as above
}

// requestBatch asks the forge for the addresses of objects. After an error, status is the status of the answer to the
// VM.
func (l lfsClient) requestBatch(ctx context.Context, request lfsBatch) (answer lfsBatch, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTimeout)
	defer cancel()
	for i := range request.Objects { // only known fields are forwarded
		request.Objects[i] = lfsObject{OID: request.Objects[i].OID, Size: request.Objects[i].Size}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return answer, http.StatusInternalServerError, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base+objectsPath+"batch", bytes.NewReader(body))
	if err != nil {
		return answer, http.StatusInternalServerError, fmt.Errorf("create the request: %w", err)
	}
	req.Header.Set("Accept", lfsType)
	req.Header.Set("Content-Type", lfsType)
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		return answer, http.StatusBadGateway, fmt.Errorf("look up LFS objects: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		status = resp.StatusCode
		if status < 400 || status == http.StatusUnauthorized { // the forge did not refuse the VM's own token
			status = http.StatusBadGateway
		}
		return answer, status, fmt.Errorf("look up LFS objects: status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBatchOut)).Decode(&answer); err != nil {
		return answer, http.StatusBadGateway, fmt.Errorf("decode the addresses of LFS objects: %w", err)
	}
	return answer, http.StatusOK, nil
}

// serveObject forwards an object or a part of it. It looks up the address each time, because an earlier one may have
// expired or belong to an earlier process.
func (p *Proxy) serveObject(w http.ResponseWriter, r *http.Request, l lfsClient, o lfsObject) {
	ctx, cancel := context.WithTimeout(r.Context(), objectTimeout)
	defer cancel()
	answer, status, err := l.requestBatch(ctx, lfsBatch{Operation: "download", Transfers: []string{"basic"}, Objects: []lfsObject{o}})
	if err == nil && (len(answer.Objects) != 1 || answer.Objects[0].OID != o.OID || answer.Objects[0].Actions["download"].Href == "") {
		status, err = http.StatusNotFound, errors.New("the object does not exist")
	}
	var resp *http.Response
	if err == nil {
		status = http.StatusBadGateway
		resp, err = p.fetchObject(ctx, l.base, answer.Objects[0].Actions["download"], r.Header.Get("Range"))
	}
	if err != nil {
		p.cfg.Log.Warn().Err(err).Str("oid", o.OID).Msg("failed to read an LFS object")
		lfsError(w, status, "the LFS object cannot be read now")
		return
	}
	defer func() { _ = resp.Body.Close() }()
	for _, name := range []string{"Content-Length", "Content-Range", "Accept-Ranges"} {
		if v := resp.Header.Get(name); v != "" {
			w.Header().Set(name, v)
		}
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, io.LimitReader(resp.Body, o.Size)) // git-lfs requests the rest again after an error
}

// fetchObject requests an object from the address that the forge returned: over HTTPS, or from the forge's own host.
func (p *Proxy) fetchObject(ctx context.Context, base string, at lfsAction, part string) (*http.Response, error) {
	own, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("parse the forge's address: %w", err)
	}
	check := func(u *url.URL) error {
		if u.Scheme == "https" || u.Scheme == own.Scheme && u.Host == own.Host {
			return nil
		}
		return fmt.Errorf("LFS objects are not read from %s://%s", u.Scheme, u.Host)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Href, nil)
	if err == nil {
		err = check(req.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("parse the address of an LFS object: %w", err)
	}
	for name, value := range at.Header {
		req.Header.Set(name, value)
	}
	if part != "" {
		req.Header.Set("Range", part)
	}
	req.Header.Set("Accept-Encoding", "identity")
	client := &http.Client{Transport: p.cfg.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return check(r.URL)
	}}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the address may contain a signature, which must not be logged
		}
		return nil, fmt.Errorf("get an LFS object: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("get an LFS object: status %d", resp.StatusCode)
	}
	return resp, nil
}
