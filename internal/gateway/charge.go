package gateway

import (
	"context"
	"net/http/httptrace"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// charge records the cost of a finished call, which leaves the calls in flight. Held is why the run got no more.
func (c *call) charge(ctx context.Context, u modelapi.Usage, held *state.Waiting) {
	if u.Model == "" {
		u.Model = c.estimate.Model // many servers repeat no name
	}
	c.settle(ctx, settlement{cost: c.cost(u), held: held})
}

// trace notes that the call has gone to the provider.
func (c *call) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { c.sent.Store(true) }})
}

// finish is called when nothing more comes of a call. One that its program, or errand, has given up before there was an answer,
// and that the provider had by then, is a turn and is paid for: providers bill what they have read, and what they thought.
func (c *call) finish(ctx context.Context) {
	cut := c.cut.Load()
	givenUp := ctx.Err() != nil || cut != nil || c.timedOut && !c.request.Stream // a stream begins before its model thinks
	if c.billable && c.sent.Load() && !c.entry.answered && givenUp {
		c.g.turns.add(c.entry.run, c.task.Run.Answers)
		c.charge(ctx, modelapi.Usage{Input: c.estimate.Input, Output: c.hiddenTokens()}, cut.storedCap())
		return
	}
	c.settle(ctx, settlement{free: true})
}

// How fast a model counts as thinking that shows nothing, in tokens a second, and how long it does not count: before
// its first word, and for who gives up by mistake.
const (
	hiddenTokensPerSecond = 50
	hiddenTokensGrace     = 10 * time.Second
)

// hiddenTokens is about how many tokens of output the model has made by now, of which nothing need have come yet; as many as the
// request lets it make at most.
func (c *call) hiddenTokens() int64 {
	took := time.Since(c.forwardedAt) - hiddenTokensGrace
	return min(max(int64(took.Seconds()*hiddenTokensPerSecond), 0), c.maxOutput)
}
