package walk

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// The VMs as the fleet shares them out, and the promise that no task waits for a VM that another one keeps idle.

// limit sets the number of VMs: in every second walk there is one, so that tasks compete. In half of these the provider has
// the limit, which errand only knows from refusals.
func (m *machines) limit(lanes []state.Lane) {
	switch lanes[0] {
	case state.LaneTalk:
		m.slots = 1
		m.w.hit("one slot")
	case state.LaneStatus:
		m.account = 1
		m.w.hit("account limit")
	}
}

// room returns how many further VMs are possible.
func (m *machines) room() int {
	if m.account > 0 {
		return m.account - m.alive()
	}
	return m.slots - m.alive()
}

// vms assigns VMs to tasks, as in internal/server.
func (m *machines) vms() *taskvm.VMs {
	return taskvm.New(taskvm.Config{
		Fleet: m, Store: m.w.journal, Rows: m, Disconnect: func(string) {}, Provider: "memory", Log: m.w.log,
		RefusedAt: func() time.Time { return m.refused },
		Times:     func(context.Context) (vm.Times, error) { return vm.Times{}, nil },
		BaseGroup: func(string) (string, bool) { return "", false },
	})
}

// queue gives VMs to the tasks that wait for one.
func (m *machines) queue() *taskvm.Queue {
	return taskvm.NewQueue(taskvm.QueueConfig{
		Store: m.w.journal, Rows: m, VMs: m.slots, Provider: "memory", Now: func() time.Time { return m.w.now }, Log: m.w.log,
		RefusedAt: func() time.Time { return m.refused },
	})
}

// List returns the rows that the fleet would have of the VMs.
func (m *machines) List(context.Context) ([]vm.Row, error) {
	var rows []vm.Row
	for _, o := range m.list {
		key, err := state.ParseTaskKey(o.owner)
		if err != nil {
			return nil, err
		}
		phase := vm.Parked
		if o.ended {
			phase = vm.Gone
		}
		rows = append(rows, vm.Row{Name: o.name, Task: key, Gen: o.gen(), Phase: phase, Provider: "memory", CreatedAt: o.created, EndedAt: o.endedAt})
	}
	m.intended = slices.DeleteFunc(m.intended, func(r vm.Row) bool { // the reaper deletes those that no task needs
		return !slices.ContainsFunc(m.w.tasks(), func(t *state.Task) bool { return t.Key == r.Task && t.IsQueuedForVM() })
	})
	return append(rows, m.intended...), nil
}

// gen returns the generation in the VM's name.
func (o *walkVM) gen() int {
	var issue, gen int
	if _, err := fmt.Sscanf(o.name, "vm-%d-%d", &issue, &gen); err != nil {
		panic(err)
	}
	return gen
}

// isIntended reports whether a VM was refused, and is still to be created.
func (m *machines) isIntended(name string) bool {
	return slices.ContainsFunc(m.intended, func(r vm.Row) bool { return r.Name == name })
}

// refuse keeps the row of a VM that the provider refuses because of the account's limit.
func (m *machines) refuse(server fleet.VM, task state.TaskKey) error {
	m.w.hit("refused by the account's limit")
	m.refused = m.w.now
	if !m.isIntended(server.Name) {
		m.intended = append(m.intended, vm.Row{Name: server.Name, Task: task, Gen: server.Gen, Phase: vm.Intended, Provider: "memory", Since: m.w.now})
	}
	return &fleet.NoCapacityError{Reason: "the limit is reached", Cause: fleet.ErrQuota}
}

func (m *machines) Images(context.Context, time.Duration) ([]fleet.Image, error) { return nil, nil }

// Acquire finds or creates the task's VM by its derived name, as the fleet does.
func (m *machines) Acquire(ctx context.Context, spec fleet.AcquireSpec) (server fleet.VM, err error) {
	err = m.w.gate(ctx, "acquire VM", true, func() error {
		for gen := spec.Gen; gen < spec.Gen+5; gen++ {
			server = fleet.VM{Name: fmt.Sprintf("vm-%d-%d", spec.Task.Issue, gen), Kind: "memory", Gen: gen, CreatedAt: m.w.now}
			i := slices.IndexFunc(m.list, func(o *walkVM) bool { return o.name == server.Name })
			switch {
			case i >= 0 && !m.list[i].ended:
				return nil
			case i >= 0:
				continue
			case m.w.now.Before(m.full):
				return &fleet.NoCapacityError{Reason: "the provider has none"}
			case !m.isIntended(server.Name) && m.alive()+len(m.intended)+spec.Behind >= m.slots:
				m.w.hit("queued for a VM")
				return &fleet.NoCapacityError{Reason: "all are in use", Cause: &vm.LimitError{Limit: vm.LimitVMs, Reason: "all VMs are in use"}}
			case m.room() <= 0:
				return m.refuse(server, spec.Task)
			}
			m.refused = time.Time{}
			m.intended = slices.DeleteFunc(m.intended, func(r vm.Row) bool { return r.Name == server.Name })
			m.list = append(m.list, &walkVM{name: server.Name, owner: spec.Task.String(), created: m.w.now, blobs: map[string][]byte{}})
			return nil
		}
		return &fleet.NoCapacityError{Reason: "they end at once"}
	})
	return server, err
}

// Time limits in walks without failures. While a task waits for a VM, a task that waits for people may keep its own for
// keepLimit, because saving its work takes a while, and a VM may be free for freeLimit.
const (
	keepLimit = 10 * time.Minute
	freeLimit = 3 * time.Minute
)

// checkQueue checks that a task that waits for people never keeps another one waiting: within minutes the idle VM is
// suspended, or a free one used.
func (m *model) checkQueue() {
	w, kept := m.w, map[string]time.Time{}
	var waits *state.Task
	for _, t := range w.tasks() {
		if t.Phase.Working() && t.Waiting != nil && t.Waiting.Kind == state.WaitVM && (waits == nil || t.Waiting.Since.Before(waits.Waiting.Since)) {
			waits = t
		}
	}
	if waits == nil || w.now.Before(w.machines.full.Add(31*time.Minute)) { // it tries again every half hour when the provider has none
		m.kept = kept
		return
	}
	note := func(name string, limit time.Duration, what string) {
		since, known := m.kept[name]
		if !known {
			since = w.now
		}
		kept[name] = since
		since = later(later(since, w.trouble), w.errand.born)
		if w.errand.up() && w.now.After(since.Add(limit+3*w.interval())) {
			w.fatalf("slots: task %s has waited for a VM since %s, but %s: %+v, jobs %v", waits.Key, sub(waits.Waiting.Since), what, waits.Waiting, w.jobsOf(waits))
		}
	}
	if w.machines.room() > 0 {
		note("", freeLimit, "one is free")
	}
	for _, t := range w.tasks() {
		if t.VM == nil || t.Gathering != nil || t.Run != nil || w.rests(t) != "people" || t.Key == waits.Key {
			continue
		}
		for _, o := range w.machines.list {
			if o.name == t.VM.Name && !o.ended && !w.now.Before(o.deaf) {
				note(o.name, keepLimit, fmt.Sprintf("task %s (%s) keeps %s while it waits for people, jobs %v", t.Key, t.Phase, o.name, w.jobsOf(t)))
			}
		}
	}
	m.kept = kept
}

// coarseSpan is a span of time that has ended, with the interval of watchers in it.
type coarseSpan struct {
	interval time.Duration
	at       time.Time
}

// interval returns the interval at which watchers run. After a long span, its interval applies for two more minutes.
func (w *world) interval() time.Duration {
	if w.now.Before(w.ended.at.Add(2 * time.Minute)) {
		return max(w.coarse, w.ended.interval)
	}
	return w.coarse
}
