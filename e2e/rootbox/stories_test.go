//go:build linux

package rootbox_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/state"
)

// fault is what befalls a VM in the midst of the agent's work.
type fault struct {
	unreachable time.Duration // for how long before a VM counts as lost
	do          string        // what the agent runs besides, after the gate
	strike      func(b *rootbox.Box, ctx context.Context) error
	// noticed undoes it once errand has noticed, before the model goes on; killed, once the kernel has killed.
	noticed func(b *rootbox.Box, ctx context.Context) error
	killed  func(b *rootbox.Box) error
	why     string // the task was interrupted, as its status says; empty if it was not
	vms     int    // that ended before the pull request
}

const (
	// hog takes 300 MB.
	hog = "head -c 400M /dev/zero | tail -c 300M | wc -c"
	// hogs take as much, by and by, and have the kernel find the agent worse than themselves.
	hogs = "echo 1000 > /proc/$PPID/oom_score_adj; for i in 1 2 3 4 5 6 7 8 9 10; do (head -c 40M /dev/zero | tail -c 30M | wc -c) & done; wait"
)

// faults are all that can befall one, and "none" to hold the others against.
func faults() map[string]fault {
	return map[string]fault{
		"none":               {strike: func(*rootbox.Box, context.Context) error { return nil }},
		"killed":             {unreachable: 3 * time.Second, strike: (*rootbox.Box).Kill, why: "the VM was lost", vms: 1},
		"cut for a while":    {strike: (*rootbox.Box).Cut, noticed: (*rootbox.Box).Heal},
		"cut for good":       {unreachable: 3 * time.Second, strike: (*rootbox.Box).Cut, why: "the VM was lost", vms: 1},
		"frozen for a while": {strike: (*rootbox.Box).Freeze, noticed: func(b *rootbox.Box, _ context.Context) error { return b.Thaw() }},
		"frozen for good":    {unreachable: 3 * time.Second, strike: (*rootbox.Box).Freeze, why: "the VM was lost", vms: 1},
		"disk full":          {strike: func(b *rootbox.Box, _ context.Context) error { return b.Fill() }, why: "the VM's disk was full", vms: 1},
		"slow":               {strike: func(b *rootbox.Box, ctx context.Context) error { return b.Slow(ctx, 512) }},
		"out of memory":      {do: hog, strike: starve, killed: (*rootbox.Box).Feed},
		"out of memory, agent": {
			do: hogs, strike: starve, killed: (*rootbox.Box).Feed, why: "the agent's program was killed before its work was done",
		},
	}
}

func starve(b *rootbox.Box, _ context.Context) error { return b.Starve(150) }

// TestFaults strikes at the gate, in the midst of the agent's work. Each story ends in the same result,
// on the same VM or, after the task was interrupted and said why, on another one.
func TestFaults(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	for name, f := range faults() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, cmp.Or(f.unreachable, 10*time.Minute), cmp.Or(f.do, "true"))
			box := l.box()
			must(t, f.strike(box, within(t)))
			if f.noticed != nil {
				eventually(t, "errand notices", func() bool { return l.logged("connection to VM lost") })
				must(t, f.noticed(box, within(t)))
			}
			l.world.Model.Release("work")
			if f.killed != nil {
				eventually(t, "the kernel kills", func() bool {
					n, err := box.Killed()
					must(t, err)
					return n > 0
				})
				must(t, f.killed(box))
			}
			l.suits(l.ends(), f)
		})
	}
}

// ends waits until the change is published, and holds it against what was asked for.
func (l *life) ends() *state.Task {
	l.t.Helper()
	var task *state.Task
	eventually(l.t, "the pull request", func() bool {
		task = l.task()
		if task.Phase == state.PhaseFailed || task.Phase == state.PhaseCancelled {
			l.t.Fatalf("the task is %s: %+v", task.Phase, task.End)
		}
		return task.Phase == state.PhasePROpen && task.PR != nil
	})
	i, err := l.ada().Issue(demo.Full, task.PR.Number)
	must(l.t, err)
	data, err := l.ada().File(demo.Full, i.Pull.Head, "greeting.txt")
	if err != nil || string(data) != "hello\nworld\n" {
		l.t.Errorf("the change is %q, %v", data, err)
	}
	if _, err := l.ada().File(demo.Full, i.Pull.Head, "half.txt"); err == nil {
		l.t.Error("half of the work is published")
	}
	return task
}

// suits holds a task's way against the fault that befell it.
func (l *life) suits(task *state.Task, f fault) {
	l.t.Helper()
	if len(task.VMs) != f.vms || task.VM == nil {
		l.t.Errorf("%d VMs have ended, want %d; the present one is %+v", len(task.VMs), f.vms, task.VM)
	}
	interrupted := ""
	for _, h := range task.History {
		if h.Phase == state.PhaseInterrupted {
			interrupted = h.Why
		}
	}
	if interrupted != f.why {
		l.t.Errorf("interrupted because %q, want %q", interrupted, f.why)
	}
	eventually(l.t, "the status comment says it", func() bool { return strings.Contains(l.comments(), f.why) })
}
