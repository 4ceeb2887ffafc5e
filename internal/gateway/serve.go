package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// storeTimeout limits a write to the store. Costs are also stored after the client has hung up.
const storeTimeout = 10 * time.Second

// Serve answers a request for /llm/PROVIDER/PATH that a task's active run sends. It forwards calls of models with
// errand's key, and counts the cost of the answer while it passes. Streams are not buffered. The cost is stored before
// the end of the answer is passed on, so that the next call is checked against it.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, memory *BodyMemory) {
	name, rest := splitPath(r)
	up, ok := g.cfg.Providers[name]
	if !ok {
		http.Error(w, "errand: no model provider of this name is configured", http.StatusNotFound)
		return
	}
	if r.Method == http.MethodHead && rest == "/" {
		return // some agents open the connection in advance
	}
	c := &call{g: g, provider: name, up: up, method: r.Method, path: rest, task: t, entry: entry{key: t.Key, run: t.Run.ID}}
	body := requestBody{memory: memory}
	defer body.release()
	if d := c.checkRequest(w, r, &body); d != nil {
		c.deny(w, d)
		return
	}
	if up.API.IsCall(r.Method) {
		g.inFlight.add(c)
		defer func() { c.finish(r.Context()) }()
	}
	if g.idle.recent(t.Run.ID, max(g.idleTimeout(), time.Minute)) {
		c.answerTimedOut(w)
		return
	}
	d, err := c.authorize(r.Context())
	if d == nil && err == nil {
		err = c.reserve(r.Context())
	}
	switch {
	case r.Context().Err() != nil: // the program has hung up
	case err != nil: // nothing is spent that cannot be booked
		c.answerStoreError(w, err)
	case d != nil:
		c.deny(w, d)
	default:
		c.forward(w, r)
	}
}

// checkRequest reads the request's body, and returns the denial of the first rule about requests that it breaks, or
// nil.
func (c *call) checkRequest(w http.ResponseWriter, r *http.Request, body *requestBody) *denial {
	req := &request{api: c.up.API, provider: c.provider, webTools: c.up.WebTools, method: c.method, path: c.path}
	if d := firstDenial(endpointRules, req); d != nil || !c.up.API.IsCall(r.Method) {
		return d
	}
	if d := body.read(w, r); d != nil {
		return d
	}
	req.body, req.allowed = body.bytes, c.g.allowedModels(c.task)
	req.cost = sync.OnceValue(func() modelapi.Request { return c.up.API.ParseRequest(c.path, r.URL.Query(), body.bytes) })
	if d := firstDenial(requestRules, req); d != nil {
		return d
	}
	c.setCost(req.cost())
	return nil
}

// answerStoreError answers a call that is not forwarded because the store failed.
func (c *call) answerStoreError(w http.ResponseWriter, err error) {
	c.g.cfg.Log.Error().Err(err).Str("task", c.entry.key.String()).Str("run", c.entry.run).
		Msg("failed to read or store the cost of a model call; call not forwarded")
	http.Error(w, "errand: the cost of the call cannot be stored now", http.StatusBadGateway)
}

// forward makes an admitted call.
func (c *call) forward(w http.ResponseWriter, r *http.Request) {
	c.g.inFlight.markForwarded(c)
	ctx, cut := context.WithCancel(c.withSentTrace(r.Context()))
	defer cut()
	if c.request.Stream {
		defer c.enforceCaps(ctx, cut)()
	}
	r = r.WithContext(ctx)
	transport := c.up.transport(c.g.cfg.Transport)
	if r.Method == http.MethodPost {
		setBody(r, c.request.Body(c.loweredOutput, false))
		if c.request.AddsUsageOption() {
			transport = withoutUsageOption{next: transport, parts: c.request.Body(c.loweredOutput, true)}
		}
	}
	answered := func(answer *http.Response) error {
		turn := answer.StatusCode == http.StatusOK && c.billable
		if turn {
			c.g.turns.add(c.entry.run, c.task.Run.Answers)
		}
		c.g.inFlight.answerStarted(c, turn)
		return c.handleAnswer(r.Context(), answer)
	}
	out := forward.Request{
		BaseURL: c.up.BaseURL, Path: c.path, Transport: transport, Answered: answered, Failed: c.handleFailure, Log: c.g.cfg.Log,
		Sign: func(out *http.Request) {
			c.up.setKey(out)
			out.Header.Set("Accept-Encoding", "identity") // so that the counter can read it
		},
	}
	out.Forward(w, r)
}

// transport returns the transport for calls of the provider.
func (u Provider) transport(next http.RoundTripper) http.RoundTripper {
	if u.Subscription != nil {
		next = subscriptionTransport{next: next, source: u.Subscription, api: u.API}
	}
	return headerFilter{next: next, keyHeader: u.Header}
}

// setKey adds the key. The token of a subscription is added by the transport.
func (u Provider) setKey(out *http.Request) {
	if u.Subscription != nil {
		return
	}
	value := u.Key
	if strings.EqualFold(u.Header, "Authorization") {
		value = "Bearer " + value
	}
	out.Header.Set(u.Header, value)
}

// price returns the cost of usage. Known reports whether the model has a price.
func (g *Gateway) price(up Provider, u modelapi.Usage) (m state.Money, known bool) {
	m = state.Money{InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output}
	if up.Subscription != nil {
		m.Subscription = true
		return m, true
	}
	price, known := g.cfg.Prices.Find(u.Model)
	m.MicroUSD = price.Cost(u)
	return m, known
}

// cost returns the cost of a call's usage. It names a model without a price.
func (c *call) cost(u modelapi.Usage) state.Money {
	m, known := c.g.price(c.up, u)
	if !known && u != (modelapi.Usage{}) {
		m.Unpriced = u.Model
		if m.Unpriced == "" {
			m.Unpriced = "unnamed"
		}
		c.g.cfg.Log.Warn().Str("task", c.entry.key.String()).Str("run", c.entry.run).Str("model", u.Model).
			Msg("unknown model; charging the highest price; add it to prices")
	}
	return m
}
