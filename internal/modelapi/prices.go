package modelapi

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
	// LongPrompt is the number of input tokens, cached ones included, above which the whole call, its output included,
	// costs the prices that begin with `long_`; 0 where long prompts cost the same.
	LongPrompt int64 `yaml:"long_prompt"`
	// LongInput is the price of input of a long prompt; like the other three, it counts only where it is the higher one.
	LongInput float64 `yaml:"long_input"`
	// LongOutput is the price of the output that answers a long prompt.
	LongOutput float64 `yaml:"long_output"`
	// LongCacheRead is the price of a long prompt's input that was found in the cache.
	LongCacheRead float64 `yaml:"long_cache_read"`
	// LongCacheWrite is the price of a long prompt's input that was put there.
	LongCacheWrite float64 `yaml:"long_cache_write"`
}

// hourWrite is how much more it costs to put input into a cache for an hour than for the usual five minutes:
// twice the price of input where that is 1.25 times.
const hourWrite = 2 / 1.25

// long returns the prices of long prompts. One that is lower than the plain price, or not set, does not lower it.
func (p Price) long() Price {
	return Price{
		Input: max(p.Input, p.LongInput), Output: max(p.Output, p.LongOutput),
		CacheRead: max(p.CacheRead, p.LongCacheRead), CacheWrite: max(p.CacheWrite, p.LongCacheWrite),
	}
}

// For returns the prices that count for a call with this usage: those of long prompts if its prompt is one.
func (p Price) For(u Usage) Price {
	if p.LongPrompt > 0 && u.Input+u.CacheRead+u.CacheWrite > p.LongPrompt {
		return p.long()
	}
	return p
}

// Prices are models' prices by name. A name stands for itself and its editions, which follow after a
// hyphen, an @ or a colon: "claude-sonnet" is also "claude-sonnet-4-5-20250929", "gpt-5" is not "gpt-5.5".
// A hyphen and a number of one or two digits after a digit is another version: "claude-opus-4" is not "claude-opus-4-5".
// The longest name that fits counts. Case does not, but of two names that differ in nothing else the one with capitals
// counts: the prices that errand ships have none.
type Prices map[string]Price

// matches reports whether a name in the table stands for a model.
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

// anotherVersion reports whether what follows a name goes on with its version: "-5" after "claude-opus-4", but not
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

// Find returns a model's price. A model that is in no entry costs as much as the dearest, so that no cap is missed
// for want of an entry; known is then false.
func (p Prices) Find(model string) (price Price, known bool) {
	best := ""
	var dearest Price
	for name, candidate := range p {
		if matches(name, model) && (len(name) > len(best) || len(name) == len(best) && name < best) {
			best, price = name, candidate
		}
		if candidate.LongPrompt > 0 {
			candidate = candidate.long()
		}
		dearest = Price{
			Input: max(dearest.Input, candidate.Input), Output: max(dearest.Output, candidate.Output),
			CacheRead: max(dearest.CacheRead, candidate.CacheRead), CacheWrite: max(dearest.CacheWrite, candidate.CacheWrite),
		}
	}
	if best == "" {
		return dearest, false
	}
	return price, true
}

// Cost is what the usage costs at this price, in millionths of a dollar, rounded up.
func (p Price) Cost(u Usage) int64 {
	p = p.For(u)
	// Dollars per million tokens are millionths of a dollar per token.
	written := float64(u.CacheWrite) + (hourWrite-1)*float64(u.CacheWriteHour)
	micro := p.Input*float64(u.Input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CacheRead) + p.CacheWrite*written
	if !(micro > 0) { // nor not a number
		return 0
	}
	return int64(math.Ceil(min(micro, 1e15)))
}
