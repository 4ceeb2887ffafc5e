package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
)

const token = "correct horse battery staple"

var (
	noon   = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	writer = state.Person{ID: 2, Login: "ada"}
)

// world is a real store, a directory of transcripts, and the pages that show them.
type world struct {
	t     *testing.T
	store *store.Store
	dir   folder
	url   string

	mu    sync.Mutex
	clock time.Time
}

// folder stores transcripts in a directory, as the archive does.
type folder string

func (f folder) path(run string) string { return filepath.Join(string(f), run+".jsonl") }

func (f folder) OpenTranscript(run string) (*os.File, error) { return os.Open(f.path(run)) }

// newWorld starts the pages; change may modify their configuration.
func newWorld(t *testing.T, change func(*admin.Config)) *world {
	t.Helper()
	w := &world{t: t, dir: folder(t.TempDir()), clock: noon}
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if w.store, err = store.Open(context.Background(), db, store.Options{Now: w.now}); err != nil {
		t.Fatal(err)
	}
	cfg := admin.Config{Store: w.store, Facts: w.store, Transcripts: w.dir, Token: token, Version: "v1.2.3", Now: w.now}
	if change != nil {
		change(&cfg)
	}
	w.url = serve(t, cfg)
	return w
}

// serve starts the pages on a free port.
func serve(t *testing.T, cfg admin.Config) string {
	t.Helper()
	cfg.Patience = time.Minute // long enough for slow machines to show all data
	h, err := admin.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

// apply applies an event to the task of an issue of repository 7.
func (w *world) apply(issue int, e event.Event) *state.Task {
	w.t.Helper()
	e.Task = state.TaskKey{Repo: 7, Issue: issue}
	applied, err := w.store.Apply(context.Background(), e, store.Ack{})
	if err != nil {
		w.t.Fatal(err)
	}
	return applied.Task
}

// trigger starts a task.
func (w *world) trigger(issue int, title string) {
	w.t.Helper()
	w.apply(issue, event.Event{
		By:         writer,
		Permission: state.PermissionWrite,
		Via:        "assigned",
		At:         w.now(),
		Repo:       &state.Repo{ID: 7, Owner: "acme", Name: "shop", DefaultBranch: "main", URL: "https://git.example/acme/shop"},
		Payload:    event.Triggered{Issue: &state.Issue{Node: "I_1", Title: title, Body: "It breaks.", Author: writer}},
	})
}

// launch moves a task to its first run and returns the run.
func (w *world) launch(issue int) *state.Run {
	w.t.Helper()
	w.trigger(issue, "Prices are rounded twice")
	task := w.apply(issue, event.Event{
		Payload: event.Started{Start: event.Start{
			Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "errand/1-prices", Base: "main", BaseSHA: "b0"},
		}},
	})
	task = w.apply(issue, event.Event{
		Run: task.Run.ID,
		Payload: event.Launched{Launch: state.Launch{
			Run: task.Run.ID, VM: state.VM{Name: "vm1", Provider: "local", Kind: "bwrap"}, Adapter: "claude", Model: "some-model", Started: w.now(),
		}},
	})
	if task.Run == nil || task.Run.State != state.RunActive {
		w.t.Fatalf("no active run: %+v", task.Run)
	}
	return task.Run
}

// end ends a run.
func (w *world) end(issue int, run string) {
	w.t.Helper()
	w.apply(issue, event.Event{
		Run: run,
		Payload: event.RunEnded{Result: state.RunResult{
			Status: state.StatusOK, Class: state.RunSucceeded, Ended: w.now(), Outcome: "build", Title: "Round once", Text: "1. Round once.",
			Money: state.Money{InputTokens: 1000, OutputTokens: 200, MicroUSD: 120_000},
		}},
	})
}

// get requests a path with the token and returns status and body.
func (w *world) get(path string) (int, string) {
	w.t.Helper()
	return fetch(w.t, w.url+path, map[string]string{"Authorization": "Bearer " + token, "Accept": "text/html"})
}

// page requests a path that must exist.
func (w *world) page(path string) string {
	w.t.Helper()
	status, body := w.get(path)
	if status != http.StatusOK {
		w.t.Fatalf("%s: status %d: %s", path, status, body)
	}
	return body
}

func fetch(t *testing.T, url string, headers map[string]string) (int, string) {
	t.Helper()
	resp := do(t, http.MethodGet, url, "", headers)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// do sends a request and follows no redirect.
func do(t *testing.T, method, url, body string, headers map[string]string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := http.Client{Transport: webtest.Transport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// transcript is a transcript file written by a test.
type transcript struct {
	t    *testing.T
	file *os.File
	out  *runlog.Transcript
	seq  int64
}

// write creates the transcript of a run.
func (w *world) write(run string) *transcript {
	w.t.Helper()
	f, err := os.OpenFile(w.dir.path(run), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = f.Close() })
	out, err := runlog.NewTranscript(f, runlog.Header{Run: run, Started: noon, System: "Be brief.", User: "Fix <the> bug.", Withheld: []string{"a comment by eve"}})
	if err != nil {
		w.t.Fatal(err)
	}
	return &transcript{t: w.t, file: f, out: out}
}

// say appends a line with one event.
func (tr *transcript) say(e runlog.Event) {
	tr.t.Helper()
	tr.seq++
	e.Seq, e.Time = tr.seq, noon.Add(time.Duration(tr.seq)*time.Second)
	line := &runlog.Line{Seq: tr.seq, Time: e.Time, Stream: runlog.StreamStdout, Text: fmt.Sprintf(`{"raw":%d}`, tr.seq)}
	tr.add(runlog.Entry{Line: line, Events: []runlog.Event{e}})
}

func (tr *transcript) add(e runlog.Entry) {
	tr.t.Helper()
	if err := tr.out.Add(e); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *transcript) exit() {
	tr.t.Helper()
	tr.add(runlog.Entry{End: &runlog.End{Cause: runlog.CauseExited, Class: runlog.ClassSuccess, Start: noon, Ended: noon.Add(time.Minute), Duration: time.Minute}})
}

// want reports an error for each part that text lacks.
func want(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, content(text))
		}
	}
}

func wantNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("unexpected %q in:\n%s", part, content(text))
		}
	}
}

// content returns a page's content without the frame.
func content(text string) string {
	if _, rest, ok := strings.Cut(text, "<main"); ok {
		text, _, _ = strings.Cut(rest, "</main>")
	}
	return text
}

// noFiles is an empty directory of transcripts.
type noFiles struct{}

func (noFiles) OpenTranscript(run string) (*os.File, error) {
	return nil, fmt.Errorf("open %s: %w", run, fs.ErrNotExist)
}

// memory is a store of given tasks, for states that take long to reach.
type memory struct {
	tasks  []*state.Task
	jobs   []state.Job
	poison []store.Delivery
	broken bool
}

var errBroken = errors.New("the disk is on fire")

func (m *memory) err() error {
	if m.broken {
		return errBroken
	}
	return nil
}

func (m *memory) EachOpen(_ context.Context, fn func(store.Listed) error) error {
	err := m.err()
	for _, t := range m.tasks {
		if err == nil && !t.Ended() { // tests change its tasks under the same version
			err = fn(store.Listed{Key: t.Key, Phase: t.Phase, Stamp: rand.Uint64(), Load: func() (*state.Task, error) { return t, nil }})
		}
	}
	return err
}

func (m *memory) AllTasks(_ context.Context, after state.TaskKey, limit int) (page []*state.Task, err error) {
	for _, t := range m.tasks {
		if len(page) < limit && (after.IsZero() || t.Key.Issue > after.Issue) {
			page = append(page, t)
		}
	}
	return page, m.err()
}

func (m *memory) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	for _, t := range m.tasks {
		if t.Key == key {
			return t, m.err()
		}
	}
	return nil, m.err()
}

func (m *memory) Jobs(_ context.Context, key state.TaskKey) (jobs []state.Job, err error) {
	for _, j := range m.jobs {
		if j.Task == key {
			jobs = append(jobs, j)
		}
	}
	return jobs, m.err()
}

func (m *memory) Counts(context.Context) (map[state.Phase]int, error) {
	counts := map[state.Phase]int{}
	for _, t := range m.tasks {
		counts[t.Phase]++
	}
	return counts, m.err()
}

func (m *memory) PoisonDeliveries(_ context.Context, limit int) ([]store.Delivery, error) {
	return m.poison[:min(limit, len(m.poison))], m.err()
}
