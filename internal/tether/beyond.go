package tether

import (
	"encoding/json"
	"net/http"

	"github.com/errand-bot/errand/state"
)

// reachesNobody refuses a call by which the provider would reach other hosts for the agent.
func (h *Handler) reachesNobody(r *http.Request, t *state.Task, up Upstream, body []byte, refuse func(kind, message string)) bool {
	if up.WebTools || !json.Valid(body) { // which providers refuse
		return true
	}
	tool := shortName(up.API.Hosted(body))
	if tool == unnamed {
		return true
	}
	message := "agents reach other hosts through errand's list of hosts, not by " + tool + " of the provider"
	refuse("permission_error", message)
	h.note(r, t, "tool "+tool, message)
	return false
}
