package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// storeTimeout bounds the writing of what an answer has cost. It outlives the request: who hangs up early
// pays all the same.
const storeTimeout = 10 * time.Second

// Serve passes a request on to the provider's API with our key put in, and counts what the answer costs
// while it passes. Streams are not buffered. What is spent is stored before the answer's end is passed on,
// so that the next request meets the cap.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, memory *BodyMemory) {
	name, rest := splitPath(r)
	up, ok := g.cfg.Providers[name]
	if !ok {
		http.Error(w, "errand: no model provider of this name is configured", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodHead && rest == "/" {
		return // a CLI warms the connection up
	}
	refuse := func(kind, message string) { g.refuse(w, t, up, rest, kind, message, true) }
	if !up.API.Allows(r.Method, rest) {
		refuse("permission_error", "agents may call the model, and nothing else of its API: not "+r.Method+" "+rest)
		return
	}
	c := call{g: g, provider: name, up: up, task: t, entry: entry{key: t.Key, run: t.Run.ID}}
	if up.API.Calls(r.Method) {
		body := requestBody{memory: memory}
		defer body.release()
		if !c.readBody(w, r, &body, refuse) || !g.holdToModel(w, r, t, up, rest, body.bytes, refuse) {
			return
		}
		if c.parseRequest(rest, r.URL.Query(), body.bytes); !g.grants(r, t, c.request.Unclear, refuse) {
			return
		}
		g.inFlight.add(&c)
		defer func() { c.finish(r.Context()) }()
	}
	if g.idle.recent(t.Run.ID, max(g.idleTimeout(), time.Minute)) {
		c.answerTimedOut(w)
		return
	}
	no, err := c.authorize(r.Context())
	if no == nil && err == nil {
		err = c.reserve(r.Context())
	}
	switch {
	case r.Context().Err() != nil: // its program has given up
	case err != nil: // nothing is spent that cannot be booked
		g.cfg.Log.Error().Err(err).Str("task", t.Key.String()).Str("run", t.Run.ID).Msg("tether: call of a model not passed on: the books cannot be read or written")
		http.Error(w, "errand: what the call costs cannot be booked now", http.StatusBadGateway)
	case no == nil:
		c.forward(w, r, rest)
	case no.retryable:
		g.logDenial(t, rest, no.message)
		c.denyForNow(w, no.message)
	default: // the run remembers which cap or bound it met
		g.refuse(w, t, up, rest, "permission_error", no.message, false)
	}
}

// refuse refuses a call in the API's own form. With remember, its run keeps the message: its program may make anything of it.
func (g *Gateway) refuse(w http.ResponseWriter, t *state.Task, up Provider, rest, kind, message string, remember bool) {
	if g.logDenial(t, rest, message) && remember {
		g.recordDenial(t, "errand did not pass on a call of the model: "+message)
	}
	if err := up.API.Refuse(w, kind, "errand: "+message); err != nil {
		g.cfg.Log.Debug().Err(err).Str("task", t.Key.String()).Str("run", t.Run.ID).Msg("tether: answer")
	}
}

// recordDenial stores why the gateway refused the run's call.
func (g *Gateway) recordDenial(t *state.Task, message string) {
	if t.Run.Denied == message {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	why := &state.Waiting{Kind: state.WaitRefused, Detail: message}
	if err := g.cfg.Ledger.Spend(ctx, t.Key, t.Run.ID, "", state.Money{}, why); err != nil { // people read less then
		g.cfg.Log.Warn().Err(err).Str("run", t.Run.ID).Msg("tether: failed to store why a call was refused")
	}
}

// logDenial logs that a run is refused the model, now and then, and reports whether it did.
func (g *Gateway) logDenial(t *state.Task, rest, message string) bool {
	untold, ok := g.denials.allow(t.Run.ID, g.now())
	if ok {
		g.cfg.Log.Warn().Str("task", t.Key.String()).Str("run", t.Run.ID).Str("path", rest).Int("untold", untold).Msg("tether: refused: " + message)
	}
	return ok
}

// forward makes a call that is admitted.
func (c *call) forward(w http.ResponseWriter, r *http.Request, rest string) {
	c.g.inFlight.forwarded(c)
	ctx, cut := context.WithCancel(c.trace(r.Context()))
	defer cut()
	if c.request.Streams {
		defer c.enforceCaps(ctx, cut)()
	}
	r = r.WithContext(ctx)
	via := c.up.transport(c.g.cfg.Transport)
	if r.Method == http.MethodPost {
		setBody(r, c.request.Body(c.loweredOutput, false))
		if c.request.AsksUsage() {
			via = withoutUsageOption{next: via, parts: c.request.Body(c.loweredOutput, true)}
		}
	}
	bill := func(answer *http.Response) error {
		turn := answer.StatusCode == http.StatusOK && c.billable
		if turn {
			c.g.turns.add(c.entry.run, c.task.Run.Answers)
		}
		c.g.inFlight.answerStarted(c, turn)
		return c.handleAnswer(r.Context(), answer)
	}
	out := forward.Request{
		BaseURL: c.up.BaseURL, Path: rest, Transport: via, Answered: bill, Failed: c.handleFailure, Log: c.g.cfg.Log,
		Sign: func(out *http.Request) {
			c.up.sign(out)
			out.Header.Set("Accept-Encoding", "identity") // so that usage can be counted
		},
	}
	out.Forward(w, r)
}

// transport is how calls go to the provider.
func (u Provider) transport(next http.RoundTripper) http.RoundTripper {
	if u.Subscription != nil {
		next = subscriptionTransport{next: next, source: u.Subscription, api: u.API}
	}
	return headerFilter{next: next, keyHeader: u.Header}
}

// sign puts our key in; the token of a subscription is put in by via.
func (u Provider) sign(out *http.Request) {
	if u.Subscription != nil {
		return
	}
	value := u.Key
	if strings.EqualFold(u.Header, "Authorization") {
		value = "Bearer " + value
	}
	out.Header.Set(u.Header, value)
}

// price is what usage of a provider costs, and known whether that model has a price.
func (g *Gateway) price(up Provider, u modelapi.Usage) (m state.Money, known bool) {
	if up.Subscription != nil {
		return state.Money{InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output, Subscription: true}, true
	}
	price, known := g.cfg.Prices.Of(u.Model)
	return state.Money{InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output, MicroUSD: price.Cost(u)}, known
}

// cost is what usage of a call costs. A model without a price is named in it.
func (c *call) cost(u modelapi.Usage) state.Money {
	m, known := c.g.price(c.up, u)
	if !known && u != (modelapi.Usage{}) {
		m.Unpriced = u.Model
		if m.Unpriced == "" {
			m.Unpriced = "unnamed"
		}
		c.g.cfg.Log.Warn().Str("task", c.entry.key.String()).Str("run", c.entry.run).Str("model", u.Model).
			Msg("tether: no price is known of this model: it is counted at the dearest of all; add it to prices")
	}
	return m
}
