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

// spendTimeout bounds the writing of what an answer has cost. It outlives the request: who hangs up early
// pays all the same.
const spendTimeout = 10 * time.Second

// Serve passes a request on to the provider's API with our key put in, and counts what the answer costs
// while it passes. Streams are not buffered. What is spent is stored before the answer's end is passed on,
// so that the next request meets the cap.
func (g *Gateway) Serve(w http.ResponseWriter, r *http.Request, t *state.Task, memory *BodyMemory) {
	name, rest := splitPath(r)
	up, ok := g.cfg.Models[name]
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
	c := call{g: g, name: name, up: up, task: t, place: place{key: t.Key, run: t.Run.ID}}
	if up.API.Calls(r.Method) {
		body := requestBody{memory: memory}
		defer body.done()
		if !c.readAsk(w, r, &body, refuse) || !g.holdToModel(w, r, t, up, rest, body.bytes, refuse) {
			return
		}
		if c.weigh(rest, r.URL.Query(), body.bytes); !g.grants(r, t, c.ask.Unclear, refuse) {
			return
		}
		g.open.put(&c)
		defer func() { c.end(r.Context()) }()
	}
	if g.silent.lately(t.Run.ID, max(g.silence(), time.Minute)) {
		c.saySilent(w)
		return
	}
	no, err := c.admit(r.Context())
	if no == nil && err == nil {
		err = c.reserve(r.Context())
	}
	switch {
	case r.Context().Err() != nil: // its program has given up
	case err != nil: // nothing is spent that cannot be booked
		g.cfg.Log.Error().Err(err).Str("task", t.Key.String()).Str("run", t.Run.ID).Msg("tether: call of a model not passed on: the books cannot be read or written")
		http.Error(w, "errand: what the call costs cannot be booked now", http.StatusBadGateway)
	case no == nil:
		c.pass(w, r, rest)
	case no.again:
		g.tellRefusal(t, rest, no.words)
		c.sayAgain(w, no.words)
	default: // the run remembers which cap or bound it met
		g.refuse(w, t, up, rest, "permission_error", no.words, false)
	}
}

// refuse refuses a call in the API's own form. With remember, its run keeps the message: its program may make anything of it.
func (g *Gateway) refuse(w http.ResponseWriter, t *state.Task, up Upstream, rest, kind, message string, remember bool) {
	if g.tellRefusal(t, rest, message) && remember {
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
	ctx, cancel := context.WithTimeout(context.Background(), spendTimeout)
	defer cancel()
	why := &state.Waiting{Kind: state.WaitRefused, Detail: message}
	if err := g.cfg.Ledger.Spend(ctx, t.Key, t.Run.ID, "", state.Money{}, why); err != nil { // people read less then
		g.cfg.Log.Warn().Err(err).Str("run", t.Run.ID).Msg("tether: failed to store why a call was refused")
	}
}

// tellRefusal logs that a run is refused the model, now and then, and reports whether it did.
func (g *Gateway) tellRefusal(t *state.Task, rest, message string) bool {
	untold, ok := g.refused.tell(t.Run.ID, g.now())
	if ok {
		g.cfg.Log.Warn().Str("task", t.Key.String()).Str("run", t.Run.ID).Str("path", rest).Int("untold", untold).Msg("tether: refused: " + message)
	}
	return ok
}

// pass makes a call that is admitted.
func (c *call) pass(w http.ResponseWriter, r *http.Request, rest string) {
	c.g.open.passed(c)
	ctx, cut := context.WithCancel(c.trace(r.Context()))
	defer cut()
	if c.ask.Streams {
		defer c.watch(ctx, cut)()
	}
	r = r.WithContext(ctx)
	via := c.up.via(c.g.cfg.Transport)
	if r.Method == http.MethodPost {
		setBody(r, c.ask.Body(c.lowered, false))
		if c.ask.AsksUsage() {
			via = unasked{next: via, parts: c.ask.Body(c.lowered, true)}
		}
	}
	bill := func(answer *http.Response) error {
		turn := answer.StatusCode == http.StatusOK && c.bills
		if turn {
			c.g.turns.add(c.place.run, c.task.Run.Answers)
		}
		c.g.open.begun(c, turn)
		return c.answered(r.Context(), answer)
	}
	out := forward.Request{
		BaseURL: c.up.BaseURL, Path: rest, Transport: via, Answered: bill, Failed: c.unanswered, Log: c.g.cfg.Log,
		Sign: func(out *http.Request) {
			c.up.sign(out)
			out.Header.Set("Accept-Encoding", "identity") // so that usage can be counted
		},
	}
	out.Forward(w, r)
}

// via is how calls go to the provider.
func (u Upstream) via(next http.RoundTripper) http.RoundTripper {
	if u.Subscription != nil {
		next = subscribed{next: next, source: u.Subscription, api: u.API}
	}
	return cleaned{next: next, key: u.Header}
}

// sign puts our key in; the token of a subscription is put in by via.
func (u Upstream) sign(out *http.Request) {
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
func (g *Gateway) price(up Upstream, u modelapi.Usage) (m state.Money, known bool) {
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
		c.g.cfg.Log.Warn().Str("task", c.place.key.String()).Str("run", c.place.run).Str("model", u.Model).
			Msg("tether: no price is known of this model: it is counted at the dearest of all; add it to prices")
	}
	return m
}
