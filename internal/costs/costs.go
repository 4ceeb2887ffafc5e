// Package costs says what VMs cost under different ways of letting them rest: it plays a trace of tasks
// against the stand-in of Hetzner Cloud, on a virtual clock, and reads the stand-in's bill.
//
// A trace is when tasks come, how long their runs take and how long people let them wait; Generate makes
// some by stated rules and a seed, and ReadTrace takes one's own. What is compared are Policies, of which
// the parking ones ask the same function that the service asks when a VM goes to sleep (fleet.SleepAt). Every policy gets the
// same trace, and the same luck with the time that a cloud takes to make images and to boot.
//
// Nothing here is part of the service. Start reading at Play.
package costs

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/machine"
)

// Setting is what a trace is played on, besides the trace itself.
type Setting struct {
	// Type and Location are the VM's, in the provider's words; their price is the stand-in's.
	Type, Location string
	// ImageGB is what is paid for of a sleeping VM's image.
	ImageGB int
	// Period is what is paid for at least, and in whole. Default one hour.
	Period time.Duration
	// Margin is how long before the end of what is paid a parked VM is put to sleep, besides what that takes.
	Margin time.Duration
	// Seed decides how long boots and images take.
	Seed uint64
	// Times are what the cloud takes. Default DefaultTimes.
	Times Times
}

// DefaultSetting is the first of the default's candidates (hetzner.candidates), with an image at the small end of
// what people report of theirs (a system, tool chains, a checkout).
func DefaultSetting() Setting {
	return Setting{Type: "cx43", Location: "fsn1", ImageGB: 8, Period: time.Hour, Margin: machine.DefaultPolicy().SleepBefore, Seed: 1, Times: DefaultTimes()}
}

// Bill is what is to be paid, in millionths of Currency, before tax.
type Bill struct {
	Currency string `json:"currency"`
	// Hours are the started hours of all VMs.
	Hours int64 `json:"hours"`
	// MicroVMs are for VMs with their addresses, MicroImages for what sleeps as an image.
	MicroVMs    int64 `json:"micro_vms"`
	MicroImages int64 `json:"micro_images"`
}

// Micro is the sum.
func (b Bill) Micro() int64 { return b.MicroVMs + b.MicroImages }

// Outcome is what one policy made of a trace.
type Outcome struct {
	Policy string `json:"policy"`
	Bill   Bill   `json:"bill"`
	// Wakes is how often a task at rest went on; At50 and At95 are what that took, for half and for
	// 95 of 100 of them: from the event to the moment when the agent starts.
	Wakes int           `json:"wakes"`
	At50  time.Duration `json:"wake_p50"`
	At95  time.Duration `json:"wake_p95"`
	// VMs is how many were made, Most how many there were at once.
	VMs  int `json:"vms"`
	Most int `json:"most"`
	// TaskHours are the started hours of the task that had the most.
	TaskHours int64 `json:"task_hours"`
}

// Play plays a trace once under each policy.
func Play(trace []Task, s Setting, policies []Policy) ([]Outcome, error) {
	outcomes := make([]Outcome, 0, len(policies))
	for _, p := range policies {
		c, err := newStandIn(s, begin(trace))
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", p.Name, err)
		}
		o, err := play(trace, s, p, c)
		if err != nil {
			return nil, fmt.Errorf("simulate %s: %w", p.Name, err)
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// play plays a trace under one policy on a cloud.
func play(trace []Task, s Setting, p Policy, c cloud) (Outcome, error) {
	w := &world{cloud: c, policy: p, setting: s}
	for i := range trace {
		a := &actor{world: w, task: &trace[i]}
		w.at(trace[i].At.Add(time.Duration(trace[i].Runs[0].After)), a.want)
	}
	if err := w.run(); err != nil {
		return Outcome{}, err
	}
	if n := w.live; n > 0 {
		return Outcome{}, fmt.Errorf("%d VMs are left over", n)
	}
	bill, err := c.Bill()
	if err != nil {
		return Outcome{}, err
	}
	slices.Sort(w.waits)
	return Outcome{Policy: p.Name, Bill: bill, Wakes: len(w.waits), At50: quantile(w.waits, 50), At95: quantile(w.waits, 95), VMs: w.made, Most: w.most, TaskHours: w.taskHours}, nil
}

// quantile is the smallest of a sorted list that is not below percent of it.
func quantile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// begin is when the first task of a trace comes.
func begin(trace []Task) time.Time {
	return slices.MinFunc(trace, func(a, b Task) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }).At
}
