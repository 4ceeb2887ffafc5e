package modelapi

import "testing"

func TestPrices(t *testing.T) {
	t.Parallel()
	prices := Prices{
		"claude":       {Input: 5, Output: 25, CacheRead: 0.5, CacheWrite: 6.25},
		"claude-haiku": {Input: 1, Output: 5, CacheRead: 0.1, CacheWrite: 1.25},
		"gpt-5":        {Input: 10, Output: 10},
	}
	tests := map[string]struct {
		usage Usage
		want  int64
		known bool
	}{
		"the longest name":       {Usage{Model: "claude-haiku-4-5-20251001", Input: 1000, Output: 100, CacheRead: 10, CacheWrite: 8}, 1000 + 500 + 1 + 10, true},
		"another":                {Usage{Model: "claude-next", Input: 1000, Output: 100}, 5000 + 2500, true},
		"unknown: highest price": {Usage{Model: "mystery", Input: 1000, Output: 100}, 10_000 + 2500, false},
		"no name: highest price": {Usage{Input: 1}, 10, false},
		"an hour in the cache":   {Usage{Model: "claude-haiku", CacheWrite: 3000, CacheWriteHour: 1000}, 2500 + 2000, true},
		"a fraction counts":      {Usage{Model: "claude-haiku", CacheRead: 1}, 1, true},
		"another edition":        {Usage{Model: "gpt-5@eu", Input: 1}, 10, true},
		"a prefix of the name":   {Usage{Model: "gpt-5.5", Output: 1}, 25, false},
		"a name alone":           {Usage{Model: "claude", Output: 1}, 25, true},
		"a longer name":          {Usage{Model: "gpt5-x", Output: 1}, 25, false},
		"nothing":                {Usage{Model: "gpt-5"}, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			price, known := prices.Find(test.usage.Model)
			if got := price.Cost(test.usage); got != test.want || known != test.known {
				t.Errorf("costs %d (known: %v), want %d (%v)", got, known, test.want, test.known)
			}
		})
	}
}
