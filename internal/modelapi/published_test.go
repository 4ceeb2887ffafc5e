package modelapi

import (
	"net/url"
	"testing"
	"time"
)

// TestPublishedPricesHaveSourceAndDate: every shipped price has its page and date.
func TestPublishedPricesHaveSourceAndDate(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range PublishedPrices() {
		if u, err := url.Parse(p.Source); err != nil || u.Scheme != "https" || u.Host == "" || u.Path == "" {
			t.Errorf("%s: source %q is not a URL", p.Name, p.Source)
		}
		if _, err := time.Parse(time.DateOnly, p.AsOf); err != nil {
			t.Errorf("%s: as of %q: %v", p.Name, p.AsOf, err)
		}
		if seen[p.Name] {
			t.Errorf("%s is listed twice", p.Name)
		}
		seen[p.Name] = true
		if p.Input <= 0 || p.Output <= p.Input || p.CacheRead <= 0 || p.CacheRead > p.Input {
			t.Errorf("%s: unlikely prices %+v", p.Name, p.Price)
		}
		if p.LongPrompt > 0 && (p.LongInput <= p.Input || p.LongOutput <= p.Output || p.LongCacheRead <= p.CacheRead) {
			t.Errorf("%s: long prompts do not cost more: %+v", p.Name, p.Price)
		}
	}
	if got := len(DefaultPrices()); got != len(seen) {
		t.Errorf("got %d default prices of %d published ones", got, len(seen))
	}
}

// TestConfiguredPriceReplacesShippedOne: an operator's entry replaces a shipped one, even in another case.
func TestConfiguredPriceReplacesShippedOne(t *testing.T) {
	t.Parallel()
	for range 50 { // a map has no order
		prices := DefaultPrices()
		prices["Claude-Opus-4-5"] = Price{Input: 7}
		if got, known := prices.Find("claude-opus-4-5-20251101"); !known || got.Input != 7 {
			t.Fatalf("got %+v, known %t", got, known)
		}
	}
}

// TestPublishedPricesOfModels: the shipped prices agree with prices that were written down independently, for the names
// that providers use.
func TestPublishedPricesOfModels(t *testing.T) {
	t.Parallel()
	const million = 1_000_000
	for model, test := range map[string]struct {
		input, output, read, write float64 // of a short prompt
		unknown                    bool
	}{
		"claude-opus-4":                {15, 75, 1.5, 18.75, false},
		"claude-opus-4-20250514":       {15, 75, 1.5, 18.75, false},
		"claude-opus-4@20250514":       {15, 75, 1.5, 18.75, false},
		"claude-opus-4-0":              {15, 75, 1.5, 18.75, false},
		"claude-opus-4-1":              {15, 75, 1.5, 18.75, false},
		"claude-opus-4-1-20250805":     {15, 75, 1.5, 18.75, false},
		"claude-opus-4-5":              {5, 25, 0.5, 6.25, false},
		"claude-opus-4-5-20251101":     {5, 25, 0.5, 6.25, false},
		"Claude-Opus-4-5@20251101":     {5, 25, 0.5, 6.25, false},
		"claude-opus-4-6":              {5, 25, 0.5, 6.25, false},
		"claude-opus-4-7":              {5, 25, 0.5, 6.25, false},
		"claude-opus-4-8":              {5, 25, 0.5, 6.25, false},
		"claude-opus-4-9":              {unknown: true},
		"claude-opus-4-10":             {unknown: true},
		"claude-opus-5":                {5, 25, 0.5, 6.25, false},
		"claude-opus-5-5":              {4, 20, 0.2, 5, false},
		"claude-opus-5-7":              {unknown: true},
		"claude-opus-6":                {unknown: true},
		"claude-sonnet-4-20250514":     {3, 15, 0.3, 3.75, false},
		"claude-sonnet-4-5-20250929":   {3, 15, 0.3, 3.75, false},
		"claude-sonnet-4-6":            {3, 15, 0.3, 3.75, false},
		"claude-sonnet-5":              {2, 10, 0.2, 2.5, false},
		"claude-sonnet-5-5":            {2, 10, 0.1, 2.5, false},
		"claude-haiku-4-5-20251001":    {1, 5, 0.1, 1.25, false},
		"claude-haiku-5-5":             {0.1, 0.5, 0.01, 0.125, false},
		"claude-fable-5-1":             {10, 50, 0.25, 12.5, false},
		"gpt-5":                        {1.25, 10, 0.125, 0, false},
		"gpt-5-2025-08-07":             {1.25, 10, 0.125, 0, false},
		"gpt-5-mini-2025-08-07":        {0.25, 2, 0.025, 0, false},
		"gpt-5-codex":                  {1.25, 10, 0.125, 0, false},
		"gpt-5.4":                      {2.5, 15, 0.25, 0, false},
		"gpt-5.4-pro":                  {30, 180, 30, 0, false},
		"gpt-5.5":                      {5, 30, 0.5, 0, false},
		"gpt-5.5-pro-2026-04-24":       {30, 180, 30, 0, false},
		"gpt-5.9":                      {unknown: true},
		"gpt-6-sol":                    {unknown: true},
		"gemini-2.5-pro":               {1.25, 10, 0.125, 0, false},
		"gemini-2.5-pro-preview-06-05": {1.25, 10, 0.125, 0, false},
		"gemini-2.5-flash":             {0.3, 2.5, 0.03, 0, false},
		"gemini-2.5-flash-lite":        {0.1, 0.4, 0.01, 0, false},
		"gemini-3.1-pro-preview":       {2, 12, 0.2, 0, false},
		"gemini-2.5":                   {unknown: true},
		"us.anthropic.claude-opus-4-5-20251101-v1:0": {unknown: true}, // its price is Amazon's
		"anthropic/claude-opus-4.5":                  {unknown: true},
		"":                                           {unknown: true},
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			price, known := DefaultPrices().Find(model)
			if known == test.unknown {
				t.Fatalf("known: %v, want %v", known, !test.unknown)
			}
			if test.unknown { // the highest of every column, long prompts included
				test.input, test.output, test.read, test.write = 60, 270, 60, 18.75
			}
			for name, figure := range map[string]struct {
				usage Usage
				want  float64
			}{
				"input":       {Usage{Input: 1000}, test.input},
				"output":      {Usage{Output: 1000}, test.output},
				"cache read":  {Usage{CacheRead: 1000}, test.read},
				"cache write": {Usage{CacheWrite: 1000}, test.write},
			} {
				if got, want := price.Cost(figure.usage), int64(figure.want*1000); got != want {
					t.Errorf("%s costs %d millionths, want %d", name, got, want)
				}
			}
			if got := price.Cost(Usage{Output: million}); got != int64(test.output*million) { // however long the answer
				t.Errorf("got a price of %d for a million tokens of output", got)
			}
		})
	}
}

// TestLongPrompts: above its threshold a prompt costs the higher prices, for the whole call; cached tokens count as
// part of the prompt, output does not.
func TestLongPrompts(t *testing.T) {
	t.Parallel()
	tiered := Price{
		Input: 1, Output: 10, CacheRead: 0.1, CacheWrite: 1.25,
		LongPrompt: 200_000, LongInput: 2, LongOutput: 15, LongCacheRead: 0.2, LongCacheWrite: 2.5,
	}
	for name, test := range map[string]struct {
		price Price
		usage Usage
		want  int64
	}{
		"at the threshold":              {tiered, Usage{Input: 200_000, Output: 1000}, 200_000 + 10_000},
		"one above it":                  {tiered, Usage{Input: 200_001, Output: 1000}, 400_002 + 15_000},
		"by the cache alone":            {tiered, Usage{CacheRead: 200_001}, 40_001},
		"by all cached tokens together": {tiered, Usage{Input: 1, CacheRead: 100_000, CacheWrite: 100_000}, 2 + 20_000 + 250_000},
		"an hour in the cache":          {tiered, Usage{CacheWrite: 300_000, CacheWriteHour: 300_000}, 1_200_000},
		"a long answer":                 {tiered, Usage{Input: 1, Output: 300_000}, 1 + 3_000_000},
		"no threshold":                  {Price{Input: 1, LongInput: 2}, Usage{Input: 1_000_000}, 1_000_000},
		"a missing price":               {Price{Input: 1, Output: 10, CacheRead: 0.1, LongPrompt: 10, LongInput: 2}, Usage{Input: 100, Output: 10, CacheRead: 100}, 200 + 100 + 10},
		"a lower one does not count":    {Price{Input: 3, LongPrompt: 10, LongInput: 1}, Usage{Input: 100}, 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.price.Cost(test.usage); got != test.want {
				t.Errorf("costs %d, want %d", got, test.want)
			}
		})
	}
	if dearest, known := (Prices{"m": tiered, "n": {Input: 1.5}}).Find("other"); known || dearest != tiered.For(Usage{Input: 200_001}) {
		t.Errorf("model without a price: got %+v (known: %v)", dearest, known)
	}
}
