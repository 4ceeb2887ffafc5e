package server

import (
	"context"
	"net/http"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/subscription"
)

// upstreams are the providers of models as the tether asks them, by name. Learned hears of tokens that come up.
func upstreams(cfg config.Config, now func() time.Time, learned func(...string)) map[string]gateway.Provider {
	models := map[string]gateway.Provider{}
	for name, m := range cfg.Models {
		header := m.Header
		if header == "" {
			header = m.Dialect(name).KeyHeader()
		}
		up := gateway.Provider{BaseURL: m.URL, Key: m.Key.Reveal(), Header: header, API: m.Dialect(name), WebTools: m.WebTools}
		if s := m.Subscription; s.Set() {
			up.Subscription = subscription.New(subscription.Config{
				Token:    s.Token.Reveal(),
				Login:    s.Login,
				RenewURL: s.RenewURL,
				Now:      now,
				Learned:  learned,
			})
		}
		models[name] = up
	}
	return models
}

// redactTokens adds renewed tokens to the secrets that are redacted in all output and refused in commits.
func (s *Server) redactTokens(secrets ...string) {
	s.redact.Learn(secrets...)
	s.scanner.Learn(secrets...)
}

// TryModels asks each configured provider of models whether it takes its key, by a request that costs nothing; a
// login that is about to end is renewed for it. The result has an error, or nil, for each by name.
func TryModels(ctx context.Context, cfg config.Config) map[string]error {
	out := map[string]error{}
	for name, up := range upstreams(cfg, time.Now, nil) {
		out[name] = gateway.CheckKey(ctx, http.DefaultTransport, up)
	}
	return out
}

// tryTimeout bounds the requests of TryVMs.
const tryTimeout = 20 * time.Second

// TryVMs asks Hetzner whether it accepts a token, by requests that cost and create nothing. The sentence says why it does not; the error is
// fleet.ErrUnknownOutcome or fleet.ErrLimited if that cannot be said now.
func TryVMs(ctx context.Context, token string) (problem string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	return hetzner.TryToken(ctx, hetzner.Config{Settings: hetzner.Settings{Endpoint: config.DefaultHetzner().Endpoint}, Token: token})
}
