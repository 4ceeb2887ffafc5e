package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// crowd keeps VMs of ended tasks of a repository as standby VMs, and others in use.
func crowd(t *testing.T, f *fleet.Fleet, spare, used int) (names []string) {
	t.Helper()
	for i := range spare + used {
		vm := get(t, f, fleet.AcquireSpec{Task: state.TaskKey{Repo: 6, Issue: i + 1}})
		names = append(names, vm.Name)
	}
	for _, name := range names[:spare] {
		if err := f.Release(t.Context(), name, fleet.ReasonDone); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// TestAccountLimit: at the account's limit a standby VM is released, never one in use, or a smaller type is ordered,
// and an alarm is raised.
func TestAccountLimit(t *testing.T) {
	t.Parallel()
	large := []fleet.Candidate{{Type: "large", Location: "here"}, {Type: "large", Location: "there"}, {Type: "small"}}
	tests := map[string]struct {
		spare, used int
		candidates  []fleet.Candidate
		needs       fleet.Needs
		most, cores int // the account's limits, in addition to existing VMs
		want        string
		left        int // standby VMs
		fails, told bool
	}{
		"room enough":                    {spare: 1, used: 1, most: 3, want: "small/here", left: 1},
		"a spare one goes":               {spare: 1, used: 1, most: 2, want: "small/here small/here"},
		"only as many as it takes":       {spare: 2, used: 1, most: 3, want: "small/here small/here", left: 1},
		"two go for their CPUs":          {spare: 2, candidates: large, cores: 8, want: "large/here large/here large/here"},
		"nothing is spare":               {used: 2, most: 2, want: "small/here", fails: true, told: true},
		"a smaller one fits":             {used: 1, candidates: large, cores: 8, want: "large/here small/here", told: true},
		"a smaller one is too small":     {used: 1, candidates: large, needs: fleet.Needs{VCPU: 8}, cores: 8, want: "large/here", fails: true, told: true},
		"not even a smaller one fits":    {used: 2, candidates: large, cores: 8, want: "large/here small/here", fails: true, told: true},
		"larger ones are not asked for":  {used: 1, most: 1, want: "small/here", fails: true, told: true},
		"spare ones go before it shrink": {spare: 1, used: 1, candidates: large, cores: 12, want: "large/here large/here"},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, s, c, store := newShopFleet(t, func(c *fleet.Config) { c.Pool.Reuse, c.Caps = true, vm.Caps{VMs: 9} })
			names := crowd(t, f, test.spare, test.used)
			s.orders, s.most, s.cores = nil, test.most, test.cores
			_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask, Candidates: test.candidates, Needs: test.needs})
			var none *fleet.NoCapacityError
			if test.fails != (err != nil) || test.fails && (!errors.Is(err, fleet.ErrQuota) || !errors.As(err, &none) || none.Hint() == "" || none.Reason == "") {
				t.Errorf("got error %v", err)
			}
			if got := s.ordered(); got != test.want {
				t.Errorf("ordered %q, want %q", got, test.want)
			}
			left := 0
			for i, name := range names {
				row := rowOf(t, store, name)
				if row.Standby && row.Phase == vm.Parked {
					left++
				}
				if i >= test.spare && !row.Phase.Usable() {
					t.Errorf("got VM in use in state %s", row.Phase)
				}
			}
			if left != test.left {
				t.Errorf("%d standby VMs are left, want %d", left, test.left)
			}
			told := func() (list []string) {
				for _, a := range f.Alarms() {
					list = append(list, fmt.Sprintf("%s %s: %s", a.Kind, a.ID, a.Explanation))
				}
				return list
			}
			if list := told(); test.told != (len(list) == 1) || test.told && (!strings.Contains(list[0], "limits.vms") || !strings.Contains(list[0], "limit exceeded")) {
				t.Errorf("got log %q", list)
			}
			if f.AccountRefusedAt().IsZero() == test.fails {
				t.Errorf("the time of the refused order is %s", f.AccountRefusedAt())
			}
			c.pass(time.Hour)
			if list := told(); len(list) != 0 {
				t.Errorf("an hour later: got %q", list)
			}
		})
	}
}

// TestAccountLimitIsLifted: the alarm keeps its start and ends with the first order without a refusal. Every refusal is known
// by its time until then.
func TestAccountLimitIsLifted(t *testing.T) {
	t.Parallel()
	f, s, c, _ := newShopFleet(t, nil)
	s.most = 1
	get(t, f, fleet.AcquireSpec{Task: otherTask})
	began := c.now()
	for range 3 {
		now := c.now()
		if _, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: shopTask}); !errors.Is(err, fleet.ErrQuota) {
			t.Fatal(err)
		}
		if at := f.AccountRefusedAt(); at.Before(now) || at.After(c.now()) {
			t.Errorf("refused at %s, want %s", at, now)
		}
		if alarms := f.Alarms(); len(alarms) != 1 || alarms[0].Since.Sub(began) > time.Second {
			t.Errorf("got alarms %+v", alarms)
		}
		c.pass(40 * time.Minute)
	}
	reap(t, f, fleet.ReapOptions{}) // which only replaces its own alarms
	if alarms := f.Alarms(); len(alarms) != 1 {
		t.Errorf("got alarms %+v", alarms)
	}
	s.most = 0
	get(t, f, fleet.AcquireSpec{Task: shopTask})
	if alarms := f.Alarms(); len(alarms) != 0 || !f.AccountRefusedAt().IsZero() {
		t.Errorf("got alarms %+v, refused at %s", alarms, f.AccountRefusedAt())
	}
}
