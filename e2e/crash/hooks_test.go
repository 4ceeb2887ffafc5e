package crash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state/kv"
)

// options puts a gate before all external operations of one incarnation.
func (g *gate) options(o *server.Options) {
	o.Transport = gatedHTTP{g, &http.Transport{DisableKeepAlives: true}}
	o.Hooks = server.Hooks{
		DB:       func(db kv.DB) kv.DB { return gatedDB{db, g} },
		Provider: func(p fleet.Provider) fleet.Provider { return gatedProvider{p, g} },
		Runner:   func(r workflow.Runner) workflow.Runner { return gatedRunner{r, g} },
		Upstream: func(t http.RoundTripper) http.RoundTripper { return gatedModel{g, t} },
		Files:    func(f workflow.Files) workflow.Files { return gatedFiles{f, g} },

		Transcript: func(t watch.Transcript) watch.Transcript { return gatedTranscript{t, g} },
		Handle:     g.counted,
		Without:    g.s.fault.safeguards(),
	}
	timing := *o.Timing
	timing.RescueEvery = 100 * time.Millisecond
	o.Timing = &timing
}

// gatedDB gates commits by their names. The migration of a new store comes first and is not gated, because package
// state tests it.
type gatedDB struct {
	kv.DB
	g *gate
}

func (d gatedDB) Update(ctx context.Context, fn func(kv.Tx) error) error {
	name := kv.Name(ctx)
	if name == "migrate" {
		return d.DB.Update(ctx, fn)
	}
	if d.g.s.fault == noAttempted && name == "mark job" || d.g.s.fault == noRescue && name == "rescue jobs" {
		return nil
	}
	return d.g.do(ctx, "commit: "+name, func(ctx context.Context) error { return d.DB.Update(ctx, fn) })
}

// gatedHTTP gates requests that change something on GitHub; reads fail once errand is dead.
type gatedHTTP struct {
	g    *gate
	base http.RoundTripper
}

func (t gatedHTTP) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.g.s.fault == noMarkers && req.Method == http.MethodPost {
		if err := rewrite(req, func(body []byte) []byte { return escaped.ReplaceAll(body, nil) }); err != nil {
			return nil, err
		}
	}
	op, err := nameOf(req)
	if err != nil {
		return nil, err
	}
	if op == "" {
		if t.g.dead() {
			return nil, errDied
		}
		if strings.HasSuffix(req.URL.Path, "/issues") {
			defer t.g.s.end(sweptIssues)
		}
		return t.base.RoundTrip(req)
	}
	return through(req.Context(), t.g, op, func(ctx context.Context) (*http.Response, error) { return readWhole(t.base, req.WithContext(ctx)) })
}

// sweptIssues matches the sweep's queries for issues whose webhooks were lost: one by label and one by assignee.
const (
	sweptIssues = "sweep: issues"
	sweptLooks  = 2
)

// readWhole sends a request and reads the answer to its end.
func readWhole(base http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// gatedModel gates the agents' model calls through the tether; git reads fail once errand is dead.
type gatedModel struct {
	g    *gate
	base http.RoundTripper
}

func (t gatedModel) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/messages") {
		if t.g.dead() {
			return nil, errDied
		}
		return t.base.RoundTrip(req)
	}
	return through(req.Context(), t.g, "model: ask", func(ctx context.Context) (*http.Response, error) { return readWhole(t.base, req.WithContext(ctx)) })
}

var (
	mutation = regexp.MustCompile(`"mutation[^{]*\{(?:\s|\\[nt])*(?:\w+:\s*)?(\w+)`)
	query    = regexp.MustCompile(`"query[^{]*\{(?:\s|\\[nt])*(?:\w+:\s*)?(\w+)`)
	repoPath = regexp.MustCompile(`^/api/v3/repos/[^/]+/[^/]+`)
	objects  = regexp.MustCompile(`/(?:[0-9a-f]{40}|\d+)\b`)
)

// nameOf returns the name of a request. Requests that are repeated periodically have no name: reactions, missed
// deliveries, the App's identity, and tokens.
func nameOf(req *http.Request) (name string, err error) {
	switch {
	case strings.HasPrefix(req.URL.Path, "/api/v3/app"):
		return "", nil
	case strings.HasSuffix(req.URL.Path, "/graphql"):
		err := rewrite(req, func(body []byte) []byte {
			if m := mutation.FindSubmatch(body); m != nil {
				name = "github: " + string(m[1])
			} else if m := query.FindSubmatch(body); m != nil && string(m[1]) != "nodes" {
				name = "read: query " + string(m[1])
			}
			return body
		})
		return name, err
	}
	path := objects.ReplaceAllString(repoPath.ReplaceAllString(req.URL.Path, ""), "/N")
	if req.Method == http.MethodGet && (path == "/issues" || !repoPath.MatchString(req.URL.Path)) {
		return "", nil // a sweep
	}
	if req.Method == http.MethodGet {
		return "read: GET " + path, nil
	}
	return fmt.Sprintf("github: %s %s", req.Method, path), nil
}

// escaped is a comment's hidden marker in JSON.
var escaped = regexp.MustCompile(`(<|\\u003c)!-- errand:.*? --(>|\\u003e)`)

// rewrite replaces the body of a request by the result of fn.
func rewrite(req *http.Request, fn func([]byte) []byte) error {
	if req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	body = fn(body)
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// gatedProvider gates the creation and deletion of VMs.
type gatedProvider struct {
	fleet.Provider
	g *gate
}

func (p gatedProvider) Create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	return through(ctx, p.g, "vm: create", func(ctx context.Context) (fleet.VM, error) {
		p.g.s.tried.add(spec.Name)
		return p.Provider.Create(ctx, spec)
	})
}

func (p gatedProvider) Delete(ctx context.Context, name string, why fleet.Reason) error {
	return p.g.do(ctx, "vm: delete", func(ctx context.Context) error { return p.Provider.Delete(ctx, name, why) })
}

func (p gatedProvider) Get(ctx context.Context, name string) (fleet.VM, error) {
	if p.g.dead() {
		return fleet.VM{}, errDied
	}
	return p.Provider.Get(ctx, name)
}

func (p gatedProvider) List(ctx context.Context) ([]fleet.VM, error) {
	if p.g.dead() {
		return nil, errDied
	}
	return p.Provider.List(ctx)
}

// gatedRunner gates operations on VMs.
type gatedRunner struct {
	workflow.Runner
	g *gate
}

func (r gatedRunner) Prepare(ctx context.Context, vm string, spec work.PrepareSpec) (work.Place, error) {
	return through(ctx, r.g, "ssh: prepare", func(ctx context.Context) (work.Place, error) { return r.Runner.Prepare(ctx, vm, spec) })
}

func (r gatedRunner) Reset(ctx context.Context, vm string, spec work.ResetSpec) error {
	return r.g.do(ctx, "ssh: reset", func(ctx context.Context) error { return r.Runner.Reset(ctx, vm, spec) })
}

func (r gatedRunner) Rebase(ctx context.Context, vm string, spec work.RebaseSpec) (work.Rebased, error) {
	return through(ctx, r.g, "ssh: rebase", func(ctx context.Context) (work.Rebased, error) { return r.Runner.Rebase(ctx, vm, spec) })
}

func (r gatedRunner) Collect(ctx context.Context, vm string, spec work.CollectSpec) (*changeset.Changeset, error) {
	return through(ctx, r.g, "ssh: collect", func(ctx context.Context) (*changeset.Changeset, error) { return r.Runner.Collect(ctx, vm, spec) })
}

func (r gatedRunner) Lend(ctx context.Context, vm string, spec work.LendSpec) (work.Lent, error) {
	return through(ctx, r.g, "ssh: lend", func(ctx context.Context) (work.Lent, error) { return r.Runner.Lend(ctx, vm, spec) })
}

func (r gatedRunner) Pack(ctx context.Context, vm string, spec pack.Spec, w io.Writer) (pack.Manifest, error) {
	return through(ctx, r.g, "ssh: pack", func(ctx context.Context) (pack.Manifest, error) { return r.Runner.Pack(ctx, vm, spec, w) })
}

func (r gatedRunner) Unpack(ctx context.Context, vm string, spec pack.UnpackSpec, from io.Reader) (pack.Manifest, error) {
	return through(ctx, r.g, "ssh: unpack", func(ctx context.Context) (pack.Manifest, error) { return r.Runner.Unpack(ctx, vm, spec, from) })
}

func (r gatedRunner) Start(ctx context.Context, vm string, spec runner.Spec) error {
	return r.g.do(ctx, "ssh: start run", func(ctx context.Context) error {
		err := r.Runner.Start(ctx, vm, spec)
		if err == nil {
			r.g.s.started.add(spec.ID)
		}
		return err
	})
}

func (r gatedRunner) Knows(ctx context.Context, vm, run string) (bool, error) {
	switch {
	case r.g.dead():
		return false, errDied
	case r.g.s.fault == noKnown:
		return false, nil
	}
	return r.Runner.Knows(ctx, vm, run)
}

func (r gatedRunner) Runs(ctx context.Context, vm string) ([]string, error) {
	return through(ctx, r.g, "ssh: list runs", func(ctx context.Context) ([]string, error) { return r.Runner.Runs(ctx, vm) })
}

func (r gatedRunner) Stop(ctx context.Context, vm, run, why string) error {
	return r.g.do(ctx, "ssh: stop run", func(ctx context.Context) error { return r.Runner.Stop(ctx, vm, run, why) })
}

// gatedFiles gates the files outside the store.
type gatedFiles struct {
	workflow.Files
	g *gate
}

func (f gatedFiles) SaveChangeset(run string, cs *changeset.Changeset) (string, error) {
	return through(context.Background(), f.g, "disk: save changeset", func(context.Context) (string, error) { return f.Files.SaveChangeset(run, cs) })
}

func (f gatedFiles) BeginTranscript(run string, h runlog.Header) error {
	return f.g.do(context.Background(), "disk: begin transcript", func(context.Context) error { return f.Files.BeginTranscript(run, h) })
}

func (f gatedFiles) SaveSleep(task string, fill func(io.Writer) (pack.Manifest, error)) (archive.Sleep, error) {
	return through(context.Background(), f.g, "disk: save archive", func(context.Context) (archive.Sleep, error) { return f.Files.SaveSleep(task, fill) })
}

func (f gatedFiles) DeleteSleep(ref string) error {
	return f.g.do(context.Background(), "disk: delete archive", func(context.Context) error { return f.Files.DeleteSleep(ref) })
}

func (f gatedFiles) LoadChangeset(ref string) (*changeset.Changeset, error) {
	return through(context.Background(), f.g, "read: changeset", func(context.Context) (*changeset.Changeset, error) { return f.Files.LoadChangeset(ref) })
}

// gatedTranscript gates writes to a run's transcript while errand follows it.
type gatedTranscript struct {
	watch.Transcript
	g *gate
}

func (t gatedTranscript) Add(l runlog.Line, events []runlog.Event) error {
	return t.g.do(context.Background(), "disk: append to transcript", func(context.Context) error { return t.Transcript.Add(l, events) })
}

func (t gatedTranscript) End(e runlog.End) error {
	return t.g.do(context.Background(), "disk: end transcript", func(context.Context) error { return t.Transcript.End(e) })
}
