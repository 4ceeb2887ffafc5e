package tether

import (
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/errand-bot/errand/internal/egress"
)

// How often a VM's refusals are logged: this many at once, then one in this time. Whoever is refused for ever
// must not fill the log.
const (
	deniedLogBurst    = 20
	deniedLogInterval = time.Second
	maxLoggedPath     = 200 // of a path, which strangers write
)

// logDenials logs what is refused to a VM. Requests for other hosts are told by themselves, and HEAD asks for nothing.
func (h *Handler) logDenials(p Peer, next http.Handler) http.Handler {
	often := rate.NewLimiter(rate.Every(deniedLogInterval), deniedLogBurst)
	var untold atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if egress.IsProxyRequest(r) || r.Method == http.MethodHead { // a CLI warms its connection up, without a token
			next.ServeHTTP(w, r)
			return
		}
		a := &denialRecorder{ResponseWriter: w}
		next.ServeHTTP(a, r)
		switch {
		case !a.denied:
		case !often.Allow():
			untold.Add(1)
		default:
			path := r.URL.Path
			h.cfg.Log.Info().Str("vm", p.VM).Str("task", p.Task.String()).Str("method", r.Method).Str("path", path[:min(len(path), maxLoggedPath)]).
				Int("status", a.status).Int64("untold", untold.Swap(0)).Msg("tether: refused")
		}
	})
}

// denialRecorder notices that a request is refused by errand itself, not by whom it was passed on to.
type denialRecorder struct {
	http.ResponseWriter
	status int
	began  bool
	denied bool
}

// Unwrap is for http.ResponseController.
func (a *denialRecorder) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the status.
func (a *denialRecorder) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Write looks at how the answer begins: all that errand says itself begins with its name, as text or as a
// message in JSON.
func (a *denialRecorder) Write(p []byte) (int, error) {
	if !a.began {
		a.began = true
		a.denied = a.status >= 400 && a.status < 500 && strings.HasPrefix(strings.TrimPrefix(string(p[:min(len(p), 20)]), `{"message":"`), "errand: ")
	}
	return a.ResponseWriter.Write(p)
}
