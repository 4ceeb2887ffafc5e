package e2e

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/workflow"
)

// hostility is a runner that lies: its description of the commits is altered on its way to errand.
type hostility struct {
	mu  sync.Mutex
	lie func(*changeset.Changeset)

	packing packing
}

// lies are the false statements of a hostile runner about the last commit: hostile KIND [ARG].
func lies(kind, arg string) (func(*changeset.Changeset), error) {
	last := func(do func(*changeset.Commit)) func(*changeset.Changeset) {
		return func(cs *changeset.Changeset) { do(&cs.Commits[len(cs.Commits)-1]) }
	}
	unseen := strings.Repeat("d", 40) // an unknown ID
	switch kind {
	case "honest":
		return nil, nil
	case "mode":
		return last(func(c *changeset.Commit) { c.Changes[0].Mode = changeset.Mode(arg) }), nil
	case "path":
		return last(func(c *changeset.Commit) { c.Changes[0].Path = arg }), nil
	case "merge":
		return last(func(c *changeset.Commit) { c.Parents = append(c.Parents, unseen) }), nil
	case "chain":
		return last(func(c *changeset.Commit) { c.Parents[0] = unseen }), nil
	case "tree":
		return last(func(c *changeset.Commit) { c.Tree = unseen }), nil
	case "message":
		text, err := strconv.Unquote(`"` + arg + `"`)
		return last(func(c *changeset.Commit) { c.Message = text }), err
	case "content": // content that does not match its ID
		return func(cs *changeset.Changeset) {
			for id := range cs.Blobs {
				cs.Blobs[id] = []byte(arg)
			}
		}, nil
	}
	return nil, fmt.Errorf("unknown lie %q", kind)
}

// hostile makes the runner lie from then on: hostile KIND [ARG]; hostile honest ends it.
func hostile(ts *testscript.TestScript, neg bool, args []string) {
	lie, err := lies(args[0], strings.Join(args[1:], " "))
	ts.Check(err)
	h := &of(ts).hostile
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lie = lie
}

var runToken = regexp.MustCompile(`errand-[0-9a-f]{64}`)

// stolen sends the token of a run, which the agent told the model, to errand's pages and to GitHub, and prints their
// answers.
func stolen(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	var token string
	for _, r := range s.w.Model.Requests() {
		token = cmp.Or(token, runToken.FindString(string(r.Body)))
	}
	if token == "" {
		ts.Fatalf("no token was sent to the model")
	}
	for _, url := range []string{s.w.URL + "/status.json", s.w.URL + "/llm/anthropic/v1/messages", s.w.GitHub.BaseURL() + "/api/v3/user"} {
		req, err := http.NewRequest(http.MethodGet, url, nil)
		ts.Check(err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := webtest.Client().Do(req)
		ts.Check(err)
		ts.Check(resp.Body.Close())
		fmt.Fprintf(ts.Stdout(), "%s: %d\n", req.URL.Path, resp.StatusCode)
	}
}

// kept=N expects fewer than N MB in errand's directory, without VMs.
func kept(o seen, want string) (string, bool) {
	var bytes int64
	for _, sub := range []string{"transcripts", "egress", "changesets", "sleeps", "errand.db"} {
		err := filepath.WalkDir(filepath.Join(o.s.dir, "data", sub), func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // just deleted
			}
			info, err := d.Info()
			if err == nil {
				bytes += info.Size()
			}
			return nil
		})
		if err != nil {
			return err.Error(), false
		}
	}
	limit, err := strconv.ParseInt(want, 10, 64)
	return fmt.Sprintf("%d MB", bytes>>20), err == nil && bytes < limit<<20
}

// options inserts the hostile runner between errand and the real one.
func (h *hostility) options(o *server.Options) {
	o.Hooks.Runner = func(r workflow.Runner) workflow.Runner { return hostileRunner{r, h} }
}

// hostileRunner is a runner whose changeset differs from git's data on the VM.
type hostileRunner struct {
	workflow.Runner
	h *hostility
}

// Collect alters the real runner's answer.
func (r hostileRunner) Collect(ctx context.Context, vm string, spec work.CollectSpec) (*changeset.Changeset, error) {
	cs, err := r.Runner.Collect(ctx, vm, spec)
	r.h.mu.Lock()
	lie := r.h.lie
	r.h.mu.Unlock()
	if err != nil || lie == nil || len(cs.Commits) == 0 {
		return cs, err
	}
	lie(cs)
	var wire bytes.Buffer
	if err := changeset.Encode(&wire, cs); err != nil {
		return nil, err
	}
	return changeset.Decode(&wire, changeset.DefaultLimits())
}
