// Package tether is errand's end of the only connection out of a VM: it answers the requests that arrive at the loopback
// port that the runner owns there.
//
// The connection determines which VM and which task a request is from, never the request's content; the bearer token only
// proves that it is from the run and not from another user of that VM. A VM reaches the models' APIs (/llm/, see package
// gateway), its task's repository for reading (/git/, see package gitproxy), errand itself (/callback/), hosts that the operator allows (as an
// HTTP proxy, see package egress), and nothing else.
//
// Start with [Keeper], then [Handler].
package tether

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/gitproxy"
	"github.com/errand-bot/errand/state"
)

// Peer is who is at the other end of a connection.
type Peer struct {
	VM   string
	Task state.TaskKey
}

// Tasks returns tasks as they are now.
type Tasks interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
}

// Config configures a Handler.
type Config struct {
	Tasks Tasks
	// Key is a secret of this deployment from which the tokens of VMs and runs are derived.
	Key []byte
	// Gateway answers calls of models.
	Gateway *gateway.Gateway
	// Git answers reads of repositories.
	Git *gitproxy.Proxy
	// Callback answers a call of one of errand's tools by the task's active run; nil refuses it.
	Callback func(w http.ResponseWriter, r *http.Request, t *state.Task, tool string)
	// Egress forwards requests for other hosts, as far as Egress allows them to a task; nil refuses them all.
	Egress       *egress.Proxy
	EgressPolicy func(t *state.Task) egress.Policy
	// EgressDone is called with each request for another host.
	EgressDone func(t *state.Task, r egress.Request)
	Log        zerolog.Logger
}

// maxRequests limits the requests of a VM in flight, apart from those for other hosts.
const maxRequests = 64

// Handler makes the handlers of connections.
type Handler struct{ cfg Config }

// New returns a Handler.
func New(cfg Config) *Handler { return &Handler{cfg: cfg} }

// RunToken is the token that a run shows. It is worth nothing outside its own VM's connection.
func (h *Handler) RunToken(run string) string { return h.token("run", run) }

// VMToken is the token with which the runner itself reads the repository.
func (h *Handler) VMToken(vm string) string { return h.token("vm", vm) }

func (h *Handler) token(kind, name string) string {
	mac := hmac.New(sha256.New, h.cfg.Key)
	mac.Write([]byte(kind + "\x00" + name))
	return "errand-" + hex.EncodeToString(mac.Sum(nil))
}

// For returns what a VM's connection is answered with.
func (h *Handler) For(p Peer) http.Handler {
	mux, requests, memory := http.NewServeMux(), semaphore.NewWeighted(maxRequests), gateway.NewBodyMemory()
	mux.HandleFunc("/llm/{provider}/", func(w http.ResponseWriter, r *http.Request) {
		if !h.isActiveRun(r, p) {
			http.Error(w, "errand: only a run that goes on reaches the model", http.StatusUnauthorized)
			return
		}
		h.cfg.Gateway.Serve(w, r, taskOf(r), memory)
	})
	mux.HandleFunc("/git/{owner}/{repo}/", func(w http.ResponseWriter, r *http.Request) {
		h.cfg.Git.Serve(w, r, taskOf(r), gitproxy.Client{VM: p.VM, Token: shownToken(r)})
	})
	mux.HandleFunc("POST /callback/{tool}", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !h.isActiveRun(r, p):
			http.Error(w, "errand: only a run that goes on may call", http.StatusUnauthorized)
		case h.cfg.Callback == nil:
			http.Error(w, "errand: nothing is taken this way", http.StatusNotFound)
		default:
			h.cfg.Callback(w, r, taskOf(r), r.PathValue("tool"))
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "errand: nothing is reached this way", http.StatusNotFound)
	})
	return h.logDenials(p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log := h.cfg.Log.Debug().Str("vm", p.VM).Str("task", p.Task.String()).Str("method", r.Method).Str("path", r.URL.Path)
		if strings.Contains(r.URL.Path, "/../") || strings.HasSuffix(r.URL.Path, "/..") { // also as %2e and %2f
			http.Error(w, "errand: this path leads out of itself", http.StatusBadRequest)
			return
		}
		if !egress.IsProxyRequest(r) { // which has a bound of its own
			if !requests.TryAcquire(1) {
				h.tooManyRequests(w, r)
				return
			}
			defer requests.Release(1)
		}
		t, err := h.cfg.Tasks.Task(r.Context(), p.Task)
		if err != nil || t == nil {
			http.Error(w, "errand: the task is not known", http.StatusServiceUnavailable)
			return
		}
		if !h.authorized(r, t, p) {
			log.Msg("tether: wrong token")
			if egress.IsProxyRequest(r) { // some clients show their password only when they are asked for it
				w.Header().Set("Proxy-Authenticate", `Basic realm="errand"`)
				http.Error(w, "errand: the token is not this run's", http.StatusProxyAuthRequired)
				return
			}
			http.Error(w, "errand: the token is not this run's", http.StatusUnauthorized)
			return
		}
		log.Msg("tether")
		if egress.IsProxyRequest(r) {
			h.serveProxy(w, r, t, p)
			return
		}
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), taskKey{}, t)))
	}))
}

// retrySoon is after how many seconds a program is told to ask again.
const retrySoon = "2"

// tooManyRequests has a request come again that is one too many of its VM.
func (h *Handler) tooManyRequests(w http.ResponseWriter, r *http.Request) {
	words := fmt.Sprintf("a VM has at most %d requests under way at once", maxRequests)
	if !h.cfg.Gateway.RetryLater(w, r, words) {
		w.Header().Set("Retry-After", retrySoon)
		http.Error(w, "errand: "+words, http.StatusTooManyRequests)
	}
}

// serveProxy answers a request for another host.
func (h *Handler) serveProxy(w http.ResponseWriter, r *http.Request, t *state.Task, p Peer) {
	if h.cfg.Egress == nil {
		http.Error(w, "errand: no other hosts are reached from here", http.StatusForbidden)
		return
	}
	h.cfg.Egress.Serve(w, r, p.VM, h.cfg.EgressPolicy(t), func(done egress.Request) { h.cfg.EgressDone(t, done) })
}

// taskKey is under which a request's context has its task.
type taskKey struct{}

func taskOf(r *http.Request) *state.Task { return r.Context().Value(taskKey{}).(*state.Task) }

// authorized reports whether the request shows the token of the VM or of its active run. Other hosts are reached with
// the run's alone: what stays behind on a VM, such as a daemon that pulls images, has no way out between runs.
func (h *Handler) authorized(r *http.Request, t *state.Task, p Peer) bool {
	shown := shownToken(r)
	ok := !egress.IsProxyRequest(r) && subtle.ConstantTimeCompare([]byte(shown), []byte(h.VMToken(p.VM))) == 1
	if t.Run != nil && t.Run.VM == p.VM || t.Run != nil && t.Run.State == state.RunLaunching {
		ok = ok || subtle.ConstantTimeCompare([]byte(shown), []byte(h.RunToken(t.Run.ID))) == 1
	}
	return ok
}

// isActiveRun reports whether a request for the model shows the token of the run that goes on now.
// Nothing else on a VM may spend money: not what an ended run left behind, nor who has come by the
// token with which the runner reads the repository.
func (h *Handler) isActiveRun(r *http.Request, p Peer) bool {
	run := taskOf(r).Run
	if run == nil || run.Kind == state.RunCheck {
		return false
	}
	if run.State != state.RunLaunching && (run.State != state.RunActive || run.VM != p.VM) {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(shownToken(r)), []byte(h.RunToken(run.ID))) == 1
}

// shownToken reads a token from where CLIs and git put it.
func shownToken(r *http.Request) string {
	if t, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return t
	}
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if t := r.Header.Get(name); t != "" {
			return t
		}
	}
	if t := r.Header.Get("Proxy-Authorization"); t != "" && egress.IsProxyRequest(r) {
		r = &http.Request{Header: http.Header{"Authorization": {t}}}
	}
	_, password, _ := r.BasicAuth()
	return password
}
