package costs

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyTrace draws a trace.
func anyTrace() *rapid.Generator[[]Task] {
	span := func(least time.Duration, most time.Duration) *rapid.Generator[Span] {
		return rapid.Custom(func(t *rapid.T) Span {
			return Span(time.Duration(rapid.Int64Range(int64(least/time.Second), int64(most/time.Second)).Draw(t, "seconds")) * time.Second)
		})
	}
	return rapid.Custom(func(t *rapid.T) []Task {
		var trace []Task
		for range rapid.IntRange(1, 4).Draw(t, "tasks") {
			task := Task{Name: string(rune('a' + len(trace))), At: start().Add(time.Duration(span(0, 5*time.Hour).Draw(t, "at"))), End: span(0, 100*time.Hour).Draw(t, "end")}
			for range rapid.IntRange(1, 8).Draw(t, "runs") {
				task.Runs = append(task.Runs, Run{After: span(0, 3*time.Hour).Draw(t, "after"), Takes: span(time.Second, 3*time.Hour).Draw(t, "takes")})
			}
			trace = append(trace, task)
		}
		return trace
	})
}

// playOn plays a trace on the ledger alone, which is fast.
func playOn(t interface{ Fatal(...any) }, trace []Task, s Setting, p Policy) Outcome {
	o, err := simulate(trace, s, p, newLedger(s))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestParkingNeverCostsMore: each hour of a parked VM is paid because a run extended into it; deleting immediately
// would have paid for that hour, too.
func TestParkingNeverCostsMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trace, s := anyTrace().Draw(t, "trace"), DefaultSetting()
		s.Seed = rapid.Uint64().Draw(t, "seed")
		parked := playOn(t, trace, s, Policies()[2])
		for _, p := range Policies()[:2] {
			first := playOn(t, trace, s, p)
			if parked.Bill.Micro() > first.Bill.Micro() || parked.Bill.Hours > first.Bill.Hours {
				t.Fatalf("parking costs %+v, %s %+v", parked.Bill, p.Name, first.Bill)
			}
		}
	})
}

// TestParkingSaves checks that parking saves money, on traces of arbitrary seeds.
func TestParkingSaves(t *testing.T) {
	t.Parallel()
	for _, g := range Generators() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			var first, snapshots, parked int64
			for seed := range uint64(20) {
				trace, err := Generate(g.Name, seed+1)
				if err != nil {
					t.Fatal(err)
				}
				s := DefaultSetting()
				a, b := playOn(t, trace, s, Policies()[0]).Bill.Micro(), playOn(t, trace, s, Policies()[2]).Bill.Micro()
				snapshots += playOn(t, trace, s, Policies()[1]).Bill.Micro()
				if b > a {
					t.Errorf("seed %d: parking costs %d, deleting at once %d", seed+1, b, a)
				}
				first, parked = first+a, parked+b
			}
			alone, both := 100*float64(first-parked)/float64(first), 100*float64(snapshots-parked)/float64(snapshots)
			t.Logf("parking alone %.1f %% less, with archives instead of snapshots %.1f %%", alone, both)
			if g.Name == "small-team" && (alone < 8 || both < 18) {
				t.Errorf("parking saves %.1f %%, and %.1f %% with archives; want 8 and 18", alone, both)
			}
		})
	}
}

// TestLatePolicyIsFound: a policy that suspends after the end of the hour costs more, so the tests above can fail.
func TestLatePolicyIsFound(t *testing.T) {
	t.Parallel()
	trace, err := Generate("small-team", 1)
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSetting()
	parked := playOn(t, trace, s, Policies()[2])
	s.Margin = -3 * time.Minute
	if late := playOn(t, trace, s, Policies()[2]); late.Bill.Hours <= parked.Bill.Hours {
		t.Errorf("too late: %d hours, in time: %d", late.Bill.Hours, parked.Bill.Hours)
	}
}
