package gateway

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// A call is one request to a provider, usually a call of a model.
type call struct {
	g            *Gateway
	provider     string // the provider's name
	up           Provider
	method, path string // of the request, relative to the provider's API
	task         *state.Task
	knownState   *state.ProviderState // the stored state of the provider when the call was checked

	billable      bool             // it costs something and is a turn
	request       modelapi.Request // its parameters that determine the cost
	estimate      modelapi.Usage   // the reserved usage
	maxOutput     int64            // maximum output tokens
	loweredOutput int64            // the output limit that the caps require; 0 if none
	forwardedAt   time.Time
	sent          atomic.Bool // to the provider
	timedOut      bool        // the provider sent nothing for the idle timeout
	entry         entry       // among the calls in flight

	reservation string // the ID of the stored reservation; empty if there is none

	cut atomic.Pointer[cutOff] // set when errand has ended the call at a cap
}

// setCost sets the parameters of the request that determine its cost.
func (c *call) setCost(request modelapi.Request) {
	c.request = request
	if c.billable = c.up.API.IsBillable(c.path); c.billable {
		c.estimate, c.maxOutput = request.Usage, request.MaxOutput
	}
}

// isFree reports whether the call is made on a subscription, so that only its tokens count.
func (c *call) isFree() bool { return c.up.Subscription != nil }

// handleAnswer counts an answer, and handles errors that concern the provider.
func (c *call) handleAnswer(ctx context.Context, answer *http.Response) error {
	defer c.up.API.DropLongRetryAfter(answer.Header, c.g.now()) // after the header was read
	switch {
	case answer.StatusCode == http.StatusOK:
		answer.Body = c.meter(ctx, answer.Body, answer.Header.Get("Content-Type"))
		if c.knownState != nil {
			c.g.storeProviderState(ctx, c.provider, nil)
		}
	case answer.StatusCode >= http.StatusBadRequest && answer.StatusCode < http.StatusInternalServerError:
		return c.handleError(ctx, answer)
	}
	return nil
}

// handleError stores the state of the provider if an error answer means that every further call would fail, too. The
// answer is passed on unchanged, except for a refused key, which does not concern the VM, and for a limit, on which
// programs have to give up.
func (c *call) handleError(ctx context.Context, answer *http.Response) error {
	head, err := io.ReadAll(io.LimitReader(answer.Body, modelapi.MaxErrorBody))
	if err != nil {
		return err
	}
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), answer.Body), answer.Body}
	kind, until := c.up.API.ClassifyError(answer.StatusCode, answer.Header, head, c.g.now())
	if kind == "" {
		return nil
	}
	row := c.g.providerStateAfter(c.provider, kind, until, c.knownState)
	c.g.cfg.Log.Warn().Str("provider", c.provider).Str("task", c.task.Key.String()).Time("until", row.Until).
		Int("status", answer.StatusCode).Msg(row.Detail)
	c.g.storeProviderState(ctx, c.provider, &row)
	if err := c.record(ctx, UsageRecord{Wait: row.Waiting()}); err != nil {
		c.g.cfg.Log.Error().Err(err).Msg("failed to store why a run cannot call its model provider")
	}
	switch kind {
	case modelapi.ProblemKey:
		c.up.API.ReplaceWithDenial(answer, "permission_error", "errand: "+row.Detail)
	case modelapi.ProblemLimit:
		c.up.API.StopRetries(answer, row.Until, c.g.now())
	}
	return nil
}

// record stores a usage record of the call's run. It continues when the client has hung up.
func (c *call) record(ctx context.Context, u UsageRecord) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	u.Task, u.Run = c.entry.key, c.entry.run
	return c.g.cfg.Ledger.Record(ctx, u)
}
