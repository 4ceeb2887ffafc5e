package server

import (
	"context"
	"net/http"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/tether"
)

// upstreams are the providers of models as the tether asks them, by name.
func upstreams(cfg config.Config) map[string]tether.Upstream {
	models := map[string]tether.Upstream{}
	for name, m := range cfg.Models {
		header := m.Header
		if header == "" {
			header = m.Dialect(name).KeyHeader()
		}
		models[name] = tether.Upstream{BaseURL: m.URL, Key: m.Key.Reveal(), Header: header, API: m.Dialect(name), WebTools: m.WebTools}
	}
	return models
}

// TryModels asks each configured provider of models whether it takes its key, by a request that costs nothing. The
// result has an error, or nil, for each by name.
func TryModels(ctx context.Context, cfg config.Config) map[string]error {
	out := map[string]error{}
	for name, up := range upstreams(cfg) {
		out[name] = tether.Try(ctx, http.DefaultTransport, up)
	}
	return out
}
