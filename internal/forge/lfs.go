package forge

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
)

// lfsType is what the API of large files speaks.
const lfsType = "application/vnd.git-lfs+json"

// Bounds of large files.
const (
	lfsPerBatch   = 100
	maxLFSAnswer  = 8 << 20
	lfsBatchTime  = time.Minute
	lfsUploadTime = 15 * time.Minute // of one object
)

// LargeFileError says which large file GitHub does not take.
type LargeFileError struct {
	OID  string
	Code int    // as HTTP's
	Said string // GitHub's own words
}

// Error says what GitHub said.
func (e *LargeFileError) Error() string {
	return fmt.Sprintf("large file %s: %s (%d)", e.OID, e.Said, e.Code)
}

// explain fills e: what GitHub cannot do now may pass, a quota or a rule does not.
func (e *LargeFileError) explain(in *Error) {
	in.Status, in.Class, in.Reason = e.Code, ClassPermanent, "GitHub does not take a large file: "+e.Said+"."
	in.Hint = "Look at the repository's Git LFS settings and its storage quota, then comment `retry`."
	if e.Code >= 500 && e.Code != http.StatusInsufficientStorage || e.Code == http.StatusTooManyRequests {
		in.Class, in.Hint = ClassTemporary, ""
	}
}

// lfsObject is an object as it is asked for and answered.
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

// LargeFiles returns those of the objects that the repository's Git LFS has: none where it is switched off.
func (f *Forge) LargeFiles(ctx context.Context, r Repo, list []changeset.Pointer) (map[changeset.Pointer]bool, error) {
	there := map[changeset.Pointer]bool{}
	if len(list) == 0 {
		return there, nil
	}
	c := &call{name: "look for large files", kind: kindRead, installation: r.Installation, op: "look for large files of " + r.FullName(), now: f.cfg.Now}
	token, _, err := f.GitToken(ctx, r)
	if err != nil {
		return nil, err
	}
	answers, err := f.lfsBatch(ctx, r, token, "download", list)
	if statusOf(err) == http.StatusUnauthorized {
		f.ForgetToken(token) // the next try gets another one
		return nil, c.wrap(fmt.Errorf("the token ended early: %v", err))
	}
	var refused *github.ErrorResponse
	if errors.As(err, &refused) && refused.Response.StatusCode < 500 {
		f.cfg.Log.Warn().Err(err).Str("repository", r.FullName()).Msg("GitHub says nothing of large files")
		return there, nil
	}
	if err != nil {
		return nil, c.wrap(err)
	}
	for _, p := range list {
		if o := answers[p]; o.Error == nil && o.Actions["download"].Href != "" {
			there[p] = true
		}
	}
	return there, nil
}

// UploadLargeFiles puts objects, keyed by their SHA-256, into the repository's Git LFS, with a token for just
// this repository that ends with the call. Objects are named by their content, so it may be repeated: what is
// there already is not sent again. One that GitHub does not take is a *LargeFileError.
func (f *Forge) UploadLargeFiles(ctx context.Context, r Repo, objects map[string][]byte) error {
	if len(objects) == 0 {
		return nil
	}
	u, err := f.begin(ctx, &call{name: "upload large files", kind: kindData}, "to "+r.FullName())
	if err != nil {
		return err
	}
	got, _, err := u.client.Apps.CreateInstallationToken(u.ctx, r.Installation, &github.InstallationTokenOptions{
		RepositoryIDs: []int64{r.ID},
		Permissions:   &github.InstallationPermissions{Contents: github.String("write")},
	})
	if err != nil {
		return u.wrap(installed(err))
	}
	defer func() {
		if err := f.Revoke(context.WithoutCancel(ctx), got.GetToken()); err != nil {
			f.cfg.Log.Warn().Err(err).Msg("end the token of an upload") // it ends by itself within the hour
		}
	}()
	list := make([]changeset.Pointer, 0, len(objects))
	for _, oid := range slices.Sorted(maps.Keys(objects)) {
		list = append(list, changeset.Pointer{OID: oid, Size: int64(len(objects[oid]))})
	}
	answers, err := f.lfsBatch(ctx, r, got.GetToken(), "upload", list)
	if err != nil {
		return u.wrap(err)
	}
	for _, p := range list {
		o, ok := answers[p]
		if !ok {
			return u.wrap(fmt.Errorf("ask about large files: GitHub says nothing of %s", p.OID))
		}
		if err := f.upload(ctx, o, objects[p.OID]); err != nil {
			return u.wrap(fmt.Errorf("upload %s: %w", p.OID, err))
		}
	}
	return nil
}

// lfsBatch asks about objects, and returns what GitHub says of each.
func (f *Forge) lfsBatch(ctx context.Context, r Repo, token, operation string, list []changeset.Pointer) (map[changeset.Pointer]lfsObject, error) {
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
		if err := f.lfsAsk(ctx, r, token, ask, &answer); err != nil {
			return nil, fmt.Errorf("ask about large files: %w", err)
		}
		if answer.Transfer != "" && answer.Transfer != "basic" {
			return nil, errors.New("ask about large files: GitHub wants a transfer that was not offered")
		}
		for _, o := range answer.Objects {
			all[changeset.Pointer{OID: o.OID, Size: o.Size}] = o
		}
	}
	return all, nil
}

func (f *Forge) lfsAsk(ctx context.Context, r Repo, token string, ask, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, lfsBatchTime)
	defer cancel()
	body, err := json.Marshal(ask)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.GitURL(r)+"/info/lfs/objects/batch", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.SetBasicAuth("x-access-token", token)
	req.Header.Set("Accept", lfsType)
	req.Header.Set("Content-Type", lfsType)
	resp, err := f.lfsSend(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLFSAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

// upload sends one object where GitHub wants it, unless it is there already, and has it confirmed.
func (f *Forge) upload(ctx context.Context, o lfsObject, content []byte) error {
	if o.Error != nil {
		return &LargeFileError{OID: o.OID, Code: o.Error.Code, Said: o.Error.Message}
	}
	at, wanted := o.Actions["upload"]
	if !wanted {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lfsUploadTime)
	defer cancel()
	if err := f.lfsPut(ctx, http.MethodPut, at, "application/octet-stream", content); err != nil {
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
	if err := f.lfsPut(ctx, http.MethodPost, confirm, lfsType, body); err != nil {
		return fmt.Errorf("have it confirmed: %w", err)
	}
	return nil
}

func (f *Forge) lfsPut(ctx context.Context, method string, at lfsAction, kind string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, at.Href, bytes.NewReader(body))
	if err != nil {
		return errors.New("GitHub named no address for it") // the error would quote it, with its signature
	}
	own, err := url.Parse(f.cfg.WebURL)
	if err != nil {
		return fmt.Errorf("read GitHub's address: %w", err)
	}
	if req.URL.Scheme != "https" && (req.URL.Scheme != own.Scheme || req.URL.Host != own.Host) {
		return fmt.Errorf("%s://%s is no place for a large file", req.URL.Scheme, req.URL.Host)
	}
	req.Header.Set("Content-Type", kind)
	if kind == lfsType {
		req.Header.Set("Accept", lfsType)
	}
	for name, value := range at.Header {
		req.Header.Set(name, value)
	}
	resp, err := f.lfsSend(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxLFSAnswer)) // so that the connection serves again
	return resp.Body.Close()
}

// lfsSend sends a request that may be repeated, follows no redirect, and makes an error of what is no success.
func (f *Forge) lfsSend(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", f.cfg.UserAgent)
	client := &http.Client{Transport: f.cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // the address may hold a signature
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
		return nil, &LimitError{Kind: LimitSecondary, Until: f.cfg.Now().Add(max(time.Duration(after)*time.Second, time.Minute))}
	}
	var said struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxLFSAnswer)).Decode(&said) // what is no JSON says nothing
	bare := &http.Request{Method: req.Method, URL: &url.URL{Scheme: req.URL.Scheme, Host: req.URL.Host, Path: req.URL.Path}}
	return nil, &github.ErrorResponse{Response: &http.Response{StatusCode: resp.StatusCode, Header: resp.Header, Request: bare}, Message: said.Message}
}
