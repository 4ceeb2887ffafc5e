package costs

import (
	"fmt"
	"slices"
	"strings"
)

// seeds is the number of seeds used for the documentation, starting with the first.
const seeds = 5

// Document returns the tables of docs/vm-costs.md: every generator with every policy, and the dependence of the first
// generator on the VM type and image size.
func Document() (string, error) {
	s := DefaultSetting()
	p, err := PriceOf(s)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Simulated with %s in %s: %s %s per hour and %s for its IPv4 address, images at %s per GB and month, %d GB each. These are\n"+
		"the fields `server_types[].prices[].price_hourly.net`, `primary_ips[].prices[].price_hourly.net` and `image.price_per_gb_month.net` of\n"+
		"`GET /pricing`, as Hetzner listed them in %s, before tax. Each line is the mean of the seeds 1 to %d; for times and maximum numbers\nthe largest of them. *Resumptions* counts how often a task at rest continues; median and 95th percentile are the delay until it does.\n\n",
		s.Type, s.Location, p.Currency, p.Hour, p.Address, p.GBMonth, s.ImageGB, PricesOf, seeds)
	fmt.Fprintf(&b, "| Trace | %s |\n|---%s|\n", strings.Join(tableColumns(), " | "), strings.Repeat("|---", len(tableColumns())))
	var first []Outcome
	for i, g := range Generators() {
		outcomes, err := sum(g.Name, s, Policies())
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = slices.Clone(outcomes)
		}
		mean(outcomes)
		for i, o := range outcomes {
			name := ""
			if i == 0 {
				name = "`" + g.Name + "`"
			}
			fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(o.cells(outcomes[0]), " | "))
		}
	}
	b.WriteString("\n")
	for _, g := range Generators() {
		fmt.Fprintf(&b, "- `%s`: %s\n", g.Name, g.Rule)
	}
	if err := writeMatrix(&b, s, first); err != nil {
		return "", err
	}
	return b.String(), nil
}

// sum returns the outcomes of a generator over all seeds.
func sum(name string, s Setting, policies []Policy) ([]Outcome, error) {
	var all [][]Outcome
	for seed := range uint64(seeds) {
		trace, err := Generate(name, seed+1)
		if err != nil {
			return nil, err
		}
		outcomes, err := Simulate(trace, s, policies)
		if err != nil {
			return nil, err
		}
		all = append(all, outcomes)
	}
	return Sum(all...), nil
}

// mean divides a sum by the number of traces.
func mean(outcomes []Outcome) {
	for i := range outcomes {
		o := &outcomes[i]
		o.Bill.Hours /= seeds
		o.Bill.MicroVMs /= seeds
		o.Bill.MicroImages /= seeds
		o.Wakes /= seeds
	}
}

// writeMatrix writes the savings of parking for other VM types and image sizes. Prices do not affect the simulation, so the
// outcomes are only billed again.
func writeMatrix(b *strings.Builder, s Setting, played []Outcome) error {
	sizes := []int{4, 8, 12, 20}
	fmt.Fprintf(b, "\nCost of parking with archives compared with immediate deletion with snapshots, for `%s`, by type of VM and size of image:\n\n| Type |", Generators()[0].Name)
	for _, gb := range sizes {
		fmt.Fprintf(b, " %d GB |", gb)
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(sizes)) + "|\n")
	for _, kind := range []string{"cx33", "cx43", "cpx32", "cpx42"} {
		at := s
		at.Type = kind
		p, err := PriceOf(at)
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "| %s |", kind)
		for _, gb := range sizes {
			bill := func(o Outcome) int64 { return o.Bill.Hours*p.micro + o.Bill.MicroImages*int64(gb)/int64(s.ImageGB) }
			fmt.Fprintf(b, " %s |", formatDifference(bill(played[2]), bill(played[1])))
		}
		b.WriteString("\n")
	}
	return nil
}
