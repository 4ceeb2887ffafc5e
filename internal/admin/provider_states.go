package admin

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-bot/errand/state"
)

// troubled is a model provider that is currently unavailable.
type troubled struct {
	Provider string         `json:"provider"`
	Kind     state.WaitKind `json:"kind"` // limit or key
	Detail   string         `json:"detail"`
	Hint     string         `json:"hint,omitempty"`
	Since    time.Time      `json:"since"`
	Until    time.Time      `json:"until"` // when the limit ends or errand retries
}

// reader reads the known state of the model providers.
type reader func(ctx context.Context) (map[string]state.ProviderState, error)

// troubled returns the unavailable providers by name.
func (read reader) troubled(ctx context.Context, now time.Time) ([]troubled, error) {
	if read == nil {
		return nil, nil
	}
	all, err := read(ctx)
	if err != nil {
		return nil, err
	}
	var list []troubled
	for name, u := range all {
		if u.Until.After(now) {
			list = append(list, troubled{Provider: name, Kind: u.Kind, Detail: u.Detail, Hint: u.Hint, Since: u.Since, Until: u.Until})
		}
	}
	slices.SortFunc(list, func(a, b troubled) int { return strings.Compare(a.Provider, b.Provider) })
	return list, nil
}

// trouble emits a metric for each unavailable provider.
func (c *collector) trouble(ctx context.Context, out chan<- prometheus.Metric) error {
	list, err := c.providers.troubled(ctx, c.now())
	if err != nil {
		return err
	}
	d := desc("model_trouble", "Always 1, for each model provider that is unavailable because of a limit or a refused key.", "provider", "kind")
	for _, t := range list {
		gauge(out, d, 1, t.Provider, string(t.Kind))
	}
	return nil
}
