package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	lfsPerBatch   = 100
	maxLFSAnswer  = 8 << 20
	lfsBatchTime  = time.Minute
	lfsUploadTime = 15 * time.Minute // of one object
)

// LargeFileError means that GitHub refused a large file.
type LargeFileError struct {
	OID     string
	Code    int    // like an HTTP status
	Message string // of GitHub
}

// Error returns the file and GitHub's message.
func (e *LargeFileError) Error() string {
	return fmt.Sprintf("large file %s: %s (%d)", e.OID, e.Message, e.Code)
}

// Explain fills in the class, the reason and the hint. Failures of GitHub are temporary, but quotas and rules are not.
func (e *LargeFileError) Explain(in *client.Error) {
	in.Status, in.Class, in.Reason = e.Code, client.ClassPermanent, "GitHub refused a large file: "+e.Message+"."
	in.Hint = "Check the repository's Git LFS settings and its storage quota, then comment `retry`."
	if e.Code >= 500 && e.Code != http.StatusInsufficientStorage || e.Code == http.StatusTooManyRequests {
		in.Class, in.Hint = client.ClassTemporary, ""
	}
}

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

type lfsAction struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header,omitempty"`
}

// LargeFiles returns which of the objects exist in the repository's Git LFS; none if it is disabled.
func (p *Publisher) LargeFiles(ctx context.Context, r client.Repo, list []changeset.Pointer) (map[changeset.Pointer]bool, error) {
	there := map[changeset.Pointer]bool{}
	if len(list) == 0 {
		return there, nil
	}
	op, err := p.client.Read(ctx, r.Installation, "look for large files", "of "+r.FullName())
	if err != nil {
		return nil, err
	}
	token, _, err := p.client.Tokens().GitToken(ctx, r)
	if err != nil {
		return nil, err
	}
	answers, err := p.largeFiles(r, token).batch(ctx, "download", list)
	if client.StatusOf(err) == http.StatusUnauthorized {
		p.client.Tokens().ForgetToken(token) // a retry gets a new one
		return nil, op.Wrap(fmt.Errorf("the token was revoked early: %v", err))
	}
	var refused *github.ErrorResponse
	if errors.As(err, &refused) && refused.Response.StatusCode < 500 {
		p.client.Log().Warn().Err(err).Str("repository", r.FullName()).Msg("Git LFS is not available; assuming that no large file exists")
		return there, nil
	}
	if err != nil {
		return nil, op.Wrap(err)
	}
	for _, l := range list {
		if o := answers[l]; o.Error == nil && o.Actions["download"].Href != "" {
			there[l] = true
		}
	}
	return there, nil
}

// UploadLargeFiles uploads objects, keyed by their SHA-256, to the repository's Git LFS, with a token for only this
// repository that it revokes afterwards. It can be repeated: objects that exist are not sent again. If GitHub refuses an
// object, the error is a *LargeFileError.
func (p *Publisher) UploadLargeFiles(ctx context.Context, r client.Repo, objects map[string][]byte) error {
	if len(objects) == 0 {
		return nil
	}
	op, err := p.client.Data(ctx, 0, "upload large files", "to "+r.FullName())
	if err != nil {
		return err
	}
	token, err := op.WriteToken(r)
	if err != nil {
		return err
	}
	defer func() {
		if err := p.client.Tokens().Revoke(context.WithoutCancel(ctx), token); err != nil {
			p.client.Log().Warn().Err(err).Msg("failed to revoke the token of an upload") // it expires within the hour
		}
	}()
	list := make([]changeset.Pointer, 0, len(objects))
	for _, oid := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, changeset.Pointer{OID: oid, Size: int64(len(objects[oid]))})
	}
	files := p.largeFiles(r, token)
	answers, err := files.batch(ctx, "upload", list)
	if err != nil {
		return op.Wrap(err)
	}
	for _, l := range list {
		o, ok := answers[l]
		if !ok {
			return op.Wrap(fmt.Errorf("request large files: GitHub did not answer for %s", l.OID))
		}
		if err := files.upload(ctx, o, objects[l.OID]); err != nil {
			return op.Wrap(fmt.Errorf("upload %s: %w", l.OID, err))
		}
	}
	return nil
}

// largeFiles calls the Git LFS API of one repository with a token.
type largeFiles struct {
	cfg   client.Config
	url   string
	token string
}

func (p *Publisher) largeFiles(r client.Repo, token string) *largeFiles {
	return &largeFiles{cfg: p.client.Config(), url: p.client.GitURL(r) + "/info/lfs/objects/batch", token: token}
}

// batch requests an operation on objects, and returns the response for each of them.
func (l *largeFiles) batch(ctx context.Context, operation string, list []changeset.Pointer) (map[changeset.Pointer]lfsObject, error) {
	all := map[changeset.Pointer]lfsObject{}
	for part := range slices.Chunk(list, lfsPerBatch) {
		ask := struct {
			Operation string      `json:"operation"`
			Transfers []string    `json:"transfers"`
			Objects   []lfsObject `json:"objects"`
			HashAlgo  string      `json:"hash_algo"`
		}{Operation: operation, Transfers: []string{"basic"}, HashAlgo: "sha256"}
		for _, p := range part {
			ask.Objects = append(ask.Objects, lfsObject{OID: p.OID, Size: p.Size})
		}
		var answer struct {
			Transfer string      `json:"transfer"`
			Objects  []lfsObject `json:"objects"`
		}
		if err := l.ask(ctx, ask, &answer); err != nil {
			return nil, fmt.Errorf("request large files: %w", err)
		}
		if answer.Transfer != "" && answer.Transfer != "basic" {
			return nil, errors.New("request large files: GitHub chose a transfer that was not offered")
		}
		for _, o := range answer.Objects {
			all[changeset.Pointer{OID: o.OID, Size: o.Size}] = o
		}
	}
	return all, nil
}

func (l *largeFiles) ask(ctx context.Context, ask, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, lfsBatchTime)
	defer cancel()
	body, err := json.Marshal(ask)
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
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLFSAnswer)).Decode(answer); err != nil {
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
	confirm, wanted := o.Actions["verify"]
	if !wanted {
		return nil
	}
	body, err := json.Marshal(lfsObject{OID: o.OID, Size: o.Size})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := l.put(ctx, http.MethodPost, confirm, lfsType, body); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

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
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxLFSAnswer)) // so that the connection is reused
	return resp.Body.Close()
}

// send sends a request without following redirects. It returns an error for a response that is not a success.
func (l *largeFiles) send(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", l.cfg.UserAgent)
	hc := &http.Client{Transport: l.cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
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
		return nil, &client.LimitError{Kind: client.LimitSecondary, Until: l.cfg.Now().Add(max(time.Duration(after)*time.Second, time.Minute))}
	}
	var said struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxLFSAnswer)).Decode(&said) // without a message if it is not JSON
	bare := &http.Request{Method: req.Method, URL: &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}}
	return nil, &github.ErrorResponse{Response: &http.Response{StatusCode: resp.StatusCode, Header: resp.Header, Request: bare}, Message: said.Message}
}
