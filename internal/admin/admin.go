// Package admin is what operators see: a board of all tasks, a page per task with its runs and the
// live log, the same as JSON, and metrics for Prometheus. It only reads.
//
// Pages are rendered here, without a build step and without anything from elsewhere; they work with
// scripts off. Everything that people, agents or VMs wrote is shown as text, never as HTML, and long
// texts are cut with a link to the whole. All of it is behind a token, unless the pages have an
// address of their own that only operators reach.
//
// Start reading at New, which is the table of routes, then board.go and task.go for what the pages
// hold.
package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/state"
)

// Tasks reads tasks. The signatures are those of state.Store.
type Tasks interface {
	EachOpen(ctx context.Context, fn func(state.Listed) error) error
	AllTasks(ctx context.Context, after state.TaskKey, limit int) ([]*state.Task, error)
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	Counts(ctx context.Context) (map[state.Phase]int, error)
}

// Store reads all that is shown.
type Store interface {
	Tasks
	Jobs(ctx context.Context, key state.TaskKey) ([]state.Job, error)
	PoisonDeliveries(ctx context.Context, limit int) ([]state.Delivery, error)
}

var _ Store = (*state.Store)(nil)

// Facts keep small values by name. The signatures are those of state.Store.
type Facts interface {
	Fact(ctx context.Context, name string) ([]byte, error)
	SetFact(ctx context.Context, name string, value []byte) error
}

var _ Facts = (*state.Store)(nil)

// Transcripts opens a run's transcript for reading, as internal/runlog writes it and while it grows.
// If there is none the error is fs.ErrNotExist.
type Transcripts interface {
	OpenTranscript(run string) (*os.File, error)
}

// Config configures the pages.
type Config struct {
	Store       Store
	Transcripts Transcripts
	Diffs       Diffs // may be nil
	// Spent says what all tasks together have cost today and this month, in UTC, each with its cap; nil
	// shows nothing about it.
	Spent func(ctx context.Context) (day, month state.Money, err error)
	// Reached says which other hosts a task's VMs asked for, the newest n, oldest first, and how many requests
	// there were in all; nil shows nothing about it.
	Reached func(task state.TaskKey, n int) ([]egress.Request, int, error)
	// Providers reads why providers of models are not asked for now, by name; nil shows nothing about it.
	Providers func(ctx context.Context) (map[string]state.Upstream, error)
	// Missing lists what the App's installations do not grant; nil shows nothing about it.
	Missing func() []Missing
	// Metrics are served under /metrics; nil makes new ones.
	Metrics *Metrics
	// Token is asked for on every page. It may be empty only if Open is set.
	Token string
	// Open says that the pages have an address of their own, which only operators reach.
	Open bool
	// Secure says that browsers reach the pages by HTTPS alone: cookies are never sent otherwise.
	Secure bool
	// Facts keep the end of sessions over a restart; nil keeps it in memory.
	Facts Facts
	// VMs reads the VMs and what they cost; nil shows nothing about them. VMCaps are the caps that are shown
	// beside that, and Alarms what somebody has to see to, nil for nothing.
	VMs    VMs
	VMCaps state.VMCaps
	Alarms func() []Alarm
	// Describe says what VMs are made of here; nil shows nothing about it.
	Describe func(ctx context.Context) (Source, error)
	// Stopping, when closed, ends the live logs, so that a server can end at once; it may be nil.
	Stopping <-chan struct{}
	// Patience is how long a look waits for all tasks to be read before it shows what was known before. Default
	// 50 ms.
	Patience time.Duration
	Version  string
	Now      func() time.Time // nil means time.Now
	Log      zerolog.Logger
}

// pages holds what the handlers share. It is not changed after New but for what has locks.
type pages struct {
	cfg     Config
	look    *look
	index   *index
	deck    *deck
	streams chan struct{} // a place per live log
}

// Pages is the handler of all pages.
type Pages struct {
	http.Handler
	pages *pages
}

// Warm reads what the first look would have to wait for: the open tasks, and, beside whoever asks, the
// ended ones. With ten thousand open tasks that takes a second. Nobody needs to wait for it.
func (p *Pages) Warm(ctx context.Context) error {
	if _, err := p.pages.deck.Open(ctx); err != nil {
		return fmt.Errorf("read the open tasks: %w", err)
	}
	if _, err := p.pages.index.ended(ctx); err != nil {
		return fmt.Errorf("read the ended tasks: %w", err)
	}
	return nil
}

// New returns the handler of all pages. It fails if there is neither a token nor an address that
// makes one unnecessary.
func New(cfg Config) (*Pages, error) {
	if cfg.Token == "" && !cfg.Open {
		return nil, errors.New("make the admin pages: neither a token nor an address of their own")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(cfg.Version)
	}
	look, err := newLook()
	if err != nil {
		return nil, fmt.Errorf("make the admin pages: %w", err)
	}
	deck := newDeck(cfg.Store)
	p := &pages{cfg: cfg, look: look, index: newIndex(cfg.Store, deck, cfg.Now, cfg.Patience), deck: deck, streams: make(chan struct{}, maxStreams)}
	metrics := cfg.Metrics.handler(&collector{store: cfg.Store, spent: cfg.Spent, vms: cfg.VMs, caps: cfg.VMCaps, alarms: cfg.Alarms, providers: cfg.Providers, missing: cfg.Missing, index: p.index, deck: deck, now: cfg.Now})

	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler("/status", http.StatusSeeOther))
	mux.HandleFunc("GET /status", p.board)
	mux.HandleFunc("GET /status.json", p.boardJSON)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}", p.task)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}/summary.json", p.summary)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}/runs/{run}", p.run)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}/runs/{run}/raw", p.raw)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}/runs/{run}/at/{offset}", p.record)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}/runs/{run}/events", p.events)
	mux.HandleFunc("GET /tasks/{owner}/{repo}/{n}/changes/{hash}", p.changes)
	if cfg.VMs != nil {
		mux.HandleFunc("GET /vms", p.vms)
		mux.HandleFunc("GET /vms.json", p.vmsJSON)
	}
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("/", p.notFound)
	return &Pages{Handler: newGuard(cfg, p).wrap(mux), pages: p}, nil
}

// notFound answers for pages that do not exist.
func (p *pages) notFound(w http.ResponseWriter, r *http.Request) {
	p.problem(w, r, http.StatusNotFound, "There is no such page.")
}

// fail answers for an error that is ours, and logs it.
func (p *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody is there to read it
	}
	p.cfg.Log.Error().Err(err).Str("path", r.URL.Path).Msg("admin page")
	p.problem(w, r, http.StatusInternalServerError, "The page could not be made. The log says why; a moment later it may work.")
}

// problem answers with an error: a page for browsers, else a line of text.
func (p *pages) problem(w http.ResponseWriter, r *http.Request, status int, words string) {
	if !wantsHTML(r) {
		http.Error(w, words, status)
		return
	}
	p.show(w, r, status, "problem", page{Title: fmt.Sprintf("%d %s", status, http.StatusText(status)), Data: words})
}
