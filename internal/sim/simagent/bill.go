package simagent

import (
	"strings"
	"time"
)

// usage is the API's count of tokens.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

func (u usage) add(v usage) usage {
	return usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// bill is the usage of one process, by model.
type bill struct {
	began time.Time
	api   time.Duration
	each  map[string]usage
	lie   float64 // factor of all reported values, if set
}

// told returns the usage that the process reports for a model.
func (b bill) told(model string) usage {
	u := b.each[model]
	if b.lie == 0 {
		return u
	}
	scaled := func(n int64) int64 { return int64(float64(n) * b.lie) }
	return usage{scaled(u.Input), scaled(u.Output), scaled(u.CacheRead), scaled(u.CacheWrite)}
}

func (b *bill) add(model string, u usage) {
	if b.each == nil {
		b.each = map[string]usage{}
	}
	b.each[model] = b.each[model].add(u)
}

func (b bill) sum() usage {
	var total usage
	for _, u := range b.each {
		total = total.add(u)
	}
	return total
}

func (b bill) usd() float64 {
	var total float64
	for model, u := range b.each {
		total += price(model, u)
	}
	return total
}

func (b bill) perModel() map[string]any {
	out := map[string]any{}
	for model := range b.each {
		u := b.told(model)
		out[model] = map[string]any{
			"inputTokens": u.Input, "outputTokens": u.Output, "cacheReadInputTokens": u.CacheRead,
			"cacheCreationInputTokens": u.CacheWrite, "costUSD": price(model, u),
		}
	}
	return out
}

func (b bill) millis() int64 {
	if b.began.IsZero() {
		return 0
	}
	return time.Since(b.began).Milliseconds()
}

func (b bill) apiMillis() int64 { return b.api.Milliseconds() }

// price returns a plausible price in dollars; an unknown model costs as much as the most expensive one.
func price(model string, u usage) float64 {
	in, out := 5.0, 25.0
	switch {
	case strings.Contains(model, "sonnet"):
		in, out = 3, 15
	case strings.Contains(model, "haiku"):
		in, out = 1, 5
	}
	const perMillion = 1e-6
	return perMillion * (in*(float64(u.Input)+1.25*float64(u.CacheWrite)+0.1*float64(u.CacheRead)) + out*float64(u.Output))
}
