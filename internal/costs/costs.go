// Package costs simulates the cost of VMs under different policies for idle VMs: it replays a trace of tasks with a
// virtual clock, against an account that is billed by the rules and prices of package hetznerbill.
//
// A trace contains the arrival of tasks, the durations of their runs and the time that people take to respond.
// [Generate] creates traces by documented rules and a seed, and [ReadTrace] reads custom ones. The parking policies use
// the service's own function for the time at which a VM is suspended (fleet.SleepAt). Every policy gets the same trace
// and the same random durations of images and boots.
//
// The service does not use this package.
//
// Start here: [Simulate].
package costs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/machine"
)

// Setting holds the parameters of a simulation besides the trace.
type Setting struct {
	// Type and Location are the provider's names; package hetznerbill has their price.
	Type, Location string
	// ImageGB is the billed size of a suspended VM's image.
	ImageGB int
	// Period is the billing period; every started one is paid. Default one hour.
	Period time.Duration
	// Margin is how long before the end of a paid period the suspension of a parked VM starts, in addition to its
	// duration.
	Margin time.Duration
	// Seed determines the durations of boots and images.
	Seed uint64
	// Times are the cloud's durations. Default [DefaultTimes].
	Times Times
}

// DefaultSetting uses the first default candidate (hetzner.candidates), with an image of a small typical size (a
// system, tool chains, a checkout).
func DefaultSetting() Setting {
	return Setting{
		Type:     "cx43",
		Location: "fsn1",
		ImageGB:  8,
		Period:   time.Hour,
		Margin:   machine.DefaultPolicy().SleepBefore,
		Seed:     1,
		Times:    DefaultTimes(),
	}
}

// Bill is the amount due, in millionths of Currency, before tax.
type Bill struct {
	Currency string `json:"currency"`
	// Hours are the started hours of all VMs.
	Hours int64 `json:"hours"`
	// MicroVMs is for VMs with their addresses, MicroImages for images.
	MicroVMs    int64 `json:"micro_vms"`
	MicroImages int64 `json:"micro_images"`
}

// Micro returns the sum.
func (b Bill) Micro() int64 { return b.MicroVMs + b.MicroImages }

// Outcome is the result of one policy for a trace.
type Outcome struct {
	Policy string `json:"policy"`
	Bill   Bill   `json:"bill"`
	// Wakes is the number of continued tasks. At50 and At95 are the median and 95th percentile of the delay from the
	// event to the start of the agent.
	Wakes int           `json:"wakes"`
	At50  time.Duration `json:"wake_p50"`
	At95  time.Duration `json:"wake_p95"`
	// VMs is the number of created VMs, Most the maximum at a time.
	VMs  int `json:"vms"`
	Most int `json:"most"`
	// TaskHours are the started hours of the task with the most.
	TaskHours int64 `json:"task_hours"`
}

// Simulate simulates a trace once with each policy.
func Simulate(trace []Task, s Setting, policies []Policy) ([]Outcome, error) {
	outcomes := make([]Outcome, 0, len(policies))
	for _, p := range policies {
		c, err := newAccount(s, traceStart(trace))
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", p.Name, err)
		}
		o, err := simulate(trace, s, p, c)
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", p.Name, err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// simulate simulates a trace with one policy on a cloud.
func simulate(trace []Task, s Setting, p Policy, c cloud) (Outcome, error) {
	w := &world{cloud: c, policy: p, setting: s}
	for i := range trace {
		a := &actor{world: w, task: &trace[i]}
		w.at(trace[i].At.Add(time.Duration(trace[i].Runs[0].After)), a.startNextRun)
	}
	if err := w.run(); err != nil {
		return Outcome{}, err
	}
	if n := w.live; n > 0 {
		return Outcome{}, fmt.Errorf("%d VMs were not deleted", n)
	}
	bill, err := c.Bill()
	if err != nil {
		return Outcome{}, err
	}
	slices.Sort(w.waits)
	return Outcome{
		Policy:    p.Name,
		Bill:      bill,
		Wakes:     len(w.waits),
		At50:      quantile(w.waits, 50),
		At95:      quantile(w.waits, 95),
		VMs:       w.made,
		Most:      w.most,
		TaskHours: w.taskHours,
	}, nil
}

// quantile returns the smallest element of a sorted list with at least percent of the elements at or below it.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// traceStart returns the arrival of the first task of a trace.
func traceStart(trace []Task) time.Time {
	return slices.MinFunc(trace, func(a, b Task) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }).At
}
