package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// A rule checks one property of a call: of its request, or of the budget, turns and calls in flight of its run. The
// check returns a denial, or nil if the call may pass. It is a pure function of its argument.
type rule[T any] struct {
	name  string // for the log
	check func(T) *denial
}

// All reasons why the gateway denies a call, in the order in which they are checked.
var (
	// endpointRules are checked before the request's body is read.
	endpointRules = []rule[*request]{
		{"endpoint", denyEndpoint},
	}
	// requestRules are checked when the body has been read. A body that is too large is denied while it is read.
	requestRules = []rule[*request]{
		{"json", denyInvalidJSON},
		{"feature", denyFeature},
		{"model", denyModel},
		{"ambiguous", denyAmbiguous},
	}
	// admissionRules are checked last, and again while the call waits for earlier ones; see [call.authorize].
	admissionRules = []rule[*standing]{
		{"run", denyEndedRun},
		{"cap", denyOverCap},
		{"turns", denyOverTurns},
		{"turns-in-flight", denyReservedTurns},
		{"budget-in-flight", denyReservedBudget},
		{"calls-in-flight", denyTooManyCalls},
	}
)

// firstDenial returns the denial of the first rule that denies the subject, or nil.
func firstDenial[T any](rules []rule[T], subject T) *denial {
	for _, r := range rules {
		if d := r.check(subject); d != nil {
			d.rule = r.name
			return d
		}
	}
	return nil
}

// A request is a call as the rules about requests see it.
type request struct {
	api          modelapi.API
	provider     string
	webTools     bool // the provider may reach other hosts for agents
	method, path string
	body         []byte // empty for requests without one
	allowed      AllowedModels
	cost         func() modelapi.Request // the parameters of the body that determine the cost
}

// AllowedModels limits the models that a task's run may call.
type AllowedModels struct {
	// Names are their names in the configuration; none means any.
	Names []string
	// Pending is set while the model of the run is not stored yet, so that a denial might be wrong.
	Pending bool
}

// allowedModels returns the configured limit, or else the model that the run was started with.
func (g *Gateway) allowedModels(t *state.Task) AllowedModels {
	if g.cfg.AllowedModels != nil {
		return g.cfg.AllowedModels(t)
	}
	if t.Run.Model == "" {
		return AllowedModels{}
	}
	return AllowedModels{Names: []string{t.Run.Model}, Pending: t.Run.State == state.RunLaunching}
}

// denyEndpoint denies everything but the API's endpoints for model calls, token counts and lists of models.
func denyEndpoint(r *request) *denial {
	if r.api.Allows(r.method, r.path) {
		return nil
	}
	return newRuleDenial("agents may only call the model and no other endpoint of its API: not " + r.method + " " + r.path)
}

// denyInvalidJSON denies a body that the other rules cannot read, because the provider may accept more than plain JSON.
func denyInvalidJSON(r *request) *denial {
	if len(r.body) == 0 || json.Valid(r.body) {
		return nil
	}
	d := newRuleDenial("the request cannot be checked: its body is not JSON")
	d.listed = "a body that is not JSON"
	return d
}

// denyFeature denies features of the provider beyond one answer of the model: access to other hosts, unless the
// operator allows it, content that is stored in the account, and features that are not counted or cost more than the
// model's price.
func denyFeature(r *request) *denial {
	if len(r.body) == 0 {
		return nil
	}
	return featureDenied(r, r.api.FindFeature(r.body, r.webTools))
}

// denyAmbiguous denies a request whose limits of cost different readers could read differently.
func denyAmbiguous(r *request) *denial { return featureDenied(r, r.cost().Ambiguous) }

// featureDenied returns the denial of a feature, or nil if there is none.
func featureDenied(r *request, extra *modelapi.Feature) *denial {
	if extra == nil {
		return nil
	}
	name := shortName(extra.Name)
	d := newRuleDenial(featureMessage(extra.Kind, name, r.provider))
	d.listed = "feature " + name
	if extra.Kind == modelapi.FeatureNetwork {
		d.listed = "tool " + name
	}
	return d
}

// featureMessage tells an agent why a feature is denied.
func featureMessage(kind modelapi.FeatureKind, name, provider string) string {
	switch kind {
	case modelapi.FeatureStored:
		return fmt.Sprintf("agents cannot use content that is stored in the provider's account, as %s does", name)
	case modelapi.FeatureDeferred:
		return fmt.Sprintf("the answer has to come in the response to the call, where it is counted; %s is not allowed", name)
	case modelapi.FeatureSurcharge:
		return fmt.Sprintf("calls are charged at the model's standard price; %s is not allowed", name)
	case modelapi.FeatureMultiple:
		return fmt.Sprintf("a call gets one answer; %s is not allowed", name)
	case modelapi.FeatureAmbiguous:
		return fmt.Sprintf("a parameter that limits the cost has to appear once, under the API's name for it; %s does not", name)
	}
	return fmt.Sprintf("agents reach other hosts only through errand's list of hosts; %s of the provider is not allowed unless the operator "+
		"sets models.%s.web_tools", name, provider)
}

// denyModel denies calls of models other than the run's. While the run's model is not stored yet, the program has to
// retry.
func denyModel(r *request) *denial {
	if len(r.allowed.Names) == 0 {
		return nil
	}
	named, err := r.api.RequestedModel(r.path, r.body)
	if err == nil && slices.ContainsFunc(r.allowed.Names, func(m string) bool { return modelapi.SameModel(m, named) }) {
		return nil
	}
	if r.allowed.Pending {
		return &denial{status: http.StatusServiceUnavailable, message: "the run is being started", retryAfter: "1"}
	}
	may := strings.Join(r.allowed.Names, ", ")
	d := newRuleDenial(fmt.Sprintf("this run may call %s, not %s", may, shortName(named)))
	if err != nil {
		d = newRuleDenial(fmt.Sprintf("this run may call %s, and %s", may, err))
	}
	d.listed = "model " + shortName(named)
	return d
}

// unnamed is how people read an empty name.
const unnamed = "one without a name"

// shortName returns a name from a VM in a form that may be shown and logged.
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

// denyEndedRun denies calls of a run that has ended or is being stopped.
func denyEndedRun(s *standing) *denial {
	if s.run != nil {
		return nil
	}
	return newCapDenial("only an active run may call the model", nil)
}

// denyOverCap denies a call if a cap is reached, or leaves too little for the call's minimum.
func denyOverCap(s *standing) *denial {
	if s.cap == nil {
		return nil
	}
	return newCapDenial(s.cap.Detail, s.cap)
}

// denyOverTurns denies a call if the run has used up its turns. Adapters recognize the message.
func denyOverTurns(s *standing) *denial {
	if s.run.MaxTurns <= 0 || s.turns < s.run.MaxTurns {
		return nil
	}
	return newCapDenial(fmt.Sprintf("the run's turns are used up (%d)", s.run.MaxTurns), s.run.OutOfTurnsDenial())
}

// denyReservedTurns denies a call for now if earlier calls in flight may use up the run's turns.
func denyReservedTurns(s *standing) *denial {
	if s.turnsInFlight == 0 || s.run.MaxTurns <= 0 || s.turns+s.turnsInFlight < s.run.MaxTurns {
		return nil
	}
	return newTemporaryDenial("calls in flight may use the run's last turns")
}

// denyReservedBudget denies a call for now if earlier calls in flight may use up a cap.
func denyReservedBudget(s *standing) *denial {
	if !s.budgetReserved {
		return nil
	}
	return newTemporaryDenial(budgetReserved)
}

// denyTooManyCalls denies a call for now if its run has the maximum number of calls in flight.
func denyTooManyCalls(s *standing) *denial {
	if s.callsInFlight < maxCalls {
		return nil
	}
	return newTemporaryDenial(fmt.Sprintf("a run may have at most %d calls in flight", maxCalls))
}
