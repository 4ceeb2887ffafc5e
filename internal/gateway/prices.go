package gateway

import (
	"math"
	"strings"
)

// Price is what tokens of a model cost, in dollars per million.
type Price struct {
	// Input is for what no cache is used for.
	Input float64 `yaml:"input"`
	// Output includes what the model thinks.
	Output float64 `yaml:"output"`
	// CacheRead is for input that was found in the provider's cache.
	CacheRead float64 `yaml:"cache_read"`
	// CacheWrite is for input that was put there; 0 where that costs nothing. For an hour it costs 1.6 times as much.
	CacheWrite float64 `yaml:"cache_write"`
}

// hourWrite is how much more it costs to put input into a cache for an hour than for the usual five minutes:
// twice the price of input where that is 1.25 times.
const hourWrite = 2 / 1.25

// Prices are models' prices by name. A name stands for itself and its editions, which follow after a
// hyphen, an @ or a colon: "claude-sonnet" is also "claude-sonnet-4-5-20250929", "gpt-5" is not "gpt-5.5".
// The longest name that fits counts.
type Prices map[string]Price

// DefaultPrices are the providers' public prices as this was written, for the models that their CLIs take
// unless told otherwise. Where long prompts cost more, that is the price: no cap is missed for it. Providers change
// them: compare with their price lists, and set what differs.
func DefaultPrices() Prices {
	return Prices{
		"claude-opus":      {Input: 15, Output: 75, CacheRead: 1.5, CacheWrite: 18.75},
		"claude-opus-4-5":  {Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25},
		"claude-sonnet":    {Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75},
		"claude-haiku":     {Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25},
		"claude-3-5-haiku": {Input: 0.8, Output: 4, CacheRead: 0.08, CacheWrite: 1},
		"gpt-5":            {Input: 1.25, Output: 10, CacheRead: 0.125},
		"gpt-5-mini":       {Input: 0.25, Output: 2, CacheRead: 0.025},
		"gpt-5-pro":        {Input: 15, Output: 120, CacheRead: 15},
		"gpt-5.5":          {Input: 10, Output: 45, CacheRead: 1},
		"gpt-5.5-pro":      {Input: 30, Output: 180, CacheRead: 30},
		"gemini-2.5-pro":   {Input: 2.5, Output: 15, CacheRead: 0.625},
		"gemini-2.5-flash": {Input: 0.3, Output: 2.5, CacheRead: 0.075},
		// What Gemini CLI asks beside its model; text, in mid-2026.
		"gemini-3-flash-preview": {Input: 0.5, Output: 3, CacheRead: 0.05},
		"gemini-3.1-flash-lite":  {Input: 0.25, Output: 1.5, CacheRead: 0.025},
	}
}

// fits reports whether a name in the table stands for a model.
func fits(name, model string) bool {
	rest, ok := strings.CutPrefix(model, name)
	return ok && (rest == "" || strings.ContainsRune("-@:", rune(rest[0])))
}

// Of returns a model's price. A model that is in no entry costs as much as the dearest, so that no cap is missed
// for want of an entry; known is then false.
func (p Prices) Of(model string) (price Price, known bool) {
	best := -1
	var dearest Price
	for name, candidate := range p {
		if fits(name, model) && len(name) > best {
			best, price = len(name), candidate
		}
		dearest = Price{
			Input: max(dearest.Input, candidate.Input), Output: max(dearest.Output, candidate.Output),
			CacheRead: max(dearest.CacheRead, candidate.CacheRead), CacheWrite: max(dearest.CacheWrite, candidate.CacheWrite),
		}
	}
	if best < 0 {
		return dearest, false
	}
	return price, true
}

// Cost is what the usage costs at this price, in millionths of a dollar, rounded up.
func (p Price) Cost(u Usage) int64 {
	// Dollars per million tokens are millionths of a dollar per token.
	written := float64(u.CacheWrite) + (hourWrite-1)*float64(u.CacheWriteHour)
	micro := p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*written
	if !(micro > 0) { // nor not a number
		return 0
	}
	return int64(math.Ceil(min(micro, 1e15)))
}
