package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
)

func reap(t *testing.T, f *fleet.Fleet, owned ...string) string {
	t.Helper()
	names, err := f.Reap(t.Context(), func(name string) bool {
		for _, o := range owned {
			if o == name {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestReap(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	ours, orphan := acquire(t, f, "ours", 1).Name, acquire(t, f, "orphan", 1).Name
	steps := []struct {
		what  string
		after time.Duration
		owned []string
		want  string
	}{
		{"first sighting", time.Hour, []string{ours}, ""},
		{"second, too soon", 14 * time.Minute, []string{ours}, ""},
		{"owned again", time.Minute, []string{ours, orphan}, ""},
		{"counts from the start", time.Hour, []string{ours}, ""},
		{"nearly", 15*time.Minute - time.Second, []string{ours}, ""},
		{"due", time.Second, []string{ours}, orphan},
		{"gone", time.Hour, []string{ours}, ""},
	}
	for _, step := range steps {
		c.pass(step.after)
		if got := reap(t, f, step.owned...); got != step.want {
			t.Errorf("%s: reaped %q, want %q", step.what, got, step.want)
		}
	}
	if m.why[orphan] != fleet.ReasonOrphan {
		t.Errorf("deleted as %q", m.why[orphan])
	}
	if _, err := f.Get(t.Context(), ours); err != nil {
		t.Errorf("the owned VM: %v", err)
	}
}

func TestReapNeedsTwoSightings(t *testing.T) {
	t.Parallel()
	f, _, c := newFleet(t, 3)
	name := acquire(t, f, "one", 1).Name
	c.pass(24 * time.Hour)
	if got := reap(t, f); got != "" {
		t.Errorf("reaped %q at first sight", got)
	}
	c.pass(15 * time.Minute)
	if got := reap(t, f); got != name {
		t.Errorf("reaped %q", got)
	}
}

func TestReapSparesTheYoung(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	name := acquire(t, f, "one", 1).Name
	reap(t, f)
	// Its name was used again meanwhile: the sightings are another VM's.
	c.pass(20 * time.Minute)
	vm := m.vms[name]
	vm.CreatedAt = c.now()
	m.vms[name] = vm
	if got := reap(t, f); got != "" {
		t.Errorf("reaped %q", got)
	}
}

func TestReapNeverActsOnHalfAList(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	acquire(t, f, "one", 1)
	reap(t, f)
	c.pass(time.Hour)
	m.listErr = errors.New("page 2 is missing")
	if _, err := f.Reap(t.Context(), func(string) bool { return false }); !errors.Is(err, m.listErr) {
		t.Errorf("error is %v", err)
	}
	if len(m.vms) != 1 {
		t.Error("something was deleted")
	}
}

func TestReapTriesAgain(t *testing.T) {
	t.Parallel()
	f, m, c := newFleet(t, 3)
	name := acquire(t, f, "one", 1).Name
	reap(t, f)
	c.pass(time.Hour)
	m.delErr = errors.New("locked")
	if _, err := f.Reap(t.Context(), func(string) bool { return false }); !errors.Is(err, m.delErr) {
		t.Errorf("error is %v", err)
	}
	m.delErr = nil
	if got := reap(t, f); got != name {
		t.Errorf("reaped %q", got)
	}
}
