package tether

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/state"
)

// RunToken returns the token of a run. It is valid only in the connection of the run's own VM.
func (h *Handler) RunToken(run string) string { return token(h.cfg.Key, "run", run) }

// VMToken returns the token with which the runner itself reads the repository.
func (h *Handler) VMToken(vm string) string { return token(h.cfg.Key, "vm", vm) }

// isToken reports whether a request has the token of a run or VM, derived from the key or from the previous one.
func (h *Handler) isToken(r *http.Request, kind, name string) bool {
	given := requestToken(r)
	return equal(given, token(h.cfg.Key, kind, name)) || h.cfg.PreviousKey != nil && equal(given, token(h.cfg.PreviousKey, kind, name))
}

func token(key []byte, kind, name string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(kind + "\x00" + name))
	return "errand-" + hex.EncodeToString(mac.Sum(nil))
}

// authenticate returns the task of the connection if the request has a valid token. Otherwise it answers and returns nil.
func (h *Handler) authenticate(w http.ResponseWriter, r *http.Request, p Peer) *state.Task {
	log := h.cfg.Log.Debug().Str("vm", p.VM).Str("task", p.Task.String()).Str("method", r.Method).Str("path", r.URL.Path)
	t, err := h.cfg.Tasks.Task(r.Context(), p.Task)
	switch {
	case err != nil || t == nil:
		log.Err(err).Msg("failed to read the task of a request from a VM")
		http.Error(w, "errand: the task cannot be read", http.StatusServiceUnavailable)
		return nil
	case h.authorized(r, t, p):
		log.Msg("request from a VM")
		return t
	}
	log.Msg("request from a VM with a wrong token")
	status := http.StatusUnauthorized
	if egress.IsProxyRequest(r) { // some clients send their password only after they were asked for it
		w.Header().Set("Proxy-Authenticate", `Basic realm="errand"`)
		status = http.StatusProxyAuthRequired
	}
	http.Error(w, "errand: the token is not this run's", status)
	return nil
}

// authorized reports whether the request has the token of the VM or of its active run. Other hosts require the token of the run, so
// that a leftover process on a VM, such as a daemon that pulls images, cannot reach them between runs.
func (h *Handler) authorized(r *http.Request, t *state.Task, p Peer) bool {
	ok := !egress.IsProxyRequest(r) && h.isToken(r, "vm", p.VM)
	if t.Run != nil && (t.Run.VM == p.VM || t.Run.State == state.RunLaunching) {
		ok = ok || h.isToken(r, "run", t.Run.ID)
	}
	return ok
}

// isActiveRun reports whether a request has the token of the task's active run. Nothing else on a VM may spend money: neither
// leftover processes of an ended run, nor a process that has read the VM's token.
func (h *Handler) isActiveRun(r *http.Request, p Peer) bool {
	run := taskOf(r).Run
	if run == nil || run.Kind == state.RunCheck {
		return false
	}
	if run.State != state.RunLaunching && (run.State != state.RunActive || run.VM != p.VM) {
		return false
	}
	return h.isToken(r, "run", run.ID)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// requestToken returns the token of a request from any of the places where agents and git put it.
func requestToken(r *http.Request) string {
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
