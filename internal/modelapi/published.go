package modelapi

// Published is the price of a model as its provider publishes it.
type Published struct {
	Name string // as in Prices
	Price
	// Source is the page with the prices, AsOf the date (YYYY-MM-DD) on which they were read.
	Source, AsOf string
}

// The providers' price lists.
const (
	anthropicPrices = "https://platform.claude.com/docs/en/about-claude/pricing"
	openaiPrices    = "https://developers.openai.com/api/docs/pricing"
	geminiPrices    = "https://ai.google.dev/gemini-api/docs/pricing"
)

// PublishedPrices returns the prices that errand ships. A model that is not listed has no price: it is charged at the
// highest price, with a warning. docs/prices.md is generated from this list.
func PublishedPrices() []Published {
	const claude, gpt, gemini = "2026-10-24", "2026-07-02", "2026-07-02"
	var list []Published
	add := func(source, asOf string, p Price, names ...string) {
		for _, name := range names {
			list = append(list, Published{Name: name, Price: p, Source: source, AsOf: asOf})
		}
	}

	add(anthropicPrices, claude, Price{Input: 10, Output: 50, CacheRead: 0.25, CacheWrite: 12.5}, "claude-fable-5-1")
	add(anthropicPrices, claude, Price{Input: 10, Output: 50, CacheRead: 1, CacheWrite: 12.5}, "claude-fable-5")
	add(anthropicPrices, claude, Price{Input: 4, Output: 20, CacheRead: 0.2, CacheWrite: 5}, "claude-opus-5-5")
	add(anthropicPrices, claude, Price{Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25},
		"claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-opus-4-5")
	add(anthropicPrices, claude, Price{Input: 15, Output: 75, CacheRead: 1.5, CacheWrite: 18.75}, "claude-opus-4-1", "claude-opus-4-0", "claude-opus-4")
	add(anthropicPrices, claude, Price{Input: 2, Output: 10, CacheRead: 0.1, CacheWrite: 2.5}, "claude-sonnet-5-5")
	add(anthropicPrices, claude, Price{Input: 2, Output: 10, CacheRead: 0.2, CacheWrite: 2.5}, "claude-sonnet-5")
	add(anthropicPrices, claude, Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75},
		"claude-sonnet-4-6", "claude-sonnet-4-5", "claude-sonnet-4-0", "claude-sonnet-4")
	add(anthropicPrices, claude, Price{
		Input: 0.1, Output: 0.5, CacheRead: 0.01, CacheWrite: 0.125,
		LongPrompt: 100_000, LongInput: 0.5, LongOutput: 2.5, LongCacheRead: 0.05, LongCacheWrite: 0.625,
	}, "claude-haiku-5-5")
	add(anthropicPrices, claude, Price{Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25}, "claude-haiku-4-5")
	add(anthropicPrices, claude, Price{Input: 0.8, Output: 4, CacheRead: 0.08, CacheWrite: 1}, "claude-3-5-haiku")

	// Cached input without a price costs as much as other input.
	add(openaiPrices, gpt, Price{
		Input: 30, Output: 180, CacheRead: 30, LongPrompt: 272_000, LongInput: 60, LongOutput: 270, LongCacheRead: 60,
	}, "gpt-5.5-pro", "gpt-5.4-pro")
	add(openaiPrices, gpt, Price{
		Input: 5, Output: 30, CacheRead: 0.5, LongPrompt: 272_000, LongInput: 10, LongOutput: 45, LongCacheRead: 1,
	}, "gpt-5.5")
	add(openaiPrices, gpt, Price{
		Input: 2.5, Output: 15, CacheRead: 0.25, LongPrompt: 272_000, LongInput: 5, LongOutput: 22.5, LongCacheRead: 0.5,
	}, "gpt-5.4")
	add(openaiPrices, gpt, Price{Input: 0.75, Output: 4.5, CacheRead: 0.075}, "gpt-5.4-mini")
	add(openaiPrices, gpt, Price{Input: 0.2, Output: 1.25, CacheRead: 0.02}, "gpt-5.4-nano")
	add(openaiPrices, gpt, Price{Input: 21, Output: 168, CacheRead: 21}, "gpt-5.2-pro")
	add(openaiPrices, gpt, Price{Input: 1.75, Output: 14, CacheRead: 0.175}, "gpt-5.3-codex", "gpt-5.2")
	add(openaiPrices, gpt, Price{Input: 1.25, Output: 10, CacheRead: 0.125}, "gpt-5.1")
	add(openaiPrices, gpt, Price{Input: 0.25, Output: 2, CacheRead: 0.025}, "gpt-5.1-codex-mini")
	add(openaiPrices, gpt, Price{Input: 15, Output: 120, CacheRead: 15}, "gpt-5-pro")
	add(openaiPrices, gpt, Price{Input: 1.25, Output: 10, CacheRead: 0.125}, "gpt-5")
	add(openaiPrices, gpt, Price{Input: 0.25, Output: 2, CacheRead: 0.025}, "gpt-5-mini")
	add(openaiPrices, gpt, Price{Input: 0.05, Output: 0.4, CacheRead: 0.005}, "gpt-5-nano")

	add(geminiPrices, gemini, Price{
		Input: 2, Output: 12, CacheRead: 0.2, LongPrompt: 200_000, LongInput: 4, LongOutput: 18, LongCacheRead: 0.4,
	}, "gemini-3.1-pro-preview", "gemini-3-pro-preview")
	add(geminiPrices, gemini, Price{
		Input: 1.25, Output: 10, CacheRead: 0.125, LongPrompt: 200_000, LongInput: 2.5, LongOutput: 15, LongCacheRead: 0.25,
	}, "gemini-2.5-pro")
	add(geminiPrices, gemini, Price{Input: 0.3, Output: 2.5, CacheRead: 0.03}, "gemini-2.5-flash")
	add(geminiPrices, gemini, Price{Input: 0.1, Output: 0.4, CacheRead: 0.01}, "gemini-2.5-flash-lite")
	add(geminiPrices, gemini, Price{Input: 0.5, Output: 3, CacheRead: 0.05}, "gemini-3-flash-preview")
	add(geminiPrices, gemini, Price{Input: 0.25, Output: 1.5, CacheRead: 0.025}, "gemini-3.1-flash-lite")
	return list
}

// DefaultPrices returns the published prices by name. Providers change them: compare with their lists, and configure
// differences.
func DefaultPrices() Prices {
	prices := Prices{}
	for _, p := range PublishedPrices() {
		prices[p.Name] = p.Price
	}
	return prices
}
