package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/state"
)

// rule is who may see a page.
type rule int

// The rules. A page without one is shown to nobody.
const (
	_         rule = iota
	anyone         // everybody who is admitted; the page itself shows only what they may see
	readers        // of a task: operators, and people who can read its repository
	writers        // of a task: operators, and people with write access to its repository
	operators      // others are told that there is no such page
)

// route is a page with its rule.
type route struct {
	pattern string
	rule    rule
	serve   http.HandlerFunc
}

// taskContext is the context key of the task that a path names.
type taskContext struct{}

// guarded returns the handler of a page that enforces its rule.
func (p *pages) guarded(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch v := login.ViewerOf(r); {
		case rt.rule == anyone, rt.rule == operators && v.Operator():
			rt.serve(w, r)
		case rt.rule == readers, rt.rule == writers:
			t, err := p.readableTask(r)
			switch {
			case err != nil:
				p.fail(w, r, fmt.Errorf("find the task: %w", err))
			case t == nil:
				p.problem(w, r, http.StatusNotFound, noTask)
			case rt.rule == writers && !mayAct(v, t):
				p.problem(w, r, http.StatusForbidden, "Commands need write access to the repository of this task.")
			default:
				rt.serve(w, r.WithContext(context.WithValue(r.Context(), taskContext{}, t)))
			}
		default:
			p.notFound(w, r)
		}
	}
}

// mayAct reports whether the viewer may give commands to a task, as far as it is known before GitHub is asked again.
func mayAct(v login.Viewer, t *state.Task) bool { return v.MayWrite(t.Key.Repo) }

// noTask is also the answer for a task that the viewer may not see.
const noTask = "errand has no task for this issue. The repository may have been renamed, the issue was never assigned, or you cannot read the repository."

// readableTask returns the task that a path names, or nil if there is none that the viewer may see.
func (p *pages) readableTask(r *http.Request) (*state.Task, error) {
	n, err := strconv.Atoi(r.PathValue("n"))
	if err != nil || n <= 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(r.Context(), boardTime)
	defer cancel()
	key, err := p.endedTasks.find(ctx, r.PathValue("owner"), r.PathValue("repo"), n)
	if err != nil || key.IsZero() || !login.ViewerOf(r).MayRead(key.Repo) {
		return nil, err
	}
	return p.cfg.Store.Task(ctx, key)
}

// taskOf returns the task that the path of a page for readers names.
func taskOf(r *http.Request) *state.Task {
	t, _ := r.Context().Value(taskContext{}).(*state.Task)
	return t
}

// permit checks again and again whether the viewer may read a repository, for a response that takes long.
type permit struct {
	request *http.Request
	repo    int64
	checked time.Time
}

// newPermit returns the permit of a request that has just been admitted.
func newPermit(r *http.Request, repo int64) *permit {
	return &permit{request: r, repo: repo, checked: time.Now()}
}

// holds reports whether the session goes on and the viewer may read the repository. It checks at most every checkEvery.
func (p *permit) holds() bool {
	if time.Since(p.checked) < checkEvery {
		return true
	}
	p.checked = time.Now()
	v, ok := login.Again(p.request)
	return ok && v.MayRead(p.repo)
}

// Limits for one person who is not an operator.
const (
	actBurst    = 10              // commands at once
	actPause    = 6 * time.Second // time for one more command
	ownStreams  = 8               // concurrent live logs
	maxLimiters = 1000            // people whose commands are remembered, besides those who gave some just now
)

// shares limits how much of errand one person takes, by the ID of the account.
type shares struct {
	mu      sync.Mutex
	acts    map[int64]*rate.Limiter
	streams map[int64]int
}

func newShares() *shares { return &shares{acts: map[int64]*rate.Limiter{}, streams: map[int64]int{}} }

// act counts a command, and returns how long the person has to wait if there were too many.
func (s *shares) act(v login.Viewer, now time.Time) time.Duration {
	who, ok := v.Person()
	if !ok || v.Operator() {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.acts) >= maxLimiters {
		maps.DeleteFunc(s.acts, func(_ int64, l *rate.Limiter) bool { return l.TokensAt(now) >= actBurst })
	}
	l := s.acts[who.ID]
	if l == nil {
		l = rate.NewLimiter(rate.Every(actPause), actBurst)
		s.acts[who.ID] = l
	}
	if l.AllowN(now, 1) {
		return 0
	}
	return time.Duration((1 - l.TokensAt(now)) * float64(actPause))
}

// openStream counts a live log of a person and returns what ends it, or nil if the person has too many.
func (s *shares) openStream(v login.Viewer) (end func()) {
	who, ok := v.Person()
	if !ok || v.Operator() {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[who.ID] >= ownStreams {
		return nil
	}
	s.streams[who.ID]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.streams[who.ID]--; s.streams[who.ID] == 0 {
			delete(s.streams, who.ID)
		}
	}
}

// Missing is a permission or event that an installation of the App does not grant.
type Missing struct {
	Account    string `json:"account"`
	Permission string `json:"permission,omitempty"`
	Needed     string `json:"needed,omitempty"`  // the level: read or write
	Granted    string `json:"granted,omitempty"` // the level: none, read or write
	Event      string `json:"event,omitempty"`
	Required   bool   `json:"required"` // tasks wait for it
	For        string `json:"for"`      // its purpose
	URL        string `json:"url,omitempty"`
}

// access emits a metric for each missing permission or event.
func (c *collector) access(out chan<- prometheus.Metric) {
	if c.missing == nil {
		return
	}
	d := desc("app_missing", "Always 1, for each permission or event that an installation of the App does not grant.", "account", "permission", "event", "required")
	for _, m := range c.missing() {
		gauge(out, d, 1, m.Account, m.Permission, m.Event, strconv.FormatBool(m.Required))
	}
}
