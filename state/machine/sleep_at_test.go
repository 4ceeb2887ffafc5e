package machine

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestSleepAtMatchesTheStateMachine: the state machine suspends VMs at the time returned by SleepAt, which the cost
// simulation uses; the expected times were calculated by hand. Every VM was created at 09:00:00, and each started span
// costs 7,000 millionths. The margin is five minutes, or a quarter of a short span; it is longer if suspending takes
// long.
func TestSleepAtMatchesTheStateMachine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		paid, putAway, margin time.Duration
		now, sleeps           string
		simulated             string // if it differs from sleeps
		cost                  int64  // of a VM that ends when it sleeps
	}{
		// 09:00 + 1 h = 10:00, less 5 min. One span.
		"an hour, at its begin":       {time.Hour, 0, 5 * time.Minute, "02 09:00:36", "02 09:55:00", "", 7_000},
		"an hour, just before":        {time.Hour, 0, 5 * time.Minute, "02 09:54:59", "02 09:55:00", "", 7_000},
		"an hour, a little late":      {time.Hour, 0, 5 * time.Minute, "02 09:57:00", "02 09:55:00", "", 7_000},
		"an hour, at its last second": {time.Hour, 0, 5 * time.Minute, "02 09:59:59", "02 09:55:00", "", 7_000},
		// In the very moment in which a span ends the next has not begun for a task; the simulation counts it.
		"an hour, at its end": {time.Hour, 0, 5 * time.Minute, "02 10:00:00", "02 09:55:00", "02 10:55:00", 7_000},
		// 11:00 less 5 min, 09:00 to 10:00 and 10:00 to 11:00; then 12:00 less 5 min, three spans.
		"the second hour": {time.Hour, 0, 5 * time.Minute, "02 10:00:01", "02 10:55:00", "", 14_000},
		"the third hour":  {time.Hour, 0, 5 * time.Minute, "02 11:56:00", "02 11:55:00", "", 21_000},
		// 01:00 less 5 min. 15 spans until midnight, and one after it.
		"an hour of the next day": {time.Hour, 0, 5 * time.Minute, "03 00:30:00", "03 00:55:00", "", 112_000},
		// A quarter of 20 min is 5 min; of 16 min, 4 min: 09:16 less 4 min. A quarter of a minute is 15 s.
		"20 minutes":        {20 * time.Minute, 0, 5 * time.Minute, "02 09:01:00", "02 09:15:00", "", 7_000},
		"16 minutes":        {16 * time.Minute, 0, 4 * time.Minute, "02 09:01:00", "02 09:12:00", "", 7_000},
		"a minute":          {time.Minute, 0, 15 * time.Second, "02 09:00:01", "02 09:00:45", "", 7_000},
		"the third minute":  {time.Minute, 0, 15 * time.Second, "02 09:02:59", "02 09:02:45", "", 21_000},
		"8 seconds":         {8 * time.Second, 0, 2 * time.Second, "02 09:00:03", "02 09:00:06", "", 7_000},
		"the next 8":        {8 * time.Second, 0, 2 * time.Second, "02 09:00:09", "02 09:00:14", "", 14_000},
		"a month, 30 days":  {720 * time.Hour, 0, 5 * time.Minute, "02 09:01:00", "32 08:55:00", "", 7_000},
		"slow, but in time": {time.Hour, 3 * time.Minute, 5 * time.Minute, "02 09:01:00", "02 09:55:00", "", 7_000},
		// 8 min and a sixtieth of the span are 9 min; of 50 min a third of the span is left, 20 min.
		"slow":      {time.Hour, 8 * time.Minute, 9 * time.Minute, "02 09:01:00", "02 09:51:00", "", 7_000},
		"very slow": {time.Hour, 50 * time.Minute, 20 * time.Minute, "02 10:30:00", "02 10:40:00", "", 14_000},
	}
	created := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := state.VM{CreatedAt: created, Paid: test.paid, SuspendDuration: test.putAway, MicroHour: 7_000}
			c := change{t: &state.Task{TaskVMs: state.TaskVMs{VM: &server}, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}}, p: Policy{SleepBefore: 5 * time.Minute}}
			c.e.Now = march(t, test.now)
			want := march(t, test.sleeps)
			if got := suspendAt(&c); !got.Equal(want) {
				t.Errorf("the task's VM sleeps at %s, want %s", got, want)
			}
			simulated := march(t, cmp.Or(test.simulated, test.sleeps))
			if got := vm.SleepAt(created, test.paid, test.margin, c.e.Now); !got.Equal(simulated) {
				t.Errorf("SleepAt says %s, want %s", got, simulated)
			}
			if got := server.Cost(want); got != test.cost {
				t.Errorf("a VM that sleeps then has cost %d, want %d", got, test.cost)
			}
			row := vm.Row{CreatedAt: created, EndedAt: want, Paid: test.paid, MicroHour: 7_000}
			if got := row.Bill(want.Add(time.Hour)).Micro; got != test.cost {
				t.Errorf("its bill is %d, want %d", got, test.cost)
			}
		})
	}
	if got := DefaultPolicy().SleepBefore; got != 5*time.Minute {
		t.Errorf("the default margin is %s, want 5m", got)
	}
}

// march reads a time of March 2026, which has 31 days: the 32nd is April 1.
func march(t *testing.T, text string) time.Time {
	t.Helper()
	var day, hour, minute, second int
	if _, err := fmt.Sscanf(text, "%d %d:%d:%d", &day, &hour, &minute, &second); err != nil {
		t.Fatal(err)
	}
	return time.Date(2026, 3, day, hour, minute, second, 0, time.UTC)
}

// TestSlowVMsAreSuspendedEarlier: a VM whose image takes long is suspended early enough for the image to be complete
// before the next span begins.
func TestSlowVMsAreSuspendedEarlier(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0:                5 * time.Minute,
		3 * time.Minute:  5 * time.Minute,
		8 * time.Minute:  9 * time.Minute,
		50 * time.Minute: 20 * time.Minute,
	} {
		server := state.VM{CreatedAt: t0, Paid: time.Hour, SuspendDuration: took}
		c := change{t: &state.Task{TaskVMs: state.TaskVMs{VM: &server}, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}}, p: DefaultPolicy()}
		c.e.Now = t0.Add(time.Minute)
		if got := t0.Add(time.Hour).Sub(suspendAt(&c)); got != want {
			t.Errorf("what takes %s begins %s before the end, want %s", took, got, want)
		}
	}
}
