//go:build linux

package secrets_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"go.etcd.io/bbolt"

	"github.com/errand-bot/errand/internal/demo"
)

// The places on errand's side and at GitHub.
const (
	inStore      = "store"
	inTranscript = "transcript"
	inArchive    = "archive"
	inData       = "other data"
	inLog        = "log"
	inPage       = "page"
	inComment    = "comment"
	inCommit     = "commit"
	inPrompt     = "prompt"
)

// searchKept searches everything that errand stores and has published, except the few files for secrets.
func (l *life) searchKept(x *finder) {
	l.t.Helper()
	l.data(x)
	l.store(x)
	l.search(x, inLog, "errand.log", l.log())
	l.pages(x)
	l.github(x)
	for i, r := range l.world.Model.Requests() {
		l.search(x, inPrompt, fmt.Sprint("request ", i), r.Body)
	}
}

// search searches data and the compressed data in it for all secrets.
func (l *life) search(x *finder, place, where string, data []byte) {
	l.bytes += len(data)
	unfold(data, maxDepth, func(b []byte) {
		for _, name := range x.search(b) {
			l.found = append(l.found, Hit{place, where, name})
		}
	})
}

// awaitSweep waits until all remains of ended VMs are deleted: their variables and files for tests are deleted with
// their disks, in the background.
func (l *life) awaitSweep() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	if l.cloud {
		return // their disks are not in errand's directory
	}
	for {
		homes, err := filepath.Glob(filepath.Join(l.boxes(), "*", "home"))
		must(l.t, err)
		trash, err := filepath.Glob(filepath.Join(l.boxes(), ".trash-*"))
		must(l.t, err)
		if len(homes)+len(trash) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			l.t.Fatalf("remains of ended VMs: %q, %q", homes, trash)
		}
	}
}

// data searches errand's directory, including ended VMs.
func (l *life) data(x *finder) {
	l.t.Helper()
	l.awaitSweep()
	root := filepath.Join(l.dir, "data")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !d.Type().IsRegular() {
			return nil // files of a VM may disappear
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		place := inData
		switch top, _, _ := strings.Cut(rel, string(filepath.Separator)); {
		case rel == "client_key", rel == "tether_key", rel == "provenance_key", rel == "host_keys_secret", d.Name() == "host_key":
			return nil
		case rel == "errand.db":
			place = inStore
		case top == "transcripts":
			place = inTranscript
		case top == "sleeps", top == "changesets":
			place = inArchive
		}
		data, err := os.ReadFile(path)
		if err == nil {
			l.search(x, place, rel, data)
		}
		return nil
	})
	must(l.t, err)
}

// store reads every value separately, because the file splits long ones into pages.
func (l *life) store(x *finder) {
	l.t.Helper()
	copied := filepath.Join(l.t.TempDir(), "errand.db")
	data, err := os.ReadFile(filepath.Join(l.dir, "data", "errand.db"))
	must(l.t, err)
	must(l.t, os.WriteFile(copied, data, 0o600))
	db, err := bbolt.Open(copied, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Minute})
	must(l.t, err)
	defer func() { must(l.t, db.Close()) }()
	n := 0
	must(l.t, db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				n++
				l.search(x, inStore, string(k), v)
				return nil
			})
		})
	}))
	if n < 5 {
		l.t.Errorf("the store has only %d values", n)
	}
}

// log searches errand's log; the simulators write to the same file.
func (l *life) log() (own []byte) {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join(l.dir, "errand.log"))
	must(l.t, err)
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, `"part":"errand"`) {
			own = append(own, line...)
		}
	}
	return own
}

var aLink = regexp.MustCompile(`(?:href|src|action)="(/[^"#]*)"`)

// pages searches every page that can be reached by links.
func (l *life) pages(x *finder) {
	l.t.Helper()
	todo, seen := []string{"/status", "/status.json", "/metrics", "/healthz", "/readyz"}, map[string]bool{}
	for len(todo) > 0 && len(seen) < 200 {
		path := todo[0]
		todo = todo[1:]
		if seen[path] || strings.Contains(path, "events") { // a stream does not end
			continue
		}
		seen[path] = true
		text := l.page(path)
		l.search(x, inPage, path, []byte(text))
		for _, m := range aLink.FindAllStringSubmatch(text, -1) {
			todo = append(todo, strings.ReplaceAll(m[1], "&amp;", "&"))
		}
	}
	if len(seen) < 7 {
		l.t.Errorf("got only these pages: %v", seen)
	}
}

func (l *life) page(path string) string {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodGet, l.world.URL+path, nil)
	must(l.t, err)
	req.Header.Set("Authorization", "Bearer "+demo.AdminToken)
	resp, err := webtest.Client().Do(req)
	must(l.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	must(l.t, err)
	return fmt.Sprint(resp.Header, string(body))
}

// github searches the content that people see there: issues and pull requests, and every commit.
func (l *life) github(x *finder) {
	l.t.Helper()
	sn := l.world.GitHub.Snapshot()
	r, ok := sn.Repo(demo.Full)
	if !ok {
		l.t.Fatal("the repository is gone")
	}
	for n, i := range r.Issues {
		data, err := json.Marshal(i)
		must(l.t, err)
		l.search(x, inComment, fmt.Sprintf("#%d", n), data)
	}
	out, err := exec.CommandContext(l.t.Context(), "git", "-C", r.Git.Dir, "log", "--all", "-p", "--format=raw").Output()
	must(l.t, err)
	l.search(x, inCommit, "git log", out)
}
