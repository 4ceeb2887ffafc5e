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

// call is one request for the model.
type call struct {
	g            *Gateway
	provider     string // the provider's name
	up           Provider
	method, path string // of the request, relative to the provider's API
	task         *state.Task
	requestBytes int64           // bytes of the request
	knownState   *state.Upstream // what was known of the provider as it was asked

	billable      bool             // it costs something and is a turn
	request       modelapi.Request // what it asks for
	estimate      modelapi.Usage   // what it may come to use
	maxOutput     int64            // tokens of output that its answer has at most
	loweredOutput int64            // the bound of output that it is given for a cap; 0 if none
	forwardedAt   time.Time        // when it was passed on, by the clock of this host
	sent          atomic.Bool      // it has gone to the provider
	timedOut      bool             // its provider said nothing for too long
	entry         entry            // among the calls under way

	reservation string // its id in the journal; empty if it has none, or none any more

	cut atomic.Pointer[cutOff] // errand has ended it for a cap
}

// setCost sets what the call may cost by its request, whose body has so many bytes.
func (c *call) setCost(request modelapi.Request, bytes int64) {
	c.request = request
	if c.billable = c.up.API.IsBillable(c.path); c.billable {
		c.requestBytes, c.estimate, c.maxOutput = bytes, request.Usage, request.MaxOutput
	}
}

// free reports whether the call costs nothing: it is made on a subscription.
func (c *call) free() bool { return c.up.Subscription != nil }

// handleAnswer has an answer counted, and learns from one that says something about the provider.
func (c *call) handleAnswer(ctx context.Context, answer *http.Response) error {
	defer c.up.API.DropLongRetryAfter(answer.Header, c.g.now()) // after what it says was looked at
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

// handleError looks whether an answer means that every further call would end like this one. What it says is passed
// on as it is, but for a refused key, which is nothing that a VM has to read about, and for what has programs give up a limit.
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
	c.g.cfg.Log.Warn().Str("provider", c.provider).Str("task", c.task.Key.String()).Time("until", row.Until).Int("status", answer.StatusCode).Msg("tether: " + row.Detail)
	c.g.storeProviderState(ctx, c.provider, &row)
	if err := c.record(ctx, UsageRecord{Wait: row.Waiting()}); err != nil {
		c.g.cfg.Log.Error().Err(err).Msg("tether: tell a run what its provider says")
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
