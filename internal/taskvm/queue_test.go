package taskvm

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// An office has tasks, VMs and their queue. Its tasks are in memory and obey events as the transition table does.
type office struct {
	now    time.Time
	tasks  []state.TaskOverview
	rows   []vm.Row
	events []string        // applied, as text
	busy   map[string]bool // VMs that are needed although they seem idle: events for them have no effect
	slots  int
	// refused is when the provider last refused a VM because of the account's limit, and account that limit, 0 for none.
	refused time.Time
	account int
}

func at(minute int) time.Time {
	return time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
}

func key(issue int) state.TaskKey { return state.TaskKey{Repo: 7, Issue: issue} }

func (o *office) Overviews(context.Context) ([]state.TaskOverview, error) { return o.tasks, nil }

func (o *office) List(context.Context) ([]vm.Row, error) { return o.rows, nil }

func (o *office) Wake(context.Context) <-chan struct{} { return nil }

func (o *office) Apply(_ context.Context, e event.Event, _ store.Ack) (store.Applied, error) {
	i := slices.IndexFunc(o.tasks, func(t state.TaskOverview) bool { return t.Key == e.Task })
	t, changed := &o.tasks[i], true
	switch p := e.Payload.(type) {
	case event.ConditionChanged:
		o.events = append(o.events, fmt.Sprintf("#%d retries", e.Task.Issue))
		o.launch(t)
	case event.VMWanted:
		if changed = !o.busy[p.VM]; changed {
			t.WantedAt = o.now
			o.events = append(o.events, fmt.Sprintf("#%d gives up %s", e.Task.Issue, p.VM))
		}
	case event.QueueMoved:
		t.Place = p.Place
		o.events = append(o.events, fmt.Sprintf("#%d is number %d", e.Task.Issue, p.Place))
	default:
		panic("no such event")
	}
	return store.Applied{Changed: changed}, nil
}

// launch gives the task a VM, or lets it wait, as the fleet does.
func (o *office) launch(t *state.TaskOverview) bool {
	s, err := o.vms(nil).findPlace(context.Background(), &state.Task{Key: t.Key})
	if err != nil {
		panic(err)
	}
	row := slices.IndexFunc(o.rows, func(r vm.Row) bool { return r.Task == t.Key && r.Phase == vm.Intended })
	if row < 0 && inUse(o.rows, nil)+s.behind < o.slots && !s.mustWait {
		row = len(o.rows)
		o.rows = append(o.rows, vm.Row{Name: fmt.Sprintf("vm%d", row+1), Task: t.Key, Phase: vm.Intended, Provider: "local"})
	}
	if row < 0 || o.account > 0 && o.inAccount() >= o.account {
		if row >= 0 {
			o.refused = o.now
		}
		if !isQueued(*t) {
			t.Queued = o.now
		}
		t.Place = s.place
		return false
	}
	t.Queued, t.Place, o.refused = time.Time{}, 0, time.Time{}
	o.rows[row].Phase, o.rows[row].CreatedAt = vm.Busy, o.now
	return true
}

// inAccount returns the number of VMs that the provider has.
func (o *office) inAccount() (n int) {
	for _, r := range o.rows {
		if r.Phase != vm.Intended && r.EndedAt.IsZero() {
			n++
		}
	}
	return n
}

// confirm ends all deletions.
func (o *office) confirm() {
	for i := range o.rows {
		if o.rows[i].Phase == vm.Deleting {
			o.rows[i].Phase, o.rows[i].EndedAt = vm.Gone, o.now
		}
	}
}

// rest ends the run of a task, which then waits for people.
func (o *office) rest(issue int) {
	for i := range o.rows {
		if r := &o.rows[i]; r.Task == key(issue) && r.Phase == vm.Busy {
			r.Phase = vm.Parked
			o.task(issue).IdleVM, o.task(issue).IdleSince = r.Name, o.now
		}
	}
}

// save ends the saving of all VMs that were asked for.
func (o *office) save() {
	for i := range o.tasks {
		t := &o.tasks[i]
		if t.WantedAt.IsZero() {
			continue
		}
		for j := range o.rows {
			if o.rows[j].Name == t.IdleVM {
				o.rows[j].Phase, o.rows[j].Since = vm.Deleting, o.now
			}
		}
		t.IdleVM, t.WantedAt, t.IdleSince = "", time.Time{}, time.Time{}
	}
}

func (o *office) task(issue int) *state.TaskOverview {
	return &o.tasks[slices.IndexFunc(o.tasks, func(t state.TaskOverview) bool { return t.Key == key(issue) })]
}

func (o *office) queue() *Queue {
	return NewQueue(QueueConfig{
		Store: o, Rows: o, VMs: o.slots, Provider: "local", Now: func() time.Time { return o.now }, RefusedAt: func() time.Time { return o.refused },
	})
}

func (o *office) step(t *testing.T, q *Queue) {
	t.Helper()
	if _, err := q.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestTasksWithOneSlotProgressInOrder: six tasks whose people answer each time share one VM. Every one gets it in turn, and
// a task whose person answers is behind those that waited already. It makes no difference whether errand or the provider
// has the limit.
func TestTasksWithOneSlotProgressInOrder(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*office{"errand's limit": {slots: 1}, "the account's limit": {slots: 9, account: 1}, "both": {slots: 3, account: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			progressInOrder(t, o)
		})
	}
}

func progressInOrder(t *testing.T, o *office) {
	t.Helper()
	const tasks, rounds = 6, 3
	o.now = at(0)
	for n := range tasks {
		o.tasks = append(o.tasks, state.TaskOverview{Key: key(n + 1)})
	}
	q, runs := o.queue(), []int{}
	running := func() int {
		for _, r := range o.rows {
			if r.Phase == vm.Busy {
				return r.Task.Issue
			}
		}
		return 0
	}
	for n := range tasks {
		o.launch(o.task(n + 1))
		o.now = o.now.Add(time.Second)
	}
	for range tasks * rounds {
		if running() == 0 {
			t.Fatalf("after %v no task works: %+v", runs, o.tasks)
		}
		done := running()
		runs = append(runs, done)
		o.rest(done)
		o.step(t, q) // finds out whether the provider creates more
		o.step(t, q) // has its VM suspended
		o.now = o.now.Add(time.Minute)
		o.save()
		o.step(t, q) // no other VM is needed
		o.now = o.now.Add(time.Minute)
		o.confirm()
		o.launch(o.task(done)) // its person has answered
		o.step(t, q)           // the next one gets the VM
		o.now = o.now.Add(time.Minute)
	}
	var want []int
	for range rounds {
		want = append(want, 1, 2, 3, 4, 5, 6)
	}
	if d := cmp.Diff(want, runs); d != "" {
		t.Errorf("the order of the runs (-want +got):\n%s", d)
	}
	asked := slices.DeleteFunc(o.events, func(s string) bool { return !strings.Contains(s, " gives up ") })
	slices.Sort(asked)
	if once := slices.Compact(slices.Clone(asked)); len(asked) != tasks*rounds || len(once) != len(asked) {
		t.Errorf("want one request for each of %d VMs, got %q", tasks*rounds, asked)
	}
}

// TestStep: one check of the queue lets the right tasks try again, suspends the right VMs, and shows the places that changed.
func TestStep(t *testing.T) {
	t.Parallel()
	queued := func(issue, since, place int) state.TaskOverview {
		return state.TaskOverview{Key: key(issue), Queued: at(since), Place: place}
	}
	idle := func(issue int, vm string, since int) state.TaskOverview {
		return state.TaskOverview{Key: key(issue), IdleVM: vm, IdleSince: at(since)}
	}
	row := func(name string, issue int, phase vm.Phase) vm.Row {
		return vm.Row{Name: name, Task: key(issue), Phase: phase, Provider: "local"}
	}
	with := func(r vm.Row, change func(*vm.Row)) vm.Row {
		change(&r)
		return r
	}
	wanted := func(o state.TaskOverview, at time.Time) state.TaskOverview {
		o.WantedAt = at
		return o
	}
	for name, c := range map[string]struct {
		slots int
		tasks []state.TaskOverview
		rows  []vm.Row
		want  []string
	}{
		"nobody waits": {1, []state.TaskOverview{idle(1, "a", 1)}, []vm.Row{row("a", 1, vm.Parked)}, nil},
		"the longest idle VM": {2, []state.TaskOverview{idle(1, "a", 5), idle(2, "b", 3), queued(3, 8, 1)},
			[]vm.Row{row("a", 1, vm.Parked), row("b", 2, vm.Parked)}, []string{"#2 gives up b"}},
		"one for each that waits": {2, []state.TaskOverview{idle(1, "a", 5), idle(2, "b", 3), queued(3, 8, 1), queued(4, 9, 2)},
			[]vm.Row{row("a", 1, vm.Parked), row("b", 2, vm.Parked)}, []string{"#2 gives up b", "#1 gives up a"}},
		"none more than needed": {2, []state.TaskOverview{wanted(idle(1, "a", 5), at(59)), idle(2, "b", 3), queued(3, 8, 1)},
			[]vm.Row{row("a", 1, vm.Sleeping), row("b", 2, vm.Parked)}, nil},
		"the same again after a while": {2, []state.TaskOverview{wanted(idle(1, "a", 3), at(49)), wanted(idle(2, "b", 5), at(59)), queued(3, 8, 1), queued(4, 8, 2)},
			[]vm.Row{row("a", 1, vm.Sleeping), row("b", 2, vm.Parked)}, []string{"#1 gives up a"}},
		"another one first if saving failed": {2, []state.TaskOverview{wanted(idle(1, "a", 3), at(49)), idle(2, "b", 5), queued(3, 8, 1)},
			[]vm.Row{row("a", 1, vm.Sleeping), row("b", 2, vm.Parked)}, []string{"#2 gives up b"}},
		"not one that is needed by now": {2, []state.TaskOverview{idle(1, "a", 5), idle(2, "busy", 3), queued(3, 8, 1)},
			[]vm.Row{row("a", 1, vm.Parked), row("busy", 2, vm.Parked)}, []string{"#1 gives up a"}},
		"not one of another provider": {1, []state.TaskOverview{idle(1, "a", 5), queued(3, 8, 1)},
			[]vm.Row{with(row("a", 1, vm.Parked), func(r *vm.Row) { r.Provider = "hetzner" })}, nil},
		"not one that is gone": {1, []state.TaskOverview{idle(1, "a", 5), queued(3, 8, 1)}, []vm.Row{row("a", 1, vm.Gone), row("b", 2, vm.Busy)}, nil},
		"not while a VM is free": {2, []state.TaskOverview{idle(1, "a", 5), queued(3, 8, 1)},
			[]vm.Row{row("a", 1, vm.Parked)}, []string{"#3 retries"}},
		"as many as are free, the oldest first": {3, []state.TaskOverview{queued(3, 9, 2), queued(4, 8, 1), queued(5, 10, 3)},
			[]vm.Row{row("a", 1, vm.Busy)}, []string{"#4 retries", "#3 retries"}},
		"a standby VM is free": {1, []state.TaskOverview{queued(3, 8, 1)},
			[]vm.Row{with(row("a", 0, vm.Parked), func(r *vm.Row) { r.Standby = true })}, []string{"#3 retries"}},
		"one whose VM comes up is out of the queue": {1, []state.TaskOverview{idle(1, "a", 5), queued(3, 8, 1)},
			[]vm.Row{row("b", 3, vm.Booting)}, nil},
		"its own old VM first": {2, []state.TaskOverview{idle(1, "a", 3), {Key: key(3), Queued: at(8), Place: 1, IdleVM: "b", IdleSince: at(8)}},
			[]vm.Row{row("a", 1, vm.Parked), row("b", 3, vm.Parked)}, []string{"#3 gives up b"}},
		"places that have changed": {1, []state.TaskOverview{queued(3, 8, 2), queued(4, 9, 3), queued(5, 10, 3)},
			[]vm.Row{row("a", 1, vm.Busy)}, []string{"#3 is number 1", "#4 is number 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &office{now: at(60), tasks: c.tasks, rows: c.rows, busy: map[string]bool{"busy": true}, slots: c.slots}
			o.step(t, o.queue())
			if d := cmp.Diff(c.want, o.events); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestRequestsAreNotRepeatedAtOnce: a task that was told to try again, or whose place was changed, is left alone for a
// while; a long queue shows its moves less often.
func TestRequestsAreNotRepeatedAtOnce(t *testing.T) {
	t.Parallel()
	o := &office{now: at(0), slots: 1, rows: []vm.Row{{Name: "a", Task: key(1), Phase: vm.Busy}}}
	for n := range 12 {
		o.tasks = append(o.tasks, state.TaskOverview{Key: key(n + 2), Queued: at(n), Place: n + 2})
	}
	q, counts := o.queue(), []int{}
	for _, minutes := range []int{0, 1, 2} { // twelve tasks: every two minutes
		o.now = at(minutes)
		for i := range o.tasks {
			o.tasks[i].Place = 99
		}
		o.events = nil
		o.step(t, q)
		counts = append(counts, len(o.events))
	}
	if d := cmp.Diff([]int{12, 0, 12}, counts); d != "" {
		t.Errorf("places shown (-want +got):\n%s", d)
	}
	o.rows, o.events = nil, nil
	o.slots, q.cfg.VMs = 0, 1 // the retries fail
	for _, seconds := range []int{0, 5, 10} {
		o.now = at(3).Add(time.Duration(seconds) * time.Second)
		o.step(t, q)
	}
	if got := slices.DeleteFunc(o.events, func(s string) bool { return s != "#2 retries" }); len(got) != 2 {
		t.Errorf("told to try again %d times in 10 s, want 2", len(got))
	}
}

// cloud records the order of a VM.
type cloud struct {
	spec   fleet.AcquireSpec
	orders int
	err    error
}

func (c *cloud) Acquire(_ context.Context, spec fleet.AcquireSpec) (fleet.VM, error) {
	c.spec = spec
	c.orders++
	return fleet.VM{Name: "vm"}, c.err
}

func (c *cloud) Release(context.Context, string, fleet.Reason) error { return nil }

func (c *cloud) Images(context.Context, time.Duration) ([]fleet.Image, error) { return nil, nil }

// vms returns the VMs of an office's tasks, ordered from c.
func (o *office) vms(c *cloud) *VMs {
	return New(Config{
		Fleet: c, Store: o, Rows: o, Provider: "local", BaseGroup: func(string) (string, bool) { return "", false },
		RefusedAt: func() time.Time { return o.refused },
	})
}

// TestNewcomersQueueUp: a task gets a VM after those that wait already, and they in their order. Those whose VM is intended
// have their slot.
func TestNewcomersQueueUp(t *testing.T) {
	t.Parallel()
	o := &office{
		tasks: []state.TaskOverview{{Key: key(1)}, {Key: key(2), Queued: at(3)}, {Key: key(3), Queued: at(1)}, {Key: key(4), Queued: at(2)}, {Key: key(5), Queued: at(0)}},
		rows:  []vm.Row{{Name: "a", Task: key(4), Phase: vm.Booting}, {Name: "b", Task: key(5), Phase: vm.Intended}},
	}
	for issue, want := range map[int]int{1: 2, 2: 1, 3: 0, 5: 0, 9: 2} { // the VM of #4 is coming up
		c := &cloud{}
		if _, err := o.vms(c).Acquire(t.Context(), &state.Task{Key: key(issue)}); err != nil || c.spec.Behind != want {
			t.Errorf("#%d: behind %d tasks (error %v), want %d", issue, c.spec.Behind, err, want)
		}
	}
}
