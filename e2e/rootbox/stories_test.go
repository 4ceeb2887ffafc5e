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

// fault is a failure of a VM during the agent's work.
type fault struct {
	unreachable time.Duration // how long a VM is unreachable before it counts as lost
	do          string        // additional command of the agent after the gate
	strike      func(b *rootbox.Box, ctx context.Context) error
	// noticed undoes it once errand has detected it, before the model continues; killed, once the kernel has killed a
	// process.
	noticed func(b *rootbox.Box, ctx context.Context) error
	killed  func(b *rootbox.Box) error
	why     string // the reason of the task's interruption; empty if it was not interrupted
	vms     int    // VMs that ended before the pull request
}

const (
	// hog uses 300 MB.
	hog = "head -c 400M /dev/zero | tail -c 300M | wc -c"
	// hogs use as much in total, and make the kernel kill the agent before them.
	hogs = "echo 1000 > /proc/$PPID/oom_score_adj; for i in 1 2 3 4 5 6 7 8 9 10; do (head -c 40M /dev/zero | tail -c 30M | wc -c) & done; wait"
)

// faults are all failures of a VM, and "none" for comparison.
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

// TestFaults causes a failure at the gate, during the agent's work. Each story ends with the same result, on the same
// VM or, after an interruption with a comment, on another one.
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
				eventually(t, "errand detects the fault", func() bool { return l.logged("connection to VM lost") })
				must(t, f.noticed(box, within(t)))
			}
			l.world.Model.Release("work")
			if f.killed != nil {
				eventually(t, "the kernel kills a process", func() bool {
					n, err := box.Killed()
					must(t, err)
					return n > 0
				})
				must(t, f.killed(box))
			}
			l.wantCourse(l.wantPublished(), f)
		})
	}
}

// wantPublished waits until the change is published, and compares it with the expected one.
func (l *life) wantPublished() *state.Task {
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
		l.t.Errorf("got the change %q, %v", data, err)
	}
	if _, err := l.ada().File(demo.Full, i.Pull.Head, "half.txt"); err == nil {
		l.t.Error("partial work was published")
	}
	return task
}

// wantCourse checks that the task's course matches the fault.
func (l *life) wantCourse(task *state.Task, f fault) {
	l.t.Helper()
	if len(task.VMs) != f.vms || task.VM == nil {
		l.t.Errorf("got %d ended VMs, want %d; current VM %+v", len(task.VMs), f.vms, task.VM)
	}
	interrupted := ""
	for _, h := range task.History {
		if h.Phase == state.PhaseInterrupted {
			interrupted = h.Reason
		}
	}
	if interrupted != f.why {
		l.t.Errorf("got interruption %q, want %q", interrupted, f.why)
	}
	eventually(l.t, "the reason in the status comment", func() bool { return strings.Contains(l.comments(), f.why) })
}
