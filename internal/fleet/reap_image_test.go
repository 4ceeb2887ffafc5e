package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestReapImages: images of a suspended task, a row or the baker are kept.
func TestReapImages(t *testing.T) {
	t.Parallel()
	c := newClock()
	s, store := newShop(c), &tasks{Store: newStore(t, c.now)}
	f := fleet.New(s, fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small"}}})
	t.Cleanup(f.Close)
	vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
	store.task = &state.Task{TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}, TaskVMs: state.TaskVMs{VM: &state.VM{Name: vm.Name}, Suspended: &state.SuspendedWork{Ref: "of-the-task"}}}
	if _, err := f.Snapshot(t.Context(), vm.Name); err != nil { // and the process was killed before the task stored it
		t.Fatal(err)
	}
	for id, kind := range map[string]string{"of-the-task": fleet.ImageSnapshot, "of-no-task": fleet.ImageSnapshot, "base": fleet.ImageBase, "unknown": "", "broken": fleet.ImageBase} {
		owner := "9-9"
		if id == "of-the-task" {
			owner = "5-7"
		}
		s.images[id] = fleet.Image{ID: id, Labels: map[string]string{fleet.LabelKind: kind, fleet.LabelOwner: owner}, CreatedAt: c.now(), Failed: id == "broken"}
	}
	for range 5 {
		c.pass(10 * time.Minute)
		store.task.VM = &state.VM{Name: vm.Name}
		reap(t, f, fleet.ReapOptions{})
	}
	left := func() string {
		var ids []string
		for _, id := range []string{"base", "broken", "image-of-" + vm.Name, "of-no-task", "of-the-task", "unknown"} {
			if _, ok := s.images[id]; ok {
				ids = append(ids, id)
			}
		}
		return strings.Join(ids, " ")
	}
	// This store has a single task, so the images without a task are only identified by ID.
	if got, want := left(), "base image-of-"+vm.Name+" of-the-task"; got != want {
		t.Errorf("left are %q, want %q", got, want)
	}
	store.task = nil
	if got := reap(t, f, fleet.ReapOptions{All: true}); !strings.Contains(got, "image base") || !strings.Contains(got, "image of-the-task") || !strings.Contains(got, "row "+vm.Name) {
		t.Errorf("got reaped items %q", got)
	}
	if got := left(); got != "" {
		t.Errorf("got remaining images %q", got)
	}
}

// TestReapImagesOfRemovedGroups: base images of groups that are no longer configured are deleted with the usual
// safeguards, and no other images.
func TestReapImagesOfRemovedGroups(t *testing.T) {
	t.Parallel()
	const age = time.Hour
	base := func(group string) map[string]string {
		return map[string]string{fleet.LabelKind: fleet.ImageBase, fleet.LabelGroup: group}
	}
	tests := map[string]struct {
		groups []string
		labels map[string]string
		image  string // of a VM that is coming up
		early  bool   // older than the store
		passes int
		want   bool // it is deleted
	}{
		"a group that is there":       {groups: []string{"web"}, labels: base("web"), passes: 3},
		"a group that was removed":    {groups: []string{"app"}, labels: base("web"), passes: 3, want: true},
		"every group was removed":     {groups: []string{}, labels: base("web"), passes: 3, want: true},
		"the groups are unknown":      {labels: base("web"), passes: 3},
		"seen once":                   {groups: []string{"app"}, labels: base("web"), passes: 1},
		"seen twice within the grace": {groups: []string{"app"}, labels: base("web"), passes: 2},
		"a prefix of a group's name":  {groups: []string{"web-2"}, labels: base("web"), passes: 3, want: true},
		"of no group":                 {groups: []string{"app"}, labels: map[string]string{fleet.LabelKind: fleet.ImageBase}, passes: 3},
		"being baked":                 {groups: []string{"app"}, labels: map[string]string{fleet.LabelKind: fleet.ImageBaking, fleet.LabelGroup: "web"}, passes: 3},
		"a VM is made from it":        {groups: []string{"app"}, labels: base("web"), image: "base", passes: 3},
		"older than the store":        {groups: []string{"app"}, labels: base("web"), early: true, passes: 3},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s, store := newShop(c), newStore(t, c.now)
			f := fleet.New(s, fleet.Config{
				Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small"}}, BaseGroups: test.groups,
			})
			t.Cleanup(f.Close)
			created := c.now()
			c.pass(time.Minute)
			get(t, f, fleet.AcquireSpec{Owner: "ours"})
			if !test.early {
				created = c.now()
			}
			if test.image != "" {
				in := vm.Intent{Name: "waits", Owner: "waits", Gen: 1, Image: test.image, Provider: "memory"}
				if _, err := store.VMs.Intend(t.Context(), in, vm.Caps{}); err != nil {
					t.Fatal(err)
				}
			}
			s.images["base"] = fleet.Image{ID: "base", Labels: test.labels, CreatedAt: created}
			c.pass(age)
			for range test.passes {
				reap(t, f, fleet.ReapOptions{})
				c.pass(8 * time.Minute)
			}
			if _, left := s.images["base"]; left == test.want {
				t.Errorf("deleted: %t, want %t", !left, test.want)
			}
		})
	}
}
