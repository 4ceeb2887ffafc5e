package state

import (
	"testing"
	"time"
)

// TestSleepAtAgrees: when a task lets its VM sleep is what SleepAt says, by which costs are simulated. In the very
// moment in which a span ends they may differ: one of them already counts the next.
func TestSleepAtAgrees(t *testing.T) {
	t.Parallel()
	for _, paid := range []time.Duration{8 * time.Second, time.Minute, time.Hour} {
		vm := VM{CreatedAt: testStart, Paid: paid}
		c := change{t: &Task{VM: &vm, Phase: PhasePROpen}, p: DefaultPolicy()}
		for age := paid / 100; age < 3*paid; age += paid / 100 {
			if age%paid == 0 {
				continue
			}
			c.e.Now = testStart.Add(age)
			want := SleepAt(vm.CreatedAt, paid, c.p.sleepBefore(paid), c.e.Now)
			if got := c.sleepAt(); !got.Equal(want) {
				t.Errorf("%s of %s: the task says %s, SleepAt %s", age, paid, got, want)
			}
		}
	}
}

// TestSleepsSoonerWhatTakesLonger: a VM whose image takes long is put to sleep so early that the image is there
// before the next span begins.
func TestSleepsSoonerWhatTakesLonger(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{
		0:                5 * time.Minute,
		3 * time.Minute:  5 * time.Minute,
		8 * time.Minute:  9 * time.Minute,
		50 * time.Minute: 20 * time.Minute,
	} {
		vm := VM{CreatedAt: testStart, Paid: time.Hour, PutAway: took}
		c := change{t: &Task{VM: &vm, Phase: PhasePROpen}, p: DefaultPolicy()}
		c.e.Now = testStart.Add(time.Minute)
		if got := testStart.Add(time.Hour).Sub(c.sleepAt()); got != want {
			t.Errorf("what takes %s begins %s before the end, want %s", took, got, want)
		}
	}
}
