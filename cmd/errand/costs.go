package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/costs"
)

// costsFlags are the flags of simulate-costs.
type costsFlags struct {
	trace, generate string
	seed            uint64
	setting         costs.Setting
	write, json     bool
}

// costsCommand simulates the cost of VMs. It calls no provider: the prices are the simulator's.
func costsCommand(w cli.World) *cobra.Command {
	f := costsFlags{setting: costs.DefaultSetting()}
	var names, rules []string
	for _, g := range costs.Generators() {
		names, rules = append(names, g.Name), append(rules, fmt.Sprintf("  %s: %s", g.Name, g.Rule))
	}
	c := &cobra.Command{
		Use:   "simulate-costs",
		Short: "Simulate the cost of VMs under different policies for idle VMs",
		Long: "Replay a trace of tasks against a simulator of Hetzner Cloud, once for each policy, and print the bills.\n" +
			"Nothing is ordered and no provider is called: prices are Hetzner's of " + costs.PricesOf + ", before tax.\n\n" +
			"A trace has one task per line, in the format of `--write`. Generators:\n" + strings.Join(rules, "\n"),
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return f.run(w.Out) },
	}
	c.Flags().StringVar(&f.trace, "trace", "", "file with one task per line; - is standard input")
	c.Flags().StringVar(&f.generate, "generate", names[0], "generator of the trace: "+strings.Join(names, ", "))
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the generated trace and of the simulated durations")
	c.Flags().StringVar(&f.setting.Type, "type", f.setting.Type, "type of the VMs")
	c.Flags().StringVar(&f.setting.Location, "location", f.setting.Location, "location of the VMs")
	c.Flags().IntVar(&f.setting.ImageGB, "image-gb", f.setting.ImageGB, "size of a suspended VM's image")
	c.Flags().BoolVar(&f.write, "write", false, "print the trace instead of replaying it")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON: money in millionths, durations in nanoseconds")
	c.MarkFlagsMutuallyExclusive("trace", "generate")
	c.MarkFlagsMutuallyExclusive("write", "json")
	return c
}

// read returns the trace.
func (f *costsFlags) read() ([]costs.Task, error) {
	switch f.trace {
	case "":
		return costs.Generate(f.generate, f.seed)
	case "-":
		return costs.ReadTrace(os.Stdin)
	}
	file, err := os.Open(f.trace)
	if err != nil {
		return nil, fmt.Errorf("open the trace: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	trace, err := costs.ReadTrace(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.trace, err)
	}
	return trace, nil
}

func (f *costsFlags) run(out io.Writer) error {
	trace, err := f.read()
	if err != nil {
		return err
	}
	if f.write {
		return costs.WriteTrace(out, trace)
	}
	f.setting.Seed = f.seed
	price, err := costs.PriceOf(f.setting)
	if err != nil {
		return err
	}
	outcomes, err := costs.Simulate(trace, f.setting, costs.Policies())
	if err != nil {
		return err
	}
	if f.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(outcomes)
	}
	if _, err := fmt.Fprintf(out, "%d tasks on %s in %s, at %s %s an hour and %s for the address; images of %d GB at %s per GB and month.\nPrices of %s, before tax; your bill follows the current prices.\n\n",
		len(trace), f.setting.Type, f.setting.Location, price.Currency, price.Hour, price.Address,
		f.setting.ImageGB, price.GBMonth, costs.PricesOf); err != nil {
		return err
	}
	return costs.Print(out, outcomes)
}
