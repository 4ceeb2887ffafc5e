package tether

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/state"
)

// Ledger keeps what runs have cost.
type Ledger interface {
	// Spend adds what an answer of the model has cost to a run and its task. With held, nothing was
	// spent: the run was refused the model, for a cap of all tasks together.
	Spend(ctx context.Context, task state.TaskKey, run string, m state.Money, held *state.Waiting) error
	// Held says what all runs have to wait for because such a cap is reached, nil if they may go on.
	Held(ctx context.Context) (*state.Waiting, error)
}

// spendTimeout bounds the writing of what an answer has cost. It outlives the request: who hangs up early
// pays all the same.
const spendTimeout = 10 * time.Second

// model passes a request on to the provider's API with our key put in, and counts what the answer costs
// while it passes. Streams are not buffered. What is spent is stored before the answer's end is passed on,
// so that the next request meets the cap.
func (h *Handler) model(w http.ResponseWriter, r *http.Request, p Peer) {
	name := r.PathValue("provider")
	up, ok := h.cfg.Models[name]
	if !ok {
		http.Error(w, "errand: no model provider of this name is configured", http.StatusNotFound)
		return
	}
	rest := strings.TrimPrefix(r.URL.Path, "/llm/"+name)
	if r.Method == http.MethodHead && rest == "/" {
		return // a CLI warms the connection up
	}
	t := taskOf(r)
	log := h.cfg.Log.With().Str("task", t.Key.String()).Str("run", t.Run.ID).Logger()
	refuse := func(kind, message string) {
		log.Warn().Str("path", rest).Msg("tether: refused: " + message)
		if err := up.API.Refuse(w, kind, "errand: "+message); err != nil {
			log.Debug().Err(err).Msg("tether: answer")
		}
	}
	switch {
	case !up.API.Allows(r.Method, rest):
		refuse("permission_error", "agents may call the model, and nothing else of its API: not "+r.Method+" "+rest)
		return
	case t.Money.AtCap():
		refuse("permission_error", fmt.Sprintf("the task's cap of $%.2f is reached", float64(t.Money.CapMicroUSD)/1e6))
		return
	}
	held, err := h.cfg.Ledger.Held(r.Context())
	if err == nil && held != nil {
		err = h.cfg.Ledger.Spend(r.Context(), t.Key, t.Run.ID, state.Money{}, held)
	}
	switch {
	case err != nil: // what cannot be looked up is not spent
		log.Error().Err(err).Msg("tether: look up what was spent")
		http.Error(w, "errand: what was spent cannot be looked up now", http.StatusBadGateway)
		return
	case held != nil:
		refuse("permission_error", held.Detail)
		return
	}
	bill := func(answer *http.Response) error {
		if answer.StatusCode == http.StatusOK {
			answer.Body = &metered{
				ReadCloser: answer.Body, counter: gateway.NewCounter(answer.Header.Get("Content-Type")),
				pay: func(u gateway.Usage) { h.spend(r.Context(), t.Key, t.Run.ID, u) },
			}
		}
		return nil
	}
	h.proxy(w, r, up.BaseURL, rest, bill, func(out *http.Request) {
		value := up.Key
		if strings.EqualFold(up.Header, "Authorization") {
			value = "Bearer " + value
		}
		out.Header.Set(up.Header, value)
		out.Header.Set("Accept-Encoding", "identity") // so that usage can be counted
		if q := out.URL.Query(); q.Has("key") {       // where some clients put their token
			q.Del("key")
			out.URL.RawQuery = q.Encode()
		}
	})
}

// spend stores what an answer has cost. What cannot be stored is added to what the run spends next: it is
// not forgotten as long as this process lives.
func (h *Handler) spend(ctx context.Context, task state.TaskKey, run string, u gateway.Usage) {
	price, known := h.cfg.Prices.Of(u.Model)
	m := state.Money{InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output, MicroUSD: price.Cost(u)}
	log := h.cfg.Log.With().Str("task", task.String()).Str("run", run).Str("model", u.Model).Logger()
	if !known {
		m.Unpriced = u.Model
		if m.Unpriced == "" {
			m.Unpriced = "unnamed"
		}
		log.Warn().Msg("tether: no price is known of this model: it is counted at the dearest; add it to prices")
	}
	m.Add(h.owed.take(run))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), spendTimeout)
	defer cancel()
	if err := h.cfg.Ledger.Spend(ctx, task, run, m, nil); err != nil {
		h.owed.put(run, m)
		log.Error().Err(err).Int64("micro_usd", m.MicroUSD).Msg("tether: what an answer has cost could not be stored; it is added to the next")
	}
}

// metered counts an answer while it is read, and pays once, at its end or when it is given up.
type metered struct {
	io.ReadCloser
	counter *gateway.Counter
	pay     func(gateway.Usage)
	paid    bool
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if n > 0 {
		_, _ = m.counter.Write(p[:n]) // never fails
	}
	if err != nil {
		m.settle()
	}
	return n, err
}

func (m *metered) Close() error {
	m.settle()
	return m.ReadCloser.Close()
}

func (m *metered) settle() {
	if m.paid {
		return
	}
	m.paid = true
	if u, ok := m.counter.Close(); ok {
		m.pay(u)
	}
}
