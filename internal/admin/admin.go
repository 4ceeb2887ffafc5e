// Package admin serves the operator's pages: a board of all tasks, a page per task with its runs and the live log, the
// same data as JSON, and metrics for Prometheus. Operators act on tasks through
// it, too: by buttons, and by the commands of errand's program.
//
// Pages are rendered on the server, without a build step and external resources, and work without scripts. Text by
// people, agents and VMs is always escaped, and long texts are cut with a link to the full version. All pages require a
// token, or a sign-in with GitHub, unless they have a separate address that only operators can reach.
//
// Start here: [New] and routes, the table of routes with the rule for each (access.go), then board.go and task.go.
package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// Tasks reads tasks. store.Store implements it.
type Tasks interface {
	EachOpen(ctx context.Context, fn func(store.Listed) error) error
	AllTasks(ctx context.Context, after state.TaskKey, limit int) ([]*state.Task, error)
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	Counts(ctx context.Context) (map[state.Phase]int, error)
}

// Store reads the tasks, jobs and deliveries that the pages show.
type Store interface {
	Tasks
	Jobs(ctx context.Context, key state.TaskKey) ([]state.Job, error)
	PoisonDeliveries(ctx context.Context, limit int) ([]store.Delivery, error)
}

var _ Store = (*store.Store)(nil)

// Transcripts opens a run's transcript, in the format of internal/runlog, which may still grow. Its error for a missing
// transcript is fs.ErrNotExist.
type Transcripts interface {
	OpenTranscript(run string) (*os.File, error)
}

// Audit keeps the actions of operators. store.Audit implements it.
type Audit interface {
	Add(ctx context.Context, a store.Action) error
	List(ctx context.Context, n int, keep func(store.Action) bool) ([]store.Action, error)
}

// Config configures the pages.
type Config struct {
	Store       Store
	Transcripts Transcripts
	Diffs       Diffs // may be nil
	// Spent returns the cost of all tasks today and this month (UTC), each with its cap. Nil hides them.
	Spent func(ctx context.Context) (day, month state.Money, err error)
	// Reached returns the newest n requests of a task's VMs to other hosts, oldest first, and the total number of
	// requests. Nil hides them.
	Reached func(task state.TaskKey, n int) ([]egress.Request, int, error)
	// Providers returns the model providers that are unavailable and the reasons, by name. Nil hides them.
	Providers func(ctx context.Context) (map[string]state.ProviderState, error)
	// Missing returns the permissions and events that the App's installations do not grant. Nil hides them.
	Missing func() []Missing
	// Unstarted returns the open issues with an old trigger, and Adopt starts the task of one of them: it returns who set the trigger, for
	// people, or a Refusal. Nil hides them.
	Unstarted func() []Unstarted
	Adopt     func(ctx context.Context, repo string, issue int) (string, error)
	// Preview returns an issue for which the operator wants to begin a task, and Begin begins it if the issue still has the text of that
	// hash, completes the action and stores it in Audit. Their errors are a Refusal, of Begin also an UnchangedError if it is sure that
	// nothing changed, or another error. Nil hides them.
	Preview func(ctx context.Context, repo string, issue int) (Preview, error)
	Begin   func(ctx context.Context, repo string, issue int, text string, a store.Action) (store.Action, error)
	// Act gives a command of an operator (by is zero), or of a person, whose permission it checks, to a task, completes the action with the
	// result, and stores it in Audit. Its error is an UnchangedError if it is sure that nothing changed. Nil hides the actions, and
	// needs no Audit.
	Act   func(ctx context.Context, t *state.Task, by state.Person, order state.Order, a store.Action) (store.Action, error)
	Audit Audit
	// Pauses pauses and resumes work, and stores its actions in Audit. Nil hides it.
	Pauses *Pauses
	// Doctor returns the report of `errand doctor`, which is served as JSON. Nil hides it.
	Doctor func(ctx context.Context) any
	// Backup makes a consistent copy of the store and the files, for the archive that `errand backup` gets. Its error is a Refusal while
	// another backup is made. Nil hides it, and needs no Audit.
	Backup func(ctx context.Context) (BackupCopy, error)
	// Purge deletes the texts of an ended task, and stores the action, completed with the result, in Audit. Its error is a Refusal, or
	// comes with a result if the task is purged but some of its texts may be left. Nil hides it, and needs no Audit.
	Purge func(ctx context.Context, key state.TaskKey, a store.Action) (store.Purged, error)
	// Destroy deletes the VM and the saved work of a task, by force also if it uses them, and stores the action, completed with the
	// result, in Audit. An error that is a Refusal is not stored. Nil hides it, and needs no Audit.
	Destroy func(ctx context.Context, key state.TaskKey, force bool, a store.Action) (Destroyed, error)
	// Metrics are served under /metrics; nil creates new ones.
	Metrics *Metrics
	// Token is required for every page. It may be empty only if Open is set.
	Token string
	// Open states that the pages have a separate address that only operators can reach.
	Open bool
	// Secure states that browsers reach the pages only by HTTPS. Cookies are then never sent over HTTP.
	Secure bool
	// Facts stores the session generation and the accounts of operators across restarts; nil keeps them in memory.
	Facts login.Facts
	// GitHub lets people sign in with GitHub. They see the tasks of the repositories that they can read. Nil turns it off.
	GitHub *login.GitHub
	// VMs reads the VMs and their cost; nil hides them. VMCaps are the configured caps. Alarms returns provider
	// resources that need a person's attention; it may be nil.
	VMs    VMs
	VMCaps vm.Caps
	Alarms func() []Alarm
	// Describe returns the kind of VMs in use; nil hides it.
	Describe func(ctx context.Context) (Source, error)
	// Stopping, when closed, ends the live logs, so that the server can shut down quickly. It may be nil.
	Stopping <-chan struct{}
	// Patience is how long a page waits for a scan of all tasks before it shows the result of the previous one. It
	// defaults to 50 ms.
	Patience time.Duration
	Version  string
	Now      func() time.Time // nil means time.Now
	Log      zerolog.Logger
}

// pages holds the state shared by the handlers. After New only its synchronized fields change.
type pages struct {
	cfg        Config
	templates  *templates
	endedTasks *endedTasks
	openTasks  *openTasks
	streams    chan struct{} // one slot per live log
	examining  chan struct{} // a slot for one report of the doctor
	shares     *shares
}

// Pages is the handler of all pages.
type Pages struct {
	http.Handler
	pages *pages
}

// Warm reads the open tasks and starts reading the ended ones, so that the first page need not wait. Ten thousand open
// tasks take about a second. Calling it is optional.
func (p *Pages) Warm(ctx context.Context) error {
	if _, err := p.pages.openTasks.Open(ctx); err != nil {
		return fmt.Errorf("read the open tasks: %w", err)
	}
	if _, err := p.pages.endedTasks.ended(ctx); err != nil {
		return fmt.Errorf("read the ended tasks: %w", err)
	}
	return nil
}

// New returns the handler of all pages. It fails if the pages would be reachable without a token, that is if cfg has
// neither Token nor Open.
func New(cfg Config) (*Pages, error) {
	if cfg.Token == "" && !cfg.Open {
		return nil, errors.New("create the admin pages: neither a token nor a separate address")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics(cfg.Version)
	}
	sets, err := newTemplates()
	if err != nil {
		return nil, fmt.Errorf("create the admin pages: %w", err)
	}
	openTasks := newOpenTasks(cfg.Store)
	p := &pages{
		cfg:        cfg,
		templates:  sets,
		endedTasks: newEndedTasks(cfg.Store, openTasks, cfg.Now, cfg.Patience),
		openTasks:  openTasks,
		streams:    make(chan struct{}, maxStreams),
		examining:  make(chan struct{}, 1),
		shares:     newShares(),
	}
	metrics := cfg.Metrics.handler(&collector{
		store:      cfg.Store,
		spent:      cfg.Spent,
		vms:        cfg.VMs,
		caps:       cfg.VMCaps,
		alarms:     cfg.Alarms,
		providers:  cfg.Providers,
		missing:    cfg.Missing,
		pauses:     cfg.Pauses,
		endedTasks: p.endedTasks,
		openTasks:  openTasks,
		now:        cfg.Now,
	})

	guard, err := login.New(login.Config{
		Token:  cfg.Token,
		Secure: cfg.Secure,
		Facts:  cfg.Facts,
		GitHub: cfg.GitHub,
		Now:    cfg.Now,
		Log:    cfg.Log,
		Show:   p.loginForm,
		Fail:   p.fail,
		Unavailable: func(w http.ResponseWriter, r *http.Request, words string) {
			p.problem(w, r, http.StatusServiceUnavailable, words)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("create the admin pages: %w", err)
	}
	mux := http.NewServeMux()
	for _, rt := range p.routes(metrics) {
		mux.HandleFunc(rt.pattern, p.guarded(rt))
	}
	return &Pages{Handler: harden(guard.Wrap(mux)), pages: p}, nil
}

// routes returns all pages that need an admission, each with the rule for who may see it.
func (p *pages) routes(metrics http.Handler) []route {
	cfg := p.cfg
	list := []route{
		{"GET /{$}", anyone, http.RedirectHandler("/status", http.StatusSeeOther).ServeHTTP},
		{"GET /status", anyone, p.board},
		{"GET /status.json", anyone, p.boardJSON},
		{"GET /tasks/{owner}/{repo}/{n}", readers, p.task},
		{"GET /tasks/{owner}/{repo}/{n}/summary.json", readers, p.summary},
		{"GET /tasks/{owner}/{repo}/{n}/task.json", readers, p.taskJSON},
		{"GET /tasks/{owner}/{repo}/{n}/runs/{run}", readers, p.run},
		{"GET /tasks/{owner}/{repo}/{n}/runs/{run}/raw", readers, p.raw},
		{"GET /tasks/{owner}/{repo}/{n}/runs/{run}/at/{offset}", readers, p.record},
		{"GET /tasks/{owner}/{repo}/{n}/runs/{run}/events", readers, p.events},
		{"GET /tasks/{owner}/{repo}/{n}/changes/{hash}", readers, p.changes},
		{"GET /metrics", operators, metrics.ServeHTTP},
		{"/", anyone, p.notFound},
	}
	if cfg.Adopt != nil {
		list = append(list, route{"POST /tasks/{owner}/{repo}/{n}/adopt", operators, p.adopt})
	}
	if cfg.Begin != nil {
		list = append(list,
			route{"GET /tasks/{owner}/{repo}/{n}/run.json", operators, p.preview},
			route{"POST /tasks/{owner}/{repo}/{n}/run", operators, p.begin})
	}
	if cfg.Act != nil {
		list = append(list,
			route{"POST /tasks/{owner}/{repo}/{n}/actions/{action}", writers, p.act},
			route{"GET /tasks/{owner}/{repo}/{n}/actions/{action}", writers, p.confirm})
	}
	if cfg.Purge != nil {
		list = append(list,
			route{"POST /tasks/{owner}/{repo}/{n}/actions/purge", operators, p.purge},
			route{"GET /tasks/{owner}/{repo}/{n}/actions/purge", operators, p.confirmPurge})
	}
	if cfg.Destroy != nil {
		list = append(list,
			route{"POST /tasks/{owner}/{repo}/{n}/actions/destroy", operators, p.destroy},
			route{"GET /tasks/{owner}/{repo}/{n}/actions/destroy", operators, p.confirmDestroy})
	}
	if cfg.Audit != nil {
		list = append(list, route{"GET /audit.json", anyone, p.audit})
	}
	if cfg.Pauses != nil {
		list = append(list,
			route{"GET /pause", operators, p.pauseForm},
			route{"POST /pause", operators, p.setPause},
			route{"POST /resume", operators, p.setPause},
			route{"GET /pause.json", operators, p.paused})
	}
	if cfg.Backup != nil {
		list = append(list, route{"POST /backup", operators, p.backup})
	}
	if cfg.Doctor != nil {
		list = append(list, route{"GET /doctor.json", operators, p.doctor})
	}
	if cfg.VMs != nil {
		list = append(list, route{"GET /vms", anyone, p.vms}, route{"GET /vms.json", anyone, p.vmsJSON})
	}
	return list
}

// loginForm responds with the login form.
func (p *pages) loginForm(w http.ResponseWriter, r *http.Request, status int, form login.Form) {
	p.show(w, r, status, "login", page{Title: "Log in", Plain: true, Again: form.Reload, Data: form})
}

// notFound responds for pages that do not exist.
func (p *pages) notFound(w http.ResponseWriter, r *http.Request) {
	p.problem(w, r, http.StatusNotFound, "This page does not exist.")
}

// fail logs an internal error and responds with an error page.
func (p *pages) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	p.cfg.Log.Error().Err(err).Str("path", r.URL.Path).Msg("failed to serve an admin page")
	p.problem(w, r, http.StatusInternalServerError, "The page could not be created. The log has the cause; try again in a moment.")
}

// problem responds with an error: a page for browsers, otherwise a line of text.
func (p *pages) problem(w http.ResponseWriter, r *http.Request, status int, words string) {
	if !login.WantsHTML(r) {
		http.Error(w, words, status)
		return
	}
	p.show(w, r, status, "problem", page{Title: fmt.Sprintf("%d %s", status, http.StatusText(status)), Data: words})
}

// doctor answers with the report of `errand doctor`, as JSON. It asks GitHub, the VM provider and the models' providers, so only one
// report is made at a time.
func (p *pages) doctor(w http.ResponseWriter, r *http.Request) {
	select {
	case p.examining <- struct{}{}:
		defer func() { <-p.examining }()
	case <-r.Context().Done():
		return
	}
	p.json(w, r, p.cfg.Doctor(r.Context()))
}
