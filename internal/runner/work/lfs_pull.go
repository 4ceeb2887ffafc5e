package work

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/changeset"
)

// Limits of a pull.
const (
	lfsPerBatch   = 100
	maxLFSAnswer  = 8 << 20
	lfsBatchTime  = 2 * time.Minute
	lfsObjectTime = time.Hour
	lfsType       = "application/vnd.git-lfs+json"
)

// Pulled is the result of a pull.
type Pulled struct {
	Files   int      // files that now have their content
	Missing []string // paths whose content could not be fetched, each with the reason
}

// LFSPull fetches the content of large files in the checkout that contains dir, either all or those that match the git
// patterns, and replaces their pointers by it. It calls the server at `lfs.url`, which is the tether, with the header
// that git's configuration contains for that address. It does not touch modified files.
func LFSPull(ctx context.Context, dir string, patterns []string) (Pulled, error) {
	p := &puller{repo: &repo{dir: dir, env: os.Environ()}}
	out, err := p.pull(ctx, patterns)
	if err != nil {
		return Pulled{}, fmt.Errorf("pull large files: %w", err)
	}
	return out, nil
}

// puller runs git with the agent's own environment, which contains the address of the tether.
type puller struct {
	repo *repo
	dir  string // directory of objects
	url  string
	auth string
}

func (p *puller) pull(ctx context.Context, patterns []string) (out Pulled, err error) {
	top, err := p.repo.text(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return out, err
	}
	files, err := p.pointers(ctx, patterns, top)
	if err != nil || len(files) == 0 {
		return out, err
	}
	if p.dir, err = p.repo.lfsDir(ctx); err != nil {
		return out, err
	}
	if p.url, err = p.repo.text(ctx, "config", "--get", "lfs.url"); err != nil {
		return out, fmt.Errorf("this checkout has no address for large files (lfs.url): %w", err)
	}
	header, _ := p.repo.text(ctx, "config", "--get-urlmatch", "http.extraHeader", p.url) // without a header, none is sent
	_, p.auth, _ = strings.Cut(header, ": ")
	failed, err := p.fetch(ctx, files)
	if err != nil {
		return out, err
	}
	var ready bytes.Buffer
	for path, pointer := range files {
		if reason, bad := failed[pointer]; bad {
			out.Missing = append(out.Missing, path+": "+reason)
			continue
		}
		// Git does not rewrite a file that matches the index, so the file is removed first.
		if err := os.Remove(filepath.Join(top, path)); err != nil {
			return out, err
		}
		ready.WriteString(path + "\x00")
		out.Files++
	}
	slices.Sort(out.Missing)
	_, err = (&repo{dir: top, env: p.repo.env}).pipe(ctx, &ready, "checkout-index", "--force", "--index", "-z", "--stdin")
	return out, err
}

// pointers returns the files of the checkout that are still pointers, by path relative to its top.
func (p *puller) pointers(ctx context.Context, patterns []string, top string) (map[string]changeset.Pointer, error) {
	args := append([]string{"ls-files", "-z", "--full-name", "--"}, patterns...)
	if len(patterns) == 0 {
		args = append(args, ":(top)")
	}
	out, err := p.repo.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	files := map[string]changeset.Pointer{}
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		full := filepath.Join(top, path)
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || info.Size() >= changeset.MaxPointer {
			continue
		}
		content, err := os.ReadFile(full)
		if err != nil {
			continue
		}
		if pointer, _ := changeset.ParsePointer(content); pointer.OID != "" {
			files[path] = pointer
		}
	}
	return files, nil
}

// fetch downloads missing objects, and returns the reasons for those that could not be fetched.
func (p *puller) fetch(ctx context.Context, files map[string]changeset.Pointer) (failed map[changeset.Pointer]string, err error) {
	wanted := map[changeset.Pointer]bool{}
	for _, pointer := range files {
		if f, err := openLarge(p.dir, pointer); err == nil {
			_ = f.Close()
			continue
		}
		wanted[pointer] = true
	}
	failed = map[changeset.Pointer]string{}
	list := make([]changeset.Pointer, 0, len(wanted))
	for pointer := range wanted {
		list = append(list, pointer)
	}
	slices.SortFunc(list, func(a, b changeset.Pointer) int { return strings.Compare(a.OID, b.OID) })
	for part := range slices.Chunk(list, lfsPerBatch) {
		where, err := p.batch(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, pointer := range part {
			if err := p.get(ctx, pointer, where[pointer.OID]); err != nil {
				failed[pointer] = err.Error()
			}
		}
	}
	return failed, nil
}

// lfsPlace is the location of an object, or the error in its place.
type lfsPlace struct {
	Actions map[string]struct {
		Href   string            `json:"href"`
		Header map[string]string `json:"header"`
	} `json:"actions"`
	Error *struct {
		Message string `json:"message"`
	} `json:"error"`
}

func (p *puller) batch(ctx context.Context, list []changeset.Pointer) (map[string]lfsPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, lfsBatchTime)
	defer cancel()
	type object struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	}
	objects := make([]object, 0, len(list))
	for _, pointer := range list {
		objects = append(objects, object(pointer))
	}
	body, err := json.Marshal(map[string]any{"operation": "download", "transfers": []string{"basic"}, "objects": objects})
	if err != nil {
		return nil, err
	}
	resp, err := p.send(ctx, http.MethodPost, p.url+"/objects/batch", map[string]string{"Authorization": p.auth}, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Objects []struct {
			OID string `json:"oid"`
			lfsPlace
		} `json:"objects"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxLFSAnswer)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("read the locations of large files: %w", err)
	}
	where := map[string]lfsPlace{}
	for _, o := range answer.Objects {
		where[o.OID] = o.lfsPlace
	}
	return where, nil
}

// get downloads one object and stores it if it matches its pointer.
func (p *puller) get(ctx context.Context, pointer changeset.Pointer, at lfsPlace) error {
	ctx, cancel := context.WithTimeout(ctx, lfsObjectTime)
	defer cancel()
	if at.Error != nil {
		return errors.New(at.Error.Message)
	}
	from, ok := at.Actions["download"]
	if !ok {
		return errors.New("the server's answer does not contain it")
	}
	resp, err := p.send(ctx, http.MethodGet, from.Href, from.Header, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = keepLarge(p.dir, io.LimitReader(resp.Body, pointer.Size+1), &pointer)
	return err
}

func (p *puller) send(ctx context.Context, method, url string, header map[string]string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if method == http.MethodPost {
		req.Header.Set("Accept", lfsType)
		req.Header.Set("Content-Type", lfsType)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // without a proxy: the tether is on this VM
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var said struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxLFSAnswer)).Decode(&said) // a body that is not JSON has no message
	return nil, fmt.Errorf("%s %s", resp.Status, said.Message)
}
