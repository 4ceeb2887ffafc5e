package tether

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/errand-bot/errand/internal/egress"
)

// The rate at which denied requests of a VM are logged, so that a VM cannot fill the log.
const (
	deniedLogBurst    = 20
	deniedLogInterval = time.Second
	maxLoggedPath     = 200 // bytes of a path, which the VM chooses
)

// logDenials logs the denied requests of a VM, except those for other hosts, which are logged elsewhere, and HEAD requests, which ask
// for nothing.
func (h *Handler) logDenials(p Peer, next http.Handler) http.Handler {
	limit := rate.NewLimiter(rate.Every(deniedLogInterval), deniedLogBurst)
	var suppressed atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if egress.IsProxyRequest(r) || r.Method == http.MethodHead { // some agents open the connection in advance, without a token
			next.ServeHTTP(w, r)
			return
		}
		a := &denialRecorder{ResponseWriter: w}
		next.ServeHTTP(a, r)
		switch {
		case !a.denied:
		case !limit.Allow():
			suppressed.Add(1)
		default:
			path := r.URL.Path
			h.cfg.Log.Info().Str("vm", p.VM).Str("task", p.Task.String()).Str("method", r.Method).
				Str("path", path[:min(len(path), maxLoggedPath)]).Int("status", a.status).
				Int64("suppressed", suppressed.Swap(0)).Msg("request from a VM denied")
		}
	})
}

// denialRecorder detects that errand itself denies a request, not the server that it was forwarded to.
type denialRecorder struct {
	http.ResponseWriter
	status int
	began  bool
	denied bool
}

// Unwrap is for http.ResponseController.
func (a *denialRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader records the status.
func (a *denialRecorder) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write detects a denial by the beginning of the answer: errand's own answers begin with its name, as text or as a message in JSON.
func (a *denialRecorder) Write(p []byte) (int, error) {
	if !a.began {
		a.began = true
		text := strings.TrimPrefix(string(p[:min(len(p), 20)]), `{"message":"`)
		a.denied = a.status >= 400 && a.status < 500 && strings.HasPrefix(text, "errand: ")
	}
	return a.ResponseWriter.Write(p)
}
