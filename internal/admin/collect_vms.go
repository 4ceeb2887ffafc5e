package admin

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/errand-bot/errand/state"
)

// vmFacts counts VMs by the phase that they are in, what they cost, and what somebody has to see to.
func (c *collector) vmFacts(ctx context.Context, out chan<- prometheus.Metric) error {
	if c.vms == nil {
		return nil
	}
	rows, err := c.vms.List(ctx)
	if err != nil {
		return err
	}
	counts, ended := map[state.VMPhase]int{}, map[string]int{}
	for i := range rows {
		counts[rows[i].Phase]++
		if rows[i].Phase == state.VMGone {
			ended[rows[i].Why]++
		}
	}
	d := desc("vm_rows", "VMs by phase; those that are gone stay for about a day.", "phase")
	for _, phase := range state.VMPhases() {
		gauge(out, d, float64(counts[phase]), string(phase))
	}
	d = desc("vm_ended", "VMs that went in the last day or so, by why.", "why")
	for why, n := range ended {
		gauge(out, d, float64(n), why)
	}
	if c.alarms != nil {
		gauge(out, desc("vm_alarms", "Things at the provider of VMs that errand does not touch and somebody has to see to."), float64(len(c.alarms())))
	}
	if err := c.vmMoney(ctx, out); err != nil {
		return err
	}
	return c.vmTimes(ctx, out)
}

func (c *collector) vmMoney(ctx context.Context, out chan<- prometheus.Metric) error {
	day, month, err := c.vms.Spent(ctx, c.now())
	if err != nil {
		return err
	}
	spent := desc("vm_spent", "What VMs and images have cost in this day and month of UTC, in units of the currency, with what is reserved.", "period", "currency")
	images := desc("vm_spent_images", "The part of vm_spent that images cost.", "period", "currency")
	caps := desc("vm_spent_cap", "The caps of these; 0 bounds nothing.", "period")
	hours := desc("vm_hours", "Hours of VMs that were begun in this day and month of UTC.", "period")
	for period, of := range map[string]struct {
		bill state.VMBill
		most int64
	}{"day": {day, c.caps.MicroDay}, "month": {month, c.caps.MicroMonth}} {
		gauge(out, spent, units(of.bill.Micro), period, of.bill.Currency)
		gauge(out, images, units(of.bill.Images), period, of.bill.Currency)
		gauge(out, caps, units(of.most), period)
		gauge(out, hours, of.bill.Time.Hours(), period)
	}
	return nil
}

func (c *collector) vmTimes(ctx context.Context, out chan<- prometheus.Metric) error {
	times, err := c.vms.Times(ctx)
	if err != nil {
		return err
	}
	d := desc("vm_took_seconds", "How long things took with the last VMs.", "what", "quantile")
	for _, t := range tookOf(times) {
		for quantile, of := range map[float64]float64{0.5: t.P50, 0.95: t.P95} {
			gauge(out, d, of, t.What, fmt.Sprint(quantile))
		}
	}
	return nil
}
