package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge/client"
)

// lfsType is the media type of the Git LFS API.
const lfsType = "application/vnd.git-lfs+json"

// Limits of requests to the Git LFS API.
const (
	lfsPerBatch    = 100
	maxLFSResponse = 8 << 20
	lfsBatchTime   = time.Minute
	lfsUploadTime  = 15 * time.Minute // of one object
)

// lfsObject is an object in a request or a response.
type lfsObject struct {
	OID     string               `json:"oid"`
	Size    int64                `json:"size"`
	Actions map[string]lfsAction `json:"actions,omitempty"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// lfsAction is an address for an upload, download or verification.
type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header,omitempty"`
}

// largeFiles calls the Git LFS API of one repository with a token.
type largeFiles struct {
	cfg   client.Config
	url   string
	token string
}

// largeFiles returns the Git LFS API of a repository.
func (p *Publisher) largeFiles(r client.Repo, token string) *largeFiles {
	return &largeFiles{cfg: p.client.Config(), url: p.client.GitURL(r) + "/info/lfs/objects/batch", token: token}
}

// batch requests an operation on objects, and returns the response for each of them.
func (l *largeFiles) batch(ctx context.Context, operation string, list []changeset.Pointer) (map[changeset.Pointer]lfsObject, error) {
	all := map[changeset.Pointer]lfsObject{}
	for part := range slices.Chunk(list, lfsPerBatch) {
		request := struct {
			Operation string      `json:"operation"`
			Transfers []string    `json:"transfers"`
			Objects   []lfsObject `json:"objects"`
			HashAlgo  string      `json:"hash_algo"`
		}{Operation: operation, Transfers: []string{"basic"}, HashAlgo: "sha256"}
		for _, p := range part {
			request.Objects = append(request.Objects, lfsObject{OID: p.OID, Size: p.Size})
		}
		var response struct {
			Transfer string      `json:"transfer"`
			Objects  []lfsObject `json:"objects"`
		}
		if err := l.post(ctx, request, &response); err != nil {
			return nil, fmt.Errorf("request large files: %w", err)
		}
		if response.Transfer != "" && response.Transfer != "basic" {
			return nil, errors.New("request large files: GitHub chose a transfer that was not offered")
		}
		for _, o := range response.Objects {
			all[changeset.Pointer{OID: o.OID, Size: o.Size}] = o
		}
	}
	return all, nil
}

// post sends a request to the batch endpoint and decodes its response.
func (l *largeFiles) post(ctx context.Context, request, response any) error {
	ctx, cancel := context.WithTimeout(ctx, lfsBatchTime)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.SetBasicAuth("x-access-token", l.token)
	req.Header.Set("Accept", lfsType)
	req.Header.Set("Content-Type", lfsType)
	resp, err := l.send(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLFSResponse)).Decode(response); err != nil {
		return fmt.Errorf("read response: %w", err)
	}
	return nil
}

// upload sends one object to the address in the response, if any, and verifies it.
func (l *largeFiles) upload(ctx context.Context, o lfsObject, content []byte) error {
	if o.Error != nil {
		return &LargeFileError{OID: o.OID, Code: o.Error.Code, Message: o.Error.Message}
	}
	at, wanted := o.Actions["upload"]
	if !wanted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lfsUploadTime)
	defer cancel()
	if err := l.put(ctx, http.MethodPut, at, "application/octet-stream", content); err != nil {
		return err
	}
	verify, wanted := o.Actions["verify"]
	if !wanted {
		return nil
	}
	body, err := json.Marshal(lfsObject{OID: o.OID, Size: o.Size})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := l.put(ctx, http.MethodPost, verify, lfsType, body); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// put sends a body to the address of an action, if that is safe.
func (l *largeFiles) put(ctx context.Context, method string, at lfsAction, kind string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, at.Href, bytes.NewReader(body))
	if err != nil {
		return errors.New("GitHub returned an invalid address") // err would contain it, with its signature
	}
	own, err := url.Parse(l.cfg.WebURL)
	if err != nil {
		return fmt.Errorf("read GitHub's address: %w", err)
	}
	if req.URL.Scheme != "https" && (req.URL.Scheme != own.Scheme || req.URL.Host != own.Host) {
		return fmt.Errorf("large files cannot be sent to %s://%s", req.URL.Scheme, req.URL.Host)
	}
	req.Header.Set("Content-Type", kind)
	if kind == lfsType {
		req.Header.Set("Accept", lfsType)
	}
	for name, value := range at.Header {
		req.Header.Set(name, value)
	}
	resp, err := l.send(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxLFSResponse)) // so that the connection is reused
	return resp.Body.Close()
}

// send sends a request without following redirects. It returns an error for a response that is not a success.
func (l *largeFiles) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", l.cfg.UserAgent)
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	hc := &http.Client{Transport: l.cfg.Transport, CheckRedirect: noRedirect}
	resp, err := hc.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // the address can contain a signature
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusTooManyRequests {
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return nil, &client.LimitError{
			Kind:  client.LimitSecondary,
			Until: l.cfg.Now().Add(max(time.Duration(after)*time.Second, time.Minute)),
		}
	}
	var failure struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxLFSResponse)).Decode(&failure) // without a message if it is not JSON
	bare := &http.Request{Method: req.Method, URL: &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}}
	response := &http.Response{StatusCode: resp.StatusCode, Header: resp.Header, Request: bare}
	return nil, &github.ErrorResponse{Response: response, Message: failure.Message}
}
