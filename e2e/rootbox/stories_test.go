//go:build linux

package rootbox_test

import (
	"cmp"
	"testing"

	"github.com/errand-bot/errand/e2e/rootbox"
	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/state"
)

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

// TestNoFault is what the others are held against.
func TestNoFault(t *testing.T) {
	t.Parallel()
	l := begin(t, "10m", "true")
	l.world.Model.Release("work")
	task := l.ends()
	if len(task.VMs) != 0 || task.VM == nil {
		t.Errorf("VM %+v, after %+v", task.VM, task.VMs)
	}
	t.Log(l.comments())
}

// TestFaults strikes at the gate, in the midst of the agent's work.
func TestFaults(t *testing.T) {
	t.Parallel()
	rootbox.Require(t)
	for name, tt := range map[string]struct {
		unreachable string // for how long before a VM counts as lost
		do          string // what the agent runs after the gate
		strike      func(l *life, b *rootbox.Box) error
		undo        func(l *life, b *rootbox.Box) error // once errand has noticed
		vms         int                                 // that have ended before the pull request
	}{
		"killed": {unreachable: "3s", strike: func(l *life, b *rootbox.Box) error { return b.Kill(within(l.t)) }, vms: 1},
		"cut for a while": {
			unreachable: "10m",
			strike:      func(l *life, b *rootbox.Box) error { return b.Cut(within(l.t)) },
			undo:        func(l *life, b *rootbox.Box) error { return b.Heal(within(l.t)) },
		},
		"cut for good": {unreachable: "3s", strike: func(l *life, b *rootbox.Box) error { return b.Cut(within(l.t)) }, vms: 1},
		"frozen for a while": {
			unreachable: "10m",
			strike:      func(l *life, b *rootbox.Box) error { return b.Freeze(within(l.t)) },
			undo:        func(l *life, b *rootbox.Box) error { return b.Thaw() },
		},
		"frozen for good": {unreachable: "3s", strike: func(l *life, b *rootbox.Box) error { return b.Freeze(within(l.t)) }, vms: 1},
		"disk full":       {unreachable: "3s", strike: func(l *life, b *rootbox.Box) error { return b.Fill() }, vms: 1},
		"out of memory": {
			unreachable: "10m", do: "head -c 400M /dev/zero | tail -c 300M | wc -c",
			strike: func(l *life, b *rootbox.Box) error { return b.Starve(150) },
		},
		"slow": {unreachable: "10m", strike: func(l *life, b *rootbox.Box) error { return b.Slow(within(l.t), 512) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, tt.unreachable, cmp.Or(tt.do, "true"))
			must(t, tt.strike(l, l.box()))
			if tt.undo != nil {
				eventually(t, "errand notices", func() bool { return l.logged("connection to VM lost") })
				must(t, tt.undo(l, l.box()))
			}
			l.world.Model.Release("work")
			task := l.ends()
			if len(task.VMs) != tt.vms {
				t.Errorf("%d VMs have ended, want %d: %+v", len(task.VMs), tt.vms, task.VMs)
			}
			l.tell()
		})
	}
}
