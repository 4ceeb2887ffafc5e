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

// ProviderStates remembers what keeps runs from asking the providers of models.
type ProviderStates interface {
	Upstream(ctx context.Context, name string) (*state.Upstream, error)
	SetUpstream(ctx context.Context, name string, u *state.Upstream) error
}

// probeTimeout bounds the request that looks whether a key works.
const probeTimeout = 15 * time.Second

// now is the time.
func (g *Gateway) now() time.Time {
	if g.cfg.Now != nil {
		return g.cfg.Now()
	}
	return time.Now()
}

// providerStateAfter makes of a trouble what is remembered of the provider. Before is what was known.
func (g *Gateway) providerStateAfter(name string, kind modelapi.Problem, until time.Time, before *state.Upstream) state.Upstream {
	now := g.now()
	row := state.Upstream{Kind: state.WaitKey, Since: now, Tries: 1}
	switch kind {
	case modelapi.ProblemLimit:
		return state.Upstream{Kind: state.WaitLimit, Since: now, Until: until, Detail: fmt.Sprintf("errand's account at the model's provider `%s` has used up its limit", name)}
	case modelapi.ProblemCredit:
		row.Detail = fmt.Sprintf("errand's account at the model's provider `%s` has no credit left", name)
		row.Hint = "The operator has to top it up; the task goes on by itself then."
	default:
		if row.Detail, row.Hint = g.cfg.Providers[name].subscriptionRefused(name); row.Detail != "" {
			break
		}
		row.Detail = fmt.Sprintf("the model's provider `%s` refuses errand's key", name)
		row.Hint = fmt.Sprintf("The operator has to set a key that is valid at `models.%s` and restart errand, or make this one valid again; the task goes on by itself then.", name)
	}
	if before != nil && before.Detail == row.Detail {
		row.Since, row.Tries = before.Since, before.Tries+1
	}
	row.Until = now.Add(g.backoff(kind, row.Tries))
	return row
}

// backoff is how long it takes until it is looked again whether a person has acted: a minute, doubled up to
// five for a key, which costs nothing to look at; ten minutes, doubled up to an hour, for credit, which takes a run.
func (g *Gateway) backoff(kind modelapi.Problem, tries int) time.Duration {
	first, most := g.cfg.Backoff, 5*g.cfg.Backoff
	if kind == modelapi.ProblemCredit {
		first, most = 10*g.cfg.Backoff, 60*g.cfg.Backoff
	}
	return min(first<<min(max(tries-1, 0), 10), most)
}

// storeProviderState stores what is known of a provider. What cannot be stored is learned again from its next answer.
func (g *Gateway) storeProviderState(ctx context.Context, name string, u *state.Upstream) {
	if g.cfg.ProviderStates == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := g.cfg.ProviderStates.SetUpstream(ctx, name, u); err != nil {
		g.cfg.Log.Error().Err(err).Str("provider", name).Msg("tether: remember what a provider says")
	}
}

// Ready says what a run that asks this provider has to wait for, nil if it may be started. A key that was
// refused is tried first, by a request that costs nothing.
func (g *Gateway) Ready(ctx context.Context, name string) (*state.Waiting, error) {
	up, ok := g.cfg.Providers[name]
	if !ok || g.cfg.ProviderStates == nil {
		return nil, nil
	}
	g.probing.Lock()
	defer g.probing.Unlock()
	row, err := g.cfg.ProviderStates.Upstream(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, nil
	case row.Until.After(g.now()):
		return row.Waiting(), nil
	case row.Kind != state.WaitKey || g.keyWorks(ctx, up):
		return nil, nil // an answer to the run forgets it
	}
	next := *row
	next.Tries++
	next.Until = g.now().Add(g.backoff(modelapi.ProblemKey, next.Tries))
	g.storeProviderState(ctx, name, &next)
	return next.Waiting(), nil
}

// keyWorks reports whether the provider takes the key. Where it cannot tell, a run has to find out.
func (g *Gateway) keyWorks(ctx context.Context, up Provider) bool {
	return Try(ctx, g.cfg.Transport, up) == nil
}

// ErrKeyRefused says that a provider of models does not take the key.
var ErrKeyRefused = errors.New("the provider refuses the key")

// Try asks a provider for its list of models, which costs nothing. The error is ErrKeyRefused, or why it cannot be
// reached; a provider that has no such list, or fails, is taken for one that takes the key.
func Try(ctx context.Context, through http.RoundTripper, up Provider) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(up.BaseURL, "/")+up.API.ProbePath(), nil)
	if err != nil {
		return fmt.Errorf("ask for a list of models: %w", err)
	}
	up.sign(req)
	if up.API == modelapi.Anthropic {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	resp, err := up.transport(through).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("ask for a list of models: %w", err)
	}
	_ = resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusUnauthorized,
		resp.StatusCode == http.StatusForbidden && up.Subscription == nil,     // which may be for calls only
		up.API == modelapi.Gemini && resp.StatusCode == http.StatusBadRequest: // its way to say so
		return ErrKeyRefused
	}
	return nil
}
