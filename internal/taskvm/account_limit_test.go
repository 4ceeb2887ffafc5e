package taskvm

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestAccountLimitInTheQueue: after a refusal by the provider the tasks wait for VMs that are deleted, although errand may
// create more, and idle VMs are suspended for them.
func TestAccountLimitInTheQueue(t *testing.T) {
	t.Parallel()
	queued := func(issue, since int) state.TaskOverview {
		return state.TaskOverview{Key: key(issue), Queued: at(since), Place: since}
	}
	idle := state.TaskOverview{Key: key(8), IdleVM: "idle", IdleSince: at(1)}
	two := []state.TaskOverview{queued(1, 1), queued(2, 2), idle}
	row := func(name string, issue int, phase vm.Phase, created, ended int) vm.Row {
		r := vm.Row{Name: name, Task: key(issue), Phase: phase, Provider: "hetzner", Since: at(max(created, ended))}
		if created > 0 {
			r.CreatedAt = at(created)
		}
		if phase == vm.Gone {
			r.EndedAt = at(ended)
		}
		return r
	}
	parked, intended := row("idle", 8, vm.Parked, 1, 0), row("first", 1, vm.Intended, 0, 0)
	of := func(r vm.Row, provider string) vm.Row {
		r.Provider = provider
		return r
	}
	for name, c := range map[string]struct {
		refused int // 0 for never
		slots   int
		tasks   []state.TaskOverview
		rows    []vm.Row
		want    []string
	}{
		"no refusal":                        {0, 9, two, []vm.Row{parked}, []string{"#1 retries", "#2 retries"}},
		"a refusal":                         {50, 9, two, []vm.Row{parked, intended}, []string{"#8 gives up idle"}},
		"nobody waits":                      {50, 9, []state.TaskOverview{idle}, []vm.Row{parked}, nil},
		"a VM was deleted before":           {50, 9, two, []vm.Row{parked, intended, row("old", 7, vm.Gone, 1, 49)}, []string{"#8 gives up idle"}},
		"a VM was deleted since":            {50, 9, two, []vm.Row{parked, intended, row("old", 7, vm.Gone, 1, 51)}, []string{"#1 retries", "#8 gives up idle"}},
		"two were deleted since":            {50, 9, two, []vm.Row{parked, row("a", 7, vm.Gone, 1, 51), row("b", 6, vm.Gone, 1, 52)}, []string{"#1 retries", "#2 retries"}},
		"the provider never had it":         {50, 9, two, []vm.Row{parked, row("a", 7, vm.Gone, 0, 51)}, []string{"#8 gives up idle"}},
		"it was another provider's":         {50, 9, two, []vm.Row{parked, of(row("a", 7, vm.Gone, 1, 51), "local")}, []string{"#8 gives up idle"}},
		"it was taken over":                 {50, 9, two, []vm.Row{parked, {Name: "a", Provider: "hetzner", Phase: vm.Gone, CreatedAt: at(1), EndedAt: at(51), Successor: "b"}}, []string{"#8 gives up idle"}},
		"a VM is being deleted":             {50, 9, two[1:], []vm.Row{parked, row("a", 7, vm.Deleting, 1, 59)}, nil},
		"a deletion that lasts too long":    {50, 9, two[1:], []vm.Row{parked, row("a", 7, vm.Deleting, 1, 40)}, []string{"#8 gives up idle"}},
		"errand's own limit, too":           {50, 1, two, []vm.Row{parked, row("a", 7, vm.Gone, 1, 51), row("b", 6, vm.Gone, 1, 52)}, []string{"#8 gives up idle"}},
		"the intended VM needs no own slot": {0, 2, two[:1], []vm.Row{parked, intended}, []string{"#1 retries"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &office{now: at(60), tasks: slices.Clone(c.tasks), rows: c.rows, busy: map[string]bool{}, slots: 0}
			if c.refused > 0 {
				o.refused = at(c.refused)
			}
			q := o.queue()
			q.cfg.VMs, q.cfg.Provider = c.slots, "hetzner"
			o.step(t, q)
			o.events = slices.DeleteFunc(o.events, func(s string) bool { return strings.Contains(s, " is number ") })
			if d := cmp.Diff(c.want, o.events, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestAccountLimitQueuesUp: while the provider refuses VMs because of the account's limit, only as many tasks order one as VMs
// were deleted, in the order of the queue, and a task whose order was refused waits at its place. A task that has a VM keeps it.
func TestAccountLimitQueuesUp(t *testing.T) {
	t.Parallel()
	deleted := vm.Row{Name: "gone", Task: key(8), Phase: vm.Gone, Provider: "local", CreatedAt: at(1), EndedAt: at(50)}
	for name, c := range map[string]struct {
		issue   int
		refused time.Time
		rows    []vm.Row
		full    bool // the provider refuses the order
		orders  int
		place   int // 0 if the task gets a VM
	}{
		"the first asks again":             {issue: 1, refused: at(40), full: true, orders: 1, place: 1},
		"the second waits":                 {issue: 2, refused: at(40), orders: 0, place: 2},
		"a newcomer waits":                 {issue: 3, refused: at(40), orders: 0, place: 3},
		"one was deleted, for the first":   {issue: 2, refused: at(40), rows: []vm.Row{deleted}, orders: 0, place: 2},
		"two were deleted":                 {issue: 2, refused: at(40), rows: []vm.Row{deleted, deleted}, orders: 1},
		"they were deleted before":         {issue: 2, refused: at(55), rows: []vm.Row{deleted, deleted}, orders: 0, place: 2},
		"no refusal":                       {issue: 2, orders: 1},
		"the first refusal of a newcomer":  {issue: 3, full: true, orders: 1, place: 3},
		"its VM is there":                  {issue: 3, refused: at(40), rows: []vm.Row{{Name: "c", Task: key(3), Gen: 1, Phase: vm.Parked}}, orders: 1},
		"its VM is there, but of long ago": {issue: 3, refused: at(40), rows: []vm.Row{{Name: "c", Task: key(3), Gen: 0, Phase: vm.Parked}}, orders: 0, place: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &office{refused: c.refused, rows: c.rows, tasks: []state.TaskOverview{{Key: key(1), Queued: at(1)}, {Key: key(2), Queued: at(2)}, {Key: key(3)}}}
			of := &cloud{}
			if c.full {
				of.err = noVM(fleet.ErrQuota)
			}
			_, err := o.vms(of).Acquire(t.Context(), &state.Task{Key: key(c.issue)})
			place := 0
			if queued := (*workspace.QueuedError)(nil); errors.As(err, &queued) {
				place, err = queued.Place, nil
			}
			if err != nil || place != c.place || of.orders != c.orders {
				t.Errorf("got place %d, %d orders, error %v; want place %d, %d orders", place, of.orders, err, c.place, c.orders)
			}
		})
	}
}
