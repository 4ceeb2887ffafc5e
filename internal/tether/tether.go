// Package tether is errand's end of the only connection out of a VM: it answers the requests that arrive at the loopback
// port that the runner owns there.
//
// The connection determines which VM and which task a request is from, never the request's content; the bearer token only
// proves that it is from the run and not from another user of that VM. A VM reaches the models' APIs (/llm/, see package
// gateway), its task's repository for reading (/git/, see package gitproxy), errand itself (/callback/), hosts that the operator
// allows (as an HTTP proxy, see package egress), and nothing else.
//
// Start with [Keeper], then [Handler].
package tether

import (
	"context"
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

// Peer identifies the VM at the other end of a connection, and the task that it belongs to.
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
	// Key is the secret of this deployment from which the tokens of VMs and runs are derived.
	Key []byte
	// PreviousKey is the key before Key: tokens derived from it are accepted. It is nil unless the key was replaced.
	PreviousKey []byte
	// Gateway answers calls of models.
	Gateway *gateway.Gateway
	// Git answers reads of repositories.
	Git *gitproxy.Proxy
	// Callback answers a call of one of errand's tools by the task's active run; nil refuses it.
	Callback func(w http.ResponseWriter, r *http.Request, t *state.Task, tool string)
	// Egress forwards requests for other hosts that EgressPolicy allows a task; nil denies them all.
	Egress       *egress.Proxy
	EgressPolicy func(t *state.Task) egress.Policy
	// EgressDone is called with each request for another host, allowed or not.
	EgressDone func(t *state.Task, r egress.Request)
	Log        zerolog.Logger
}

// maxRequests is the maximum number of requests of a VM in flight, apart from those for other hosts.
const maxRequests = 64

// retrySoon is the Retry-After of a request beyond maxRequests, in seconds.
const retrySoon = "2"

// A Handler answers the requests of VMs.
type Handler struct{ cfg Config }

// New returns a Handler.
func New(cfg Config) *Handler { return &Handler{cfg: cfg} }

// For returns the handler of a VM's connection.
func (h *Handler) For(p Peer) http.Handler {
	routes, requests := h.routes(p), semaphore.NewWeighted(maxRequests)
	return h.logDenials(p, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/../") || strings.HasSuffix(r.URL.Path, "/..") { // also as %2e and %2f
			http.Error(w, "errand: paths must not contain ..", http.StatusBadRequest)
			return
		}
		if !egress.IsProxyRequest(r) { // package egress has its own limit
			if !requests.TryAcquire(1) {
				h.tooManyRequests(w, r)
				return
			}
			defer requests.Release(1)
		}
		t := h.authenticate(w, r, p)
		switch {
		case t == nil:
		case egress.IsProxyRequest(r):
			h.serveProxy(w, r, t, p)
		default:
			routes.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), taskKey{}, t)))
		}
	}))
}

// routes returns the handler of authenticated requests, except those for other hosts.
func (h *Handler) routes(p Peer) http.Handler {
	mux, memory := http.NewServeMux(), gateway.NewBodyMemory()
	mux.HandleFunc("/llm/{provider}/", func(w http.ResponseWriter, r *http.Request) {
		if !h.isActiveRun(r, p) {
			http.Error(w, "errand: only an active run may call the model", http.StatusUnauthorized)
			return
		}
		h.cfg.Gateway.Serve(w, r, taskOf(r), memory)
	})
	mux.HandleFunc("/git/{owner}/{repo}/", func(w http.ResponseWriter, r *http.Request) {
		h.cfg.Git.Serve(w, r, taskOf(r), gitproxy.Client{VM: p.VM, Token: requestToken(r)})
	})
	mux.HandleFunc("POST /callback/{tool}", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !h.isActiveRun(r, p):
			http.Error(w, "errand: only an active run may call tools", http.StatusUnauthorized)
		case h.cfg.Callback == nil:
			http.Error(w, "errand: there are no tools here", http.StatusNotFound)
		default:
			h.cfg.Callback(w, r, taskOf(r), r.PathValue("tool"))
		}
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "errand: there is nothing at this path", http.StatusNotFound)
	})
	return mux
}

// tooManyRequests answers a request beyond maxRequests, in the form that its program understands.
func (h *Handler) tooManyRequests(w http.ResponseWriter, r *http.Request) {
	message := fmt.Sprintf("a VM may have at most %d requests in flight", maxRequests)
	if !h.cfg.Gateway.RetryLater(w, r, message) {
		w.Header().Set("Retry-After", retrySoon)
		http.Error(w, "errand: "+message, http.StatusTooManyRequests)
	}
}

// serveProxy answers a request for another host.
func (h *Handler) serveProxy(w http.ResponseWriter, r *http.Request, t *state.Task, p Peer) {
	if h.cfg.Egress == nil {
		http.Error(w, "errand: no other hosts can be reached from here", http.StatusForbidden)
		return
	}
	h.cfg.Egress.Serve(w, r, p.VM, h.cfg.EgressPolicy(t), func(done egress.Request) { h.cfg.EgressDone(t, done) })
}

// taskKey is the key of the task in the context of a request.
type taskKey struct{}

func taskOf(r *http.Request) *state.Task { return r.Context().Value(taskKey{}).(*state.Task) }
