package vm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/errand-bot/errand/state"
)

// walkVM applies events, given as "kind" or "kind:argument", and returns the phases that they lead to.
func walkVM(t *testing.T, row *Row, events string) string {
	t.Helper()
	var got []string
	now := began
	for _, spec := range strings.Fields(events) {
		kind, arg, _ := strings.Cut(spec, ":")
		now = now.Add(time.Second)
		e := Event{Kind: EventKind(kind), Now: now, EndReason: state.VMEndReason(arg), Snapshot: arg, Successor: arg, Usable: arg == "usable"}
		if e.Kind == Made {
			e.ID, e.CreatedAt = "7", now
		}
		next, changed := Next(*row, e)
		if changed == (next.Version == row.Version) {
			t.Errorf("%s: got changed %v, version %d → %d", spec, changed, row.Version, next.Version)
		}
		*row = next
		if changed {
			got = append(got, string(row.Phase))
		} else {
			got = append(got, "-")
		}
	}
	return strings.Join(got, " ")
}

func TestNextVM(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		row          Row
		events, want string
		why          string
	}{
		"a box's life":                 {Row{}, "made:usable work rest work rest end:done deleted", "ready busy parked busy parked deleting gone", "done"},
		"a cloud VM's life":            {Row{}, "made runs pinned up work rest end:asleep deleted", "creating booting booting ready busy parked deleting gone", "asleep"},
		"it wakes":                     {Row{FromSleep: "a"}, "made runs up work", "creating booting waking busy", ""},
		"a box wakes":                  {Row{FromSleep: "a"}, "made:usable rest", "waking parked", ""},
		"its disk becomes an image":    {Row{}, "made runs up rest sleep imaged:asleep deleted end:done deleted", "creating booting ready parked sleeping asleep asleep deleting gone", "done"},
		"needed during suspension":     {Row{}, "made:usable rest sleep work rest", "ready parked sleeping busy parked", ""},
		"no sleep while busy":          {Row{}, "made:usable work sleep imaged:x", "ready busy - -", ""},
		"it never comes up":            {Row{}, "made runs fail:unusable up end:create_failed deleted", "creating booting failed - deleting gone", "unusable"},
		"the create was refused":       {Row{}, "end:create_failed deleted", "deleting gone", "create_failed"},
		"the create lands late":        {Row{}, "fail:create_failed made made end:x deleted made", "failed failed - deleting gone -", "create_failed"},
		"an end is final":              {Row{}, "made:usable end:cancelled work rest up fail:x end:y deleted deleted end:z", "ready deleting - - - - - gone - -", "cancelled"},
		"it is kept, and given on":     {Row{}, "made:usable work keep:done work inherits:b deleted", "ready busy parked - deleting gone", "done"},
		"only a spare one is given on": {Row{}, "made:usable rest inherits:b", "ready parked -", ""},
		"another errand has it":        {Row{}, "made lose:vanished runs deleted", "creating gone - -", "vanished"},
		"nothing before its time":      {Row{}, "runs up pinned work rest sleep deleted", "- - - - - - -", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := test.row
			row.Phase = Intended
			if got := walkVM(t, &row, test.events); got != test.want {
				t.Errorf("%s: got\n%s, want\n%s", test.events, got, test.want)
			}
			if string(row.EndReason) != test.why {
				t.Errorf("got reason %q, want %q", row.EndReason, test.why)
			}
		})
	}
}

// Random events are applied twice with the same result. Nothing leaves gone, an ended VM is never usable again, and its
// row has a reason.
func TestNextVMIsPure(t *testing.T) {
	t.Parallel()
	kinds := []EventKind{Made, Runs, Pinned, Up, Work, Rest, Sleep, Imaged, Keep, End, Fail, Deleted, Inherits, Lose}
	rapid.Check(t, func(t *rapid.T) {
		row := Row{Phase: Intended, FromSleep: rapid.SampledFrom([]string{"", "a"}).Draw(t, "from")}
		for i := range 30 {
			e := Event{
				Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Now: began.Add(time.Duration(i) * time.Second), EndReason: "why",
				Usable: rapid.Bool().Draw(t, "usable"), Pins: []string{fmt.Sprint(i)}, Snapshot: "s", CreatedAt: began,
			}
			before := row
			next, changed := Next(row, e)
			again, _ := Next(before, e)
			if diff := cmp.Diff(next, again); diff != "" {
				t.Fatalf("got different results of %s (-first +second):\n%s", e.Kind, diff)
			}
			switch {
			case !changed && !cmp.Equal(next, before):
				t.Fatalf("%s: got a changed row, reported as unchanged", e.Kind)
			case before.Phase == Gone && changed:
				t.Fatalf("%s: got a changed row of a VM that is gone", e.Kind)
			case before.Phase.Over() && !next.Phase.Over():
				t.Fatalf("%s: got a transition from %s to %s", e.Kind, before.Phase, next.Phase)
			case next.Phase.Over() && next.EndReason == "":
				t.Fatalf("got phase %s without a reason", next.Phase)
			}
			row = next
		}
	})
}

// Every phase can be reached from the first one.
func TestEveryVMPhaseIsReached(t *testing.T) {
	t.Parallel()
	reached := map[Phase]bool{Intended: true}
	for range Phases() {
		for _, r := range Table() {
			if slices.ContainsFunc(r.From, func(p Phase) bool { return reached[p] }) {
				reached[r.To] = true
			}
		}
	}
	for _, p := range Phases() {
		if !reached[p] {
			t.Errorf("got no way to phase %s", p)
		}
	}
}

// Every phase but the last can be left, and every event is used.
func TestVMTableIsWellFormed(t *testing.T) {
	t.Parallel()
	for _, p := range Phases() {
		left := slices.ContainsFunc(Table(), func(r TableRow) bool { return slices.Contains(r.From, p) && r.To != Same })
		if left == (p == Gone) {
			t.Errorf("phase %s: got a transition out of it %v", p, left)
		}
	}
	for i, r := range Table() {
		if r.Doc == "" || len(r.From) == 0 || (r.when != nil) != (r.If != "") {
			t.Errorf("row %d (%s): got no description", i, r.On)
		}
	}
}

func TestSleepAt(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		paid, margin, age time.Duration
		want              time.Duration // after the creation; 0 for never
	}{
		"free":                 {0, time.Minute, time.Hour, 0},
		"first minute":         {time.Hour, 5 * time.Minute, time.Minute, 55 * time.Minute},
		"just before":          {time.Hour, 5 * time.Minute, 54 * time.Minute, 55 * time.Minute},
		"due":                  {time.Hour, 5 * time.Minute, 56 * time.Minute, 55 * time.Minute},
		"missed":               {time.Hour, 5 * time.Minute, time.Hour, 115 * time.Minute},
		"third hour":           {time.Hour, 5 * time.Minute, 130 * time.Minute, 175 * time.Minute},
		"margin over the span": {10 * time.Second, time.Minute, 2 * time.Second, 5 * time.Second},
		"clock behind":         {time.Hour, 5 * time.Minute, -time.Minute, 55 * time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := began.Add(test.want)
			if test.want == 0 {
				want = time.Time{}
			}
			if got := SleepAt(began, test.paid, test.margin, began.Add(test.age)); !got.Equal(want) {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// The bill of any period is the sum of the bills of its parts.
func TestSpansAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		row := Row{
			Phase: Busy, CreatedAt: began, MicroHour: 7, Skip: rapid.Int64Range(0, 3).Draw(t, "skip"),
			Paid: time.Duration(rapid.Int64Range(1, 7200).Draw(t, "paid")) * time.Second,
		}
		now := began.Add(time.Duration(rapid.Int64Range(0, 72*3600).Draw(t, "age")) * time.Second)
		var sum int64
		for day := began.AddDate(0, 0, -1); day.Before(now.AddDate(0, 0, 2)); day = day.AddDate(0, 0, 1) {
			sum += row.billIn(day, day.AddDate(0, 0, 1), now).Micro
		}
		if whole := row.Bill(now).Micro; sum != whole {
			t.Fatalf("got %d as the sum of days, want %d", sum, whole)
		}
	})
}
