package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// AllowedModels says which models a task's run may call.
type AllowedModels struct {
	// Names are their names in the configuration; none means any.
	Names []string
	// Pending: what the run was started with is not stored yet, so that a refusal may be wrong.
	Pending bool
}

// allowedModels is what the configuration says, else the model that the run was started with.
func (g *Gateway) allowedModels(t *state.Task) AllowedModels {
	if g.cfg.AllowedModels != nil {
		return g.cfg.AllowedModels(t)
	}
	if t.Run.Model == "" {
		return AllowedModels{}
	}
	return AllowedModels{Names: []string{t.Run.Model}, Pending: t.Run.State == state.RunLaunching}
}

// holdToModel holds a call to the models of its run. It answers a call of another model itself, by refuse in the
// API's own form, and returns false.
func (g *Gateway) holdToModel(w http.ResponseWriter, r *http.Request, t *state.Task, up Provider, rest string, body []byte, refuse func(kind, message string)) bool {
	may := g.allowedModels(t)
	if !g.reachesNobody(r, t, up, body, refuse) {
		return false
	}
	if len(may.Names) == 0 {
		return true
	}
	named, err := up.API.Named(rest, body)
	if err == nil && slices.ContainsFunc(may.Names, func(m string) bool { return modelapi.Is(m, named) }) {
		return true
	}
	if may.Pending { // a moment later it is known: programs ask again after this answer
		w.Header().Set("Retry-After", "1")
		http.Error(w, "errand: the run is just being started", http.StatusServiceUnavailable)
		return false
	}
	message := fmt.Sprintf("this run may call %s, not %s", strings.Join(may.Names, ", "), shortName(named))
	if err != nil {
		message = fmt.Sprintf("this run may call %s, and %s", strings.Join(may.Names, ", "), err)
	}
	refuse("permission_error", message)
	g.note(r, t, "model "+shortName(named), message)
	return false
}

// note has the refusal shown beside what else the task's VM asked for and did not get.
func (g *Gateway) note(r *http.Request, t *state.Task, what, message string) {
	if g.cfg.Denied == nil {
		return
	}
	provider, _ := splitPath(r)
	g.cfg.Denied(t, egress.Request{At: g.now(), Method: r.Method, Host: what, Port: provider, Reason: message})
}

// unnamed is how people read an empty name.
const unnamed = "one without a name"

// shortName is a name from a VM as it may be shown and logged.
func shortName(s string) string {
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) && c != '`' {
			return c
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
	if c := []rune(s); len(c) > 80 {
		s = string(c[:80]) + "…"
	}
	if s == "" {
		return unnamed
	}
	return s
}
