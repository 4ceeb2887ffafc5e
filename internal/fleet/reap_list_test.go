package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state/vm"
)

// audited is a shop with volumes and addresses. Each of its lists can be made to fail.
type audited struct {
	*shop
	unmanaged map[string]fleet.UnmanagedResource // by kind
	fails     map[string]error                   // by kind
}

var _ fleet.Auditor = (*audited)(nil)

func (a *audited) List(ctx context.Context) ([]fleet.VM, error) {
	vms, err := a.shop.List(ctx)
	return vms, errors.Join(err, a.fails["vm"])
}

func (a *audited) Images(ctx context.Context) ([]fleet.Image, error) {
	images, err := a.shop.Images(ctx)
	return images, errors.Join(err, a.fails["image"])
}

func (a *audited) ListUnmanaged(context.Context) (out []fleet.UnmanagedResource, err error) {
	failed := map[string]error{}
	for kind, s := range a.unmanaged {
		if err := a.fails[kind]; err != nil {
			failed[kind] = err
			continue
		}
		out = append(out, s)
	}
	if len(failed) > 0 {
		return out, &fleet.UnlistedError{Kinds: failed}
	}
	return out, nil
}

func (a *audited) DeleteUnmanaged(_ context.Context, s fleet.UnmanagedResource) error {
	delete(a.unmanaged, s.Kind)
	return nil
}

// orphanage returns a fleet with one orphan of each kind.
func orphanage(t *testing.T) (*fleet.Fleet, *audited, *clock) {
	t.Helper()
	c := newClock()
	a := &audited{shop: newShop(c), unmanaged: map[string]fleet.UnmanagedResource{}, fails: map[string]error{}}
	store := newStore(t, c.now)
	f := fleet.New(a, fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small"}}})
	t.Cleanup(f.Close)
	get(t, f, fleet.AcquireSpec{Owner: "ours"})
	c.pass(time.Second)
	createUnmanagedVM(a.memory, c, "orphan", nil)
	a.images["unused"] = fleet.Image{ID: "unused", Labels: map[string]string{fleet.LabelKind: fleet.ImageSnapshot}, CreatedAt: c.now()}
	for _, kind := range []string{"primary_ip", "volume"} {
		a.unmanaged[kind] = fleet.UnmanagedResource{Kind: kind, ID: "1", CreatedAt: c.now(), HasOwnLabel: true}
	}
	return f, a, c
}

// orphans returns the remaining orphans of an orphanage.
func (a *audited) orphans() string {
	left := slices.Collect(maps.Keys(a.unmanaged))
	if _, ok := a.vms["orphan"]; ok {
		left = append(left, "vm")
	}
	if len(a.images) > 0 {
		left = append(left, "image")
	}
	slices.Sort(left)
	return strings.Join(left, " ")
}

// TestEachKindIsReapedByItsOwnList: a failing list keeps the resources of its own kind, and no others, from being
// deleted, and raises an alarm.
func TestEachKindIsReapedByItsOwnList(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"nothing":              {},
		"image":                {"image"},
		"primary_ip":           {"primary_ip"},
		"vm":                   {"vm"},
		"volume":               {"volume"},
		"two at the same time": {"image", "volume"},
		"every list":           {"image", "primary_ip", "vm", "volume"},
	}
	for what, kinds := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			f, a, c := orphanage(t)
			for _, kind := range kinds {
				a.fails[kind] = errors.New("page 2 of " + kind + " is missing")
			}
			for range 3 {
				c.pass(15 * time.Minute)
				reap(t, f, fleet.ReapOptions{})
			}
			if got, want := a.orphans(), strings.Join(kinds, " "); got != want {
				t.Errorf("left are %q, want %q", got, want)
			}
			var told []string
			for _, alarm := range f.Alarms() {
				if !strings.Contains(alarm.Explanation, "page 2 of "+alarm.Kind) {
					t.Errorf("alarm %+v", alarm)
				}
				told = append(told, alarm.Kind)
			}
			if !slices.Equal(told, kinds) {
				t.Errorf("got alarms about %v, want %v", told, kinds)
			}
			plan, err := f.ReapPlan(t.Context(), fleet.ReapOptions{Reviewed: true, All: true})
			if err != nil || len(plan.Unlisted) != len(kinds) {
				t.Errorf("got unlisted kinds %v, error %v", plan.Unlisted, err)
			}
			for _, item := range plan.Delete {
				if slices.Contains(kinds, item.Kind) {
					t.Errorf("%s would be deleted, but the list of its kind is incomplete", item.Kind)
				}
			}
			clear(a.fails)
			for range 3 {
				c.pass(15 * time.Minute)
				reap(t, f, fleet.ReapOptions{})
			}
			if left, alarms := a.orphans(), f.Alarms(); left != "" || len(alarms) != 0 {
				t.Errorf("after the recovery: got remaining items %q, alarms %+v", left, alarms)
			}
		})
	}
}

// TestReapSurvivesIntermittentListFailures: earlier sightings of an orphan still count after its list has failed in
// between.
func TestReapSurvivesIntermittentListFailures(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"image", "primary_ip", "vm", "volume"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f, a, c := orphanage(t)
			c.pass(15 * time.Minute)
			for i := range 3 {
				a.fails[kind] = map[bool]error{true: errors.New("unavailable")}[i%2 == 1]
				reap(t, f, fleet.ReapOptions{})
				c.pass(10 * time.Minute)
			}
			if got := a.orphans(); got != "" {
				t.Errorf("got remaining images %q", got)
			}
		})
	}
}

// TestAlarmsStayWhileTheirListFails: an alarm stays while the list that would confirm its cause cannot be read.
func TestAlarmsStayWhileTheirListFails(t *testing.T) {
	t.Parallel()
	f, a, _ := orphanage(t)
	a.unmanaged["volume"] = fleet.UnmanagedResource{Kind: "volume", ID: "9", Name: "theirs"}
	reap(t, f, fleet.ReapOptions{})
	a.fails["volume"] = errors.New("unavailable")
	for range 2 {
		reap(t, f, fleet.ReapOptions{})
		if alarms := f.Alarms(); len(alarms) != 2 || alarms[0].ID != "9" || alarms[1].ID != "list" {
			t.Errorf("got alarms %+v", alarms)
		}
	}
	clear(a.fails)
	delete(a.unmanaged, "volume")
	reap(t, f, fleet.ReapOptions{})
	if alarms := f.Alarms(); len(alarms) != 0 {
		t.Errorf("got alarms %+v", alarms)
	}
}

// TestPersistentListFailureIsAnError: one failure is logged as a warning, since errand retries; repeated failures are
// errors.
func TestPersistentListFailureIsAnError(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	c := newClock()
	a := &audited{shop: newShop(c), unmanaged: map[string]fleet.UnmanagedResource{}, fails: map[string]error{}}
	store := newStore(t, c.now)
	f := fleet.New(a, fleet.Config{
		Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small"}}, Log: zerolog.New(&log),
	})
	t.Cleanup(f.Close)
	var got []string
	for _, fails := range []bool{true, false, true, true, true, true, false, true, true} {
		clear(a.fails)
		if fails {
			a.fails["vm"] = errors.New("unavailable")
		}
		reap(t, f, fleet.ReapOptions{})
		c.pass(5 * time.Minute)
		got = append(got, fmt.Sprint(strings.Count(log.String(), `"warn"`), strings.Count(log.String(), `"error"`)))
		log.Reset()
	}
	want := []string{"1 0", "0 0", "1 0", "0 0", "0 1", "0 0", "0 0", "1 0", "0 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings and errors of each pass (-want +got):\n%s", diff)
	}
}

// TestNoVMIsLostByAFailingList: the rows of VMs in use stay while the VMs cannot be listed.
func TestNoVMIsLostByAFailingList(t *testing.T) {
	t.Parallel()
	c := newClock()
	store := newStore(t, c.now)
	a := &audited{shop: newShop(c), unmanaged: map[string]fleet.UnmanagedResource{}, fails: map[string]error{}}
	f := fleet.New(a, fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small"}}})
	t.Cleanup(f.Close)
	server := get(t, f, fleet.AcquireSpec{Owner: "ours"})
	a.fails["vm"] = errors.New("unavailable")
	a.mu.Lock()
	kept := a.vms[server.Name]
	delete(a.vms, server.Name) // a lookup by name fails, too, for a moment
	a.mu.Unlock()
	ctx, stop := c.until(t, c.now().Add(20*time.Minute))
	defer stop()
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.vms[server.Name] = kept
	a.mu.Unlock()
	if row := rowOf(t, store, server.Name); row.Phase != vm.Ready {
		t.Errorf("got row %+v", row)
	}
}

// TestYoungOrphansAreListed: a plan names the orphans that are too young to be deleted, with the time of their
// deletion.
func TestYoungOrphansAreListed(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]fleet.ReapOptions{"automatic": {}, "reviewed by a person": {Reviewed: true}, "store lost": {All: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, a, c := orphanage(t)
			due := c.now().Add(15 * time.Minute)
			c.pass(14 * time.Minute)
			plan, err := f.ReapPlan(t.Context(), opts)
			if err != nil {
				t.Fatal(err)
			}
			kinds := map[string]bool{}
			for _, item := range plan.Wait {
				if kinds[item.Kind] = true; !item.After.Equal(due) || item.Explanation == "" {
					t.Errorf("%s %s goes after %s, want %s: %s", item.Kind, item.ID, item.After, due, item.Explanation)
				}
			}
			if len(kinds) != 4 || len(plan.Wait) != 4 {
				t.Errorf("got waiting items %+v", plan.Wait)
			}
			for _, item := range plan.Delete {
				if item.Kind != fleet.ReapRow {
					t.Errorf("got planned deletions %+v", item)
				}
			}
			if got := a.orphans(); got != "image primary_ip vm volume" {
				t.Errorf("got remaining images %q", got)
			}
		})
	}
}
