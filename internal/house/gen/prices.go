package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/gateway"
)

// pricesHead stands above the tables of docs/prices.md.
const pricesHead = `# Prices of models

The table of [` + "`prices`" + `](configuration.md#prices) that errand ships, in dollars per million tokens. Providers change their prices: compare with
their pages, which are named above the tables, and set what differs in your configuration. The figures were read from copies of these pages and
from lists that quote them; the last column is the day for which they give a figure.

- A model that is not listed, and has no entry in your configuration, counts at the highest price of every column, so that no cap is missed. The
  status comment and the log then say that no price is set.
- An entry also counts for editions of its model, such as dated ones: ` + "`claude-opus-4`" + ` is also ` + "`claude-opus-4-20250514`" + `
  and ` + "`claude-opus-4@20250514`" + `. An edition with a price of its own (` + "`gpt-5.5-mini`" + `, if there is one) needs an entry, too. It does not count for
  another version: ` + "`claude-opus-4-9`" + ` is not listed.
- Names that other clouds and resellers use, such as ` + "`us.anthropic.claude-opus-4-5-20251101-v1:0`" + `, have no price: theirs may differ. Add them.
- A prompt is long if its input, read from and written to a cache included, has more tokens than the number says. The whole call then costs the
  second price, its output included. Writing to a cache for an hour costs 1.6 times the price of cache writes.
- Dearer tiers of service, audio, server tools and fees for storing caches are not counted.

This file is made from ` + "`internal/gateway/published.go`" + ` by ` + "`make generate`" + `.
`

// prices is docs/prices.md.
func prices(*source) (string, error) {
	var b strings.Builder
	b.WriteString(pricesHead)
	page := ""
	for _, p := range gateway.PublishedPrices() {
		if p.Source == "" || p.AsOf == "" {
			return "", fmt.Errorf("the price of %s has no source or no date", p.Name)
		}
		if p.Source != page {
			page = p.Source
			fmt.Fprintf(&b, "\nFrom <%s>:\n\n| Model | Input | Output | Cache read | Cache write | Long prompt | As of |\n|---|---|---|---|---|---|---|\n", page)
		}
		long := func(plain, long float64) string {
			if p.LongPrompt == 0 || plain == 0 && long == 0 {
				return dollars(plain)
			}
			return dollars(plain) + ", long " + dollars(max(plain, long))
		}
		above := "the same"
		if p.LongPrompt > 0 {
			above = fmt.Sprintf("above %d,000 tokens", p.LongPrompt/1000)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", p.Name, long(p.Input, p.LongInput), long(p.Output, p.LongOutput),
			long(p.CacheRead, p.LongCacheRead), long(p.CacheWrite, p.LongCacheWrite), above, p.AsOf)
	}
	return b.String(), nil
}

// dollars writes a price per million tokens.
func dollars(v float64) string {
	if v == 0 {
		return "none"
	}
	return "$" + strconv.FormatFloat(v, 'f', -1, 64)
}
