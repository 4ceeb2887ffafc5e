package admin

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
	"github.com/prometheus/client_golang/prometheus"
)

// vmFacts emits the number of VMs by phase, their cost, and the alarms.
func (c *collector) vmFacts(ctx context.Context, out chan<- prometheus.Metric) error {
	if c.vms == nil {
		return nil
	}
	rows, err := c.vms.List(ctx)
	if err != nil {
		return err
	}
	counts, ended := map[vm.Phase]int{}, map[state.VMEndReason]int{}
	for i := range rows {
		counts[rows[i].Phase]++
		if rows[i].Phase == vm.Gone {
			ended[rows[i].EndReason]++
		}
	}
	d := desc("vm_rows", "VMs by phase; deleted ones are kept for about a day.", "phase")
	for _, phase := range vm.Phases() {
		gauge(out, d, float64(counts[phase]), string(phase))
	}
	d = desc("vm_ended", "VMs deleted in about the last day, by reason.", "why")
	for why, n := range ended {
		gauge(out, d, float64(n), string(why))
	}
	if c.alarms != nil {
		gauge(out, desc("vm_alarms", "Resources at the VM provider that errand does not manage and that need attention."), float64(len(c.alarms())))
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
	spent := desc("vm_spent", "Cost of VMs and images in the current day and month (UTC), in units of the currency, including reservations.", "period", "currency")
	images := desc("vm_spent_images", "Part of vm_spent for images.", "period", "currency")
	caps := desc("vm_spent_cap", "Caps of these; 0 means none.", "period")
	hours := desc("vm_hours", "VM hours started in the current day and month (UTC).", "period")
	for period, of := range map[string]struct {
		bill vm.Bill
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
	d := desc("vm_took_seconds", "Durations measured with recent VMs.", "what", "quantile")
	for _, t := range tookOf(times) {
		for quantile, of := range map[float64]float64{0.5: t.P50, 0.95: t.P95} {
			gauge(out, d, of, t.What, fmt.Sprint(quantile))
		}
	}
	return nil
}
