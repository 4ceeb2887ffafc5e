package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/modelapi"
)

// pricesHead is the text above the tables of docs/prices.md.
const pricesHead = `# Prices of models

The default [` + "`prices`" + `](configuration-agents.md#prices) in dollars per million tokens. Providers change their prices: compare with
their pages, which are linked above the tables, and configure the differences. The values were read from copies of these pages and
from lists that quote them; the last column is the date of the value.

- A model that is neither listed nor configured is charged at the highest price of every column, so that no cap is missed. The
  status comment and the log then say that no price is set.
- An entry also applies to editions of its model, such as dated ones: ` + "`claude-opus-4`" + ` also covers ` + "`claude-opus-4-20250514`" + `
  and ` + "`claude-opus-4@20250514`" + `. An edition with a different price (such as ` + "`gpt-5.5-mini`" + `) needs its own entry.
  An entry does not apply to other versions: ` + "`claude-opus-4-9`" + ` is not listed.
- Names of other clouds and resellers, such as ` + "`us.anthropic.claude-opus-4-5-20251101-v1:0`" + `, have no price,
  because theirs may differ. Add them.
- A prompt is long if its input has more tokens than the table says, including tokens read from and written to a cache.
  The whole call then has the second price, including its output. Writing to a cache for an hour costs 1.6 times the price of cache writes.
- Service tiers with higher prices, audio, server tools and fees for storing caches are not included.

This file is made from ` + "`internal/modelapi/published.go`" + ` by ` + "`make generate`" + `.
`

// prices returns docs/prices.md.
func prices(*source) (string, error) {
	var b strings.Builder
	b.WriteString(pricesHead)
	page := ""
	for _, p := range modelapi.PublishedPrices() {
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

// dollars formats a price per million tokens.
func dollars(v float64) string {
	if v == 0 {
		return "none"
	}
	return "$" + strconv.FormatFloat(v, 'f', -1, 64)
}
