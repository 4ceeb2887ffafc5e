package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// reachesNobody refuses a call that asks more of the provider than an answer of the model: to reach other hosts for
// the agent, unless the operator allows it, and what no operator would want paid, shown or left uncounted. What
// errand cannot read could say anything of that, to a provider that reads more than plain JSON.
func (g *Gateway) reachesNobody(r *http.Request, t *state.Task, up Provider, body []byte, refuse func(kind, message string)) bool {
	if len(body) == 0 {
		return true
	}
	if !json.Valid(body) {
		message := "it cannot be seen what is asked: the body is not JSON"
		refuse("permission_error", message)
		g.note(r, t, "a body that is not JSON", message)
		return false
	}
	return g.grants(r, t, up.API.Extra(body, up.WebTools), refuse)
}

// grants refuses what a call asks for beside an answer, if it asks for something.
func (g *Gateway) grants(r *http.Request, t *state.Task, extra *modelapi.Extra, refuse func(kind, message string)) bool {
	if extra == nil {
		return true
	}
	name := shortName(extra.Name)
	provider, _ := splitPath(r)
	message := whyNot(extra.Kind, name, provider)
	refuse("permission_error", message)
	g.note(r, t, noted(extra.Kind)+" "+name, message)
	return false
}

// whyNot tells an agent why it does not get what its call asks for beside an answer.
func whyNot(kind modelapi.ExtraKind, name, provider string) string {
	switch kind {
	case modelapi.ExtraKept:
		return fmt.Sprintf("agents are shown nothing that is stored in the provider's account, such as what %s names", name)
	case modelapi.ExtraLater:
		return fmt.Sprintf("answers come in the answer of their own request, where they are counted: not by %s", name)
	case modelapi.ExtraDear:
		return fmt.Sprintf("answers are paid at the model's plain price, not at that of %s", name)
	case modelapi.ExtraMany:
		return fmt.Sprintf("a call gets one answer: not more, by %s", name)
	case modelapi.ExtraUnclear:
		return fmt.Sprintf("what bounds the cost of a call has to be said once, by the name that the API has for it: not so, by %s", name)
	}
	return fmt.Sprintf("agents reach other hosts through errand's list of hosts, not by %s of the provider, which the operator has to allow (models.%s.web_tools)", name, provider)
}

// noted is what a refused wish is called beside the hosts that were refused.
func noted(kind modelapi.ExtraKind) string {
	if kind == modelapi.ExtraReach {
		return "tool"
	}
	return "wish"
}
