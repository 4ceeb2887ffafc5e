package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// ProviderStates stores why runs cannot call a provider, by its name: a limit, a refused key or missing credit.
type ProviderStates interface {
	Get(ctx context.Context, name string) (*state.ProviderState, error)
	Set(ctx context.Context, name string, u *state.ProviderState) error
}

// probeTimeout limits the request that checks whether a key works.
const probeTimeout = 15 * time.Second

// now returns the current time.
func (g *Gateway) now() time.Time {
	if g.cfg.Now != nil {
		return g.cfg.Now()
	}
	return time.Now()
}

// providerStateAfter returns the state of a provider after a problem. Before is its state until then.
func (g *Gateway) providerStateAfter(name string, kind modelapi.Problem, until time.Time, before *state.ProviderState) state.ProviderState {
	now := g.now()
	row := state.ProviderState{Kind: state.WaitKey, Since: now, Tries: 1}
	switch kind {
	case modelapi.ProblemLimit:
		detail := fmt.Sprintf("errand's account at the model's provider `%s` has used up its limit", name)
		return state.ProviderState{Kind: state.WaitLimit, Since: now, Until: until, Detail: detail}
	case modelapi.ProblemCredit:
		row.Detail = fmt.Sprintf("errand's account at the model's provider `%s` has no credit left", name)
		row.Hint = "The operator has to top it up; the task then continues automatically."
	default:
		if row.Detail, row.Hint = g.cfg.Providers[name].subscriptionRefused(name); row.Detail != "" {
			break
		}
		row.Detail = fmt.Sprintf("the model's provider `%s` refuses errand's key", name)
		row.Hint = fmt.Sprintf("The operator has to set a valid key at `models.%s` and restart errand, or make this one valid again; "+
			"the task then continues automatically.", name)
	}
	if before != nil && before.Detail == row.Detail {
		row.Since, row.Tries = before.Since, before.Tries+1
	}
	row.Until = now.Add(g.backoff(kind, row.Tries))
	return row
}

// backoff returns how long to wait before the next check whether the operator has solved a problem. It doubles with
// each try: from one to five times Config.Backoff for a key, which is checked for free, and from ten to sixty times for
// credit, which takes a run.
func (g *Gateway) backoff(kind modelapi.Problem, tries int) time.Duration {
	first, most := g.cfg.Backoff, 5*g.cfg.Backoff
	if kind == modelapi.ProblemCredit {
		first, most = 10*g.cfg.Backoff, 60*g.cfg.Backoff
	}
	return min(first<<min(max(tries-1, 0), 10), most)
}

// storeProviderState stores the state of a provider. If that fails, its next answer shows the same state again.
func (g *Gateway) storeProviderState(ctx context.Context, name string, u *state.ProviderState) {
	if g.cfg.ProviderStates == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := g.cfg.ProviderStates.Set(ctx, name, u); err != nil {
		g.cfg.Log.Error().Err(err).Str("provider", name).Msg("failed to store the state of a model provider")
	}
}

// ProviderWait returns why a run that calls this provider has to wait, or nil. It first checks a refused key, by a
// request that costs nothing.
func (g *Gateway) ProviderWait(ctx context.Context, name string) (*state.Waiting, error) {
	up, ok := g.cfg.Providers[name]
	if !ok || g.cfg.ProviderStates == nil {
		return nil, nil
	}
	g.probing.Lock()
	defer g.probing.Unlock()
	row, err := g.cfg.ProviderStates.Get(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, nil
	case row.Until.After(g.now()):
		return row.Waiting(), nil
	case row.Kind != state.WaitKey || g.keyWorks(ctx, up):
		return nil, nil // the first answer to the run deletes the state
	}
	next := *row
	next.Tries++
	next.Until = g.now().Add(g.backoff(modelapi.ProblemKey, next.Tries))
	g.storeProviderState(ctx, name, &next)
	return next.Waiting(), nil
}

// keyWorks reports whether the provider accepts the key. It also does if the provider cannot be asked, so that a run
// finds out.
func (g *Gateway) keyWorks(ctx context.Context, up Provider) bool {
	err := CheckKey(ctx, g.cfg.Transport, up)
	var unclear UnclearError
	return err == nil || errors.As(err, &unclear)
}

// ErrKeyRefused is returned by CheckKey if the provider refuses the key.
var ErrKeyRefused = errors.New("the provider refuses the key")

// UnclearError is returned by CheckKey with the status of a provider that fails, or that has no list of models.
type UnclearError struct{ Status int }

func (e UnclearError) Error() string {
	return fmt.Sprintf("the provider answers %d to a request for its list of models, so it is not known whether it accepts the key", e.Status)
}

// CheckKey checks a provider's key by requesting its list of models, which costs nothing. It returns ErrKeyRefused, an
// UnclearError, or why the provider cannot be reached.
func CheckKey(ctx context.Context, transport http.RoundTripper, up Provider) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(up.BaseURL, "/")+up.API.ProbePath(), nil)
	if err != nil {
		return fmt.Errorf("request the list of models: %w", err)
	}
	up.setKey(req)
	if up.API == modelapi.Anthropic {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	resp, err := up.transport(transport).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("request the list of models: %w", err)
	}
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized,
		resp.StatusCode == http.StatusForbidden && up.Subscription == nil,     // a subscription may be for calls only
		up.API == modelapi.Gemini && resp.StatusCode == http.StatusBadRequest: // its answer for a refused key
		return ErrKeyRefused
	case resp.StatusCode >= http.StatusMultipleChoices:
		return UnclearError{resp.StatusCode}
	}
	return nil
}
