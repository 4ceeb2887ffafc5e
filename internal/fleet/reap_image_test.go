package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
)

// TestReapImages wants images to stay that a sleeping task, a row or the baker has.
func TestReapImages(t *testing.T) {
	t.Parallel()
	c := newClock()
	s, store := newShop(c), &tasks{Store: newStore(t, c.now)}
	f := fleet.New(s, fleet.Config{Deployment: "demo", Store: store, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small"}}})
	t.Cleanup(f.Close)
	vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
	store.task = &state.Task{Phase: state.PhasePROpen, VM: &state.VM{Name: vm.Name}, Asleep: &state.Asleep{Ref: "of-the-task"}}
	if _, err := f.Snapshot(t.Context(), vm.Name); err != nil { // and killed before the task knew
		t.Fatal(err)
	}
	for id, kind := range map[string]string{"of-the-task": fleet.ImageSleep, "of-nobody": fleet.ImageSleep, "base": fleet.ImageBase, "unknown": "", "broken": fleet.ImageBase} {
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
		for _, id := range []string{"base", "broken", "image-of-" + vm.Name, "of-nobody", "of-the-task", "unknown"} {
			if _, ok := s.images[id]; ok {
				ids = append(ids, id)
			}
		}
		return strings.Join(ids, " ")
	}
	// The task in this store is everybody's, so what is "of nobody" is told by its id alone.
	if got, want := left(), "base image-of-"+vm.Name+" of-the-task"; got != want {
		t.Errorf("left are %q, want %q", got, want)
	}
	store.task = nil
	if got := reap(t, f, fleet.ReapOptions{All: true}); !strings.Contains(got, "image base") || !strings.Contains(got, "image of-the-task") || !strings.Contains(got, "row "+vm.Name) {
		t.Errorf("reaped %q", got)
	}
	if got := left(); got != "" {
		t.Errorf("left are %q", got)
	}
}
