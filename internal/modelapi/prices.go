package modelapi

import (
	"math"
	"strings"
)

// Price is the price of a model's tokens, in dollars per million.
type Price struct {
	// Input is the price of input for which no cache is used.
	Input float64 `yaml:"input"`
	// Output is the price of output, including reasoning.
	Output float64 `yaml:"output"`
	// CacheRead is the price of input that was read from the provider's cache.
	CacheRead float64 `yaml:"cache_read"`
	// CacheWrite is the price of input that was written to the cache; 0 if that is free. For an hour it costs 1.6 times
	// as much.
	CacheWrite float64 `yaml:"cache_write"`
	// LongPrompt is the number of input tokens, including cached ones, above which the whole call, including its
	// output, costs the prices that begin with `long_`; 0 if long prompts cost the same.
	LongPrompt int64 `yaml:"long_prompt"`
	// LongInput is the price of input of a long prompt; like the other three, it is used only if it is higher than the
	// standard price.
	LongInput float64 `yaml:"long_input"`
	// LongOutput is the price of the output that answers a long prompt.
	LongOutput float64 `yaml:"long_output"`
	// LongCacheRead is the price of a long prompt's input that was read from the cache.
	LongCacheRead float64 `yaml:"long_cache_read"`
	// LongCacheWrite is the price of a long prompt's input that was written to the cache.
	LongCacheWrite float64 `yaml:"long_cache_write"`
}

// hourWrite is the factor by which writing to a cache for an hour costs more than for the usual five minutes: twice the
// price of input instead of 1.25 times.
const hourWrite = 2 / 1.25

// longPromptPrice returns the prices of long prompts. One that is not set, or is lower than the standard price, does
// not lower it.
func (p Price) longPromptPrice() Price {
	return Price{
		Input: max(p.Input, p.LongInput), Output: max(p.Output, p.LongOutput),
		CacheRead: max(p.CacheRead, p.LongCacheRead), CacheWrite: max(p.CacheWrite, p.LongCacheWrite),
	}
}

// For returns the prices of a call with this usage: those of long prompts if its prompt is long.
func (p Price) For(u Usage) Price {
	if p.LongPrompt > 0 && u.Input+u.CacheRead+u.CacheWrite > p.LongPrompt {
		return p.longPromptPrice()
	}
	return p
}

// Prices are prices by the name of the model. A name also matches names that continue after a hyphen, an @ or a colon:
// "claude-sonnet" matches "claude-sonnet-4-5-20250929", but "gpt-5" does not match "gpt-5.5". A digit followed by a
// hyphen and a number of one or two digits is another version: "claude-opus-4" does not match "claude-opus-4-5". The
// longest name that matches is used. Case is ignored; of two names that differ only in case the one with capitals is
// used, because the prices that errand ships have none.
type Prices map[string]Price

// matches reports whether a name in Prices matches a model.
func matches(name, model string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(model), strings.ToLower(name))
	switch {
	case !ok:
		return false
	case rest == "":
		return true
	}
	return strings.ContainsRune("-@:", rune(rest[0])) && !anotherVersion(name, rest)
}

// anotherVersion reports whether the text after a name continues its version: "-5" after "claude-opus-4", but not
// "-20250514", which is a date.
func anotherVersion(name, rest string) bool {
	if name == "" || !isDigit(name[len(name)-1]) || rest[0] != '-' {
		return false
	}
	digits := 0
	for _, c := range []byte(rest[1:]) {
		if !isDigit(c) {
			break
		}
		digits++
	}
	return digits == 1 || digits == 2
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// IsFree reports whether a model has an entry and costs nothing.
func (p Prices) IsFree(model string) bool {
	price, known := p.Find(model)
	return known && price == Price{}
}

// Find returns a model's price. For a model without an entry it returns the highest prices, so that caps still hold;
// known is then false.
func (p Prices) Find(model string) (price Price, known bool) {
	best := ""
	var highest Price
	for name, candidate := range p {
		if matches(name, model) && (len(name) > len(best) || len(name) == len(best) && name < best) {
			best, price = name, candidate
		}
		if candidate.LongPrompt > 0 {
			candidate = candidate.longPromptPrice()
		}
		highest = Price{
			Input: max(highest.Input, candidate.Input), Output: max(highest.Output, candidate.Output),
			CacheRead: max(highest.CacheRead, candidate.CacheRead), CacheWrite: max(highest.CacheWrite, candidate.CacheWrite),
		}
	}
	if best == "" {
		return highest, false
	}
	return price, true
}

// Cost returns the cost of usage at this price, in millionths of a dollar, rounded up.
func (p Price) Cost(u Usage) int64 {
	p = p.For(u)
	// Dollars per million tokens are millionths of a dollar per token.
	written := float64(u.CacheWrite) + (hourWrite-1)*float64(u.CacheWriteHour)
	micro := p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*written
	if !(micro > 0) { // also if it is not a number
		return 0
	}
	return int64(math.Ceil(min(micro, 1e15)))
}
