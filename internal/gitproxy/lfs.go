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

// objectsPath is the path of large files within a repository, and lfsType what their API speaks.
const (
	objectsPath = "/info/lfs/objects/"
	lfsType     = "application/vnd.git-lfs+json"
)

// Bounds of large files.
const (
	maxBatch    = 1 << 20 // of a request for many
	maxBatchOut = 8 << 20 // of its answer
	batchTime   = time.Minute
	objectTime  = time.Hour
	redirects   = 3
)

// lfsClient is the large files of one repository.
type lfsClient struct {
	base      string // of the repository
	transport http.RoundTripper
	vmToken   string // the token that the VM showed
}

// lfsObject is an object as it is asked for and answered.
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

// objectPath is an object's path: its id and its size, so that it can be asked for again at any time.
var objectPath = regexp.MustCompile(`^([0-9a-f]{64})/(\d{1,15})$`)

// serveLFS answers what asks for large files: which there are, and one of them. Where they are stored, and
// what has to be shown there, stays on our side: the VM gets addresses of ours.
func (p *Proxy) serveLFS(w http.ResponseWriter, r *http.Request, l lfsClient, rest string) {
	name := objectPath.FindStringSubmatch(rest)
	switch {
	case rest == "batch" && r.Method == http.MethodPost:
		p.serveBatch(w, r, l)
	case name != nil && r.Method == http.MethodGet:
		size, _ := strconv.ParseInt(name[2], 10, 64) // fits: 15 digits
		p.serveObject(w, r, l, lfsObject{OID: name[1], Size: size})
	default:
		lfsError(w, http.StatusForbidden, "large files can be downloaded, and nothing else")
	}
}

// lfsError refuses in the form of the API.
func lfsError(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", lfsType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": "errand: " + message}) // a VM that has gone is nobody's error
}

func (p *Proxy) serveBatch(w http.ResponseWriter, r *http.Request, l lfsClient) {
	var ask lfsBatch
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBatch)).Decode(&ask); err != nil {
		lfsError(w, http.StatusUnprocessableEntity, "the request cannot be read: "+err.Error())
		return
	}
	if ask.Operation != "download" {
		lfsError(w, http.StatusForbidden, "large files can be downloaded, not uploaded")
		return
	}
	ask.Transfers = []string{"basic"}
	answer, status, err := l.batch(r.Context(), ask)
	if err != nil {
		p.cfg.Log.Warn().Err(err).Msg("tether: large files")
		lfsError(w, status, "the large files cannot be read now")
		return
	}
	here := "http://" + r.Host + strings.TrimSuffix(r.URL.Path, "batch")
	for i := range answer.Objects {
		o := &answer.Objects[i]
		_, has := o.Actions["download"]
		o.Actions, o.Authenticated = nil, true
		if has {
			o.Actions = map[string]lfsAction{"download": {
				Href: fmt.Sprintf("%s%s/%d", here, o.OID, o.Size), Header: map[string]string{"Authorization": "Bearer " + l.vmToken},
			}}
		}
	}
	w.Header().Set("Content-Type", lfsType)
	_ = json.NewEncoder(w).Encode(answer) // as above
}

// batch asks the forge where objects are. The status is for the VM if there is an error.
func (l lfsClient) batch(ctx context.Context, ask lfsBatch) (answer lfsBatch, status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	for i := range ask.Objects { // nothing but what the API knows goes further
		ask.Objects[i] = lfsObject{OID: ask.Objects[i].OID, Size: ask.Objects[i].Size}
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return answer, http.StatusInternalServerError, fmt.Errorf("encode the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.base+objectsPath+"batch", bytes.NewReader(body))
	if err != nil {
		return answer, http.StatusInternalServerError, fmt.Errorf("make the request: %w", err)
	}
	req.Header.Set("Accept", lfsType)
	req.Header.Set("Content-Type", lfsType)
	resp, err := l.transport.RoundTrip(req)
	if err != nil {
		return answer, http.StatusBadGateway, fmt.Errorf("ask where large files are: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		status = resp.StatusCode
		if status < 400 || status == http.StatusUnauthorized { // the VM's own token is not what was refused
			status = http.StatusBadGateway
		}
		return answer, status, fmt.Errorf("ask where large files are: status %d", resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBatchOut)).Decode(&answer); err != nil {
		return answer, http.StatusBadGateway, fmt.Errorf("read where large files are: %w", err)
	}
	return answer, http.StatusOK, nil
}

// serveObject passes one object on, or a part of it. Where it is stored is asked anew each time: what
// was answered earlier may have expired, and this process may be another one.
func (p *Proxy) serveObject(w http.ResponseWriter, r *http.Request, l lfsClient, o lfsObject) {
	ctx, cancel := context.WithTimeout(r.Context(), objectTime)
	defer cancel()
	answer, status, err := l.batch(ctx, lfsBatch{Operation: "download", Transfers: []string{"basic"}, Objects: []lfsObject{o}})
	if err == nil && (len(answer.Objects) != 1 || answer.Objects[0].OID != o.OID || answer.Objects[0].Actions["download"].Href == "") {
		status, err = http.StatusNotFound, errors.New("there is no such object")
	}
	var resp *http.Response
	if err == nil {
		status = http.StatusBadGateway
		resp, err = p.fetchObject(ctx, l.base, answer.Objects[0].Actions["download"], r.Header.Get("Range"))
	}
	if err != nil {
		p.cfg.Log.Warn().Err(err).Str("oid", o.OID).Msg("tether: large file")
		lfsError(w, status, "the large file cannot be read now")
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
	_, _ = io.Copy(w, io.LimitReader(resp.Body, o.Size)) // cut short, it is asked for again
}

// fetchObject asks for an object where the forge says that it is: over https, or at the forge's own address.
func (p *Proxy) fetchObject(ctx context.Context, base string, at lfsAction, part string) (*http.Response, error) {
	own, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("read the forge's address: %w", err)
	}
	proper := func(u *url.URL) error {
		if u.Scheme == "https" || u.Scheme == own.Scheme && u.Host == own.Host {
			return nil
		}
		return fmt.Errorf("%s://%s is no place for a large file", u.Scheme, u.Host)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.Href, nil)
	if err == nil {
		err = proper(req.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("read where the object is: %w", err)
	}
	for name, value := range at.Header {
		req.Header.Set(name, value)
	}
	if part != "" {
		req.Header.Set("Range", part)
	}
	req.Header.Set("Accept-Encoding", "identity")
	client := &http.Client{Transport: p.cfg.Transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > redirects {
			return errors.New("too many redirects")
		}
		return proper(r.URL)
	}}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the address may hold a signature, which must not get into the log
		}
		return nil, fmt.Errorf("get the object: %w", err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("get the object: status %d", resp.StatusCode)
	}
	return resp, nil
}
