package costs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTwoMeters: the bill equals the result of a few lines of arithmetic.
func TestTwoMeters(t *testing.T) {
	t.Parallel()
	for _, g := range Generators() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			trace, err := Generate(g.Name, 1)
			if err != nil {
				t.Fatal(err)
			}
			s := DefaultSetting()
			got, err := Simulate(trace, s, Policies()[:4]) // a month's price limits the cost of VMs that are always on
			if err != nil {
				t.Fatal(err)
			}
			var want []Outcome
			for _, p := range Policies()[:4] {
				want = append(want, playOn(t, trace, s, p))
			}
			for i := range want { // an image's time is counted in whole hours by one of them
				more := float64(got[i].Bill.MicroImages-want[i].Bill.MicroImages) / float64(max(want[i].Bill.Micro(), 1))
				if more < 0 || more > 0.02 {
					t.Errorf("%s: images cost %d and %d", want[i].Policy, got[i].Bill.MicroImages, want[i].Bill.MicroImages)
				}
				want[i].Bill.MicroImages, want[i].Bill.Currency = got[i].Bill.MicroImages, got[i].Bill.Currency
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-ledger +account:\n%s", diff)
			}
		})
	}
}

func TestPlayByHand(t *testing.T) {
	t.Parallel()
	exact := func(d time.Duration) Time { return Time{d, d} }
	s := DefaultSetting()
	s.ImageGB = 10
	s.Times = Times{Boot: exact(time.Minute), Image: exact(4 * time.Minute), Pack: exact(10 * time.Second), Unpack: exact(20 * time.Second), Thaw: exact(time.Second)}
	minutes := func(n int) Span { return Span(time.Duration(n) * time.Minute) }
	trace := []Task{{Name: "a", At: start(), End: minutes(100), Runs: []Run{{0, minutes(10)}, {minutes(20), minutes(15)}, {minutes(120), minutes(70)}}}}
	tests := map[string]struct {
		policy       Policy
		hours        int64
		vms          int
		imageHours   int64
		half, slower time.Duration
	}{
		// Images are paid for by the started hour, from their creation until the next VM has booted.
		"at once":  {Policies()[1], 4, 3, 1 + 2 + 2, time.Minute, time.Minute},
		"archive":  {Policies()[2], 1 + 2, 2, 0, time.Second, 80 * time.Second},
		"snapshot": {Policies()[3], 1 + 2, 2, 2 + 1, time.Second, time.Minute},
		"always":   {Policies()[4], 6, 1, 0, time.Second, time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list, err := Simulate(trace, s, []Policy{tt.policy})
			if err != nil {
				t.Fatal(err)
			}
			got := list[0]
			if got.Bill.Hours != tt.hours || got.VMs != tt.vms || got.At50 != tt.half || got.At95 != tt.slower || got.Wakes != 2 || got.Most != 1 {
				t.Errorf("got %+v", got)
			}
			if want := tt.hours * hourOf(s.Type); got.Bill.MicroVMs != want {
				t.Errorf("VMs cost %d, want %d", got.Bill.MicroVMs, want)
			}
			perHour := int64(10 * 14_300 / 730)
			if images := (got.Bill.MicroImages + perHour/2) / perHour; images != tt.imageHours {
				t.Errorf("images cost %d, which is %d hours, want %d", got.Bill.MicroImages, images, tt.imageHours)
			}
		})
	}
}

func TestPlayRefuses(t *testing.T) {
	t.Parallel()
	trace, err := Generate("burst", 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Setting){
		"no such type":  func(s *Setting) { s.Type = "cx99" },
		"no such place": func(s *Setting) { s.Location = "mars1" },
		"no size":       func(s *Setting) { s.ImageGB = 0 },
		"no period":     func(s *Setting) { s.Period = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := DefaultSetting()
			change(&s)
			if got, err := Simulate(trace, s, Policies()); err == nil {
				t.Errorf("plays: %+v", got)
			}
		})
	}
}
