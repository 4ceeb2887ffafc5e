package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// sighting is when the reaper saw a VM without an owner.
type sighting struct {
	first time.Time
	count int
}

// Reap deletes VMs that nobody owns: those that were listed without an owner at
// least twice, over at least the grace, and are older than it. It never acts on a
// list that may be incomplete. owned is asked per VM and must be true also for one
// whose creation is under way. It returns the names deleted; a VM that could not
// be deleted is in the error and is tried again the next time. Calling it
// regularly is also what keeps VMs alive that end without contact.
func (f *Fleet) Reap(ctx context.Context, owned func(name string) bool) ([]string, error) {
	vms, err := f.provider.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("reap VMs: %w", err)
	}
	var deleted []string
	var errs []error
	for _, name := range f.due(vms, owned) {
		if err := f.Release(ctx, name, ReasonOrphan); err != nil {
			errs = append(errs, err)
			continue
		}
		deleted = append(deleted, name)
	}
	return deleted, errors.Join(errs...)
}

// due keeps count of sightings and says which VMs have had their time.
func (f *Fleet) due(vms []VM, owned func(string) bool) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.cfg.Now()
	seen := map[string]sighting{}
	var due []string
	for _, vm := range vms {
		if f.making[vm.Name] > 0 || owned(vm.Name) {
			continue
		}
		s, again := f.sighted[vm.Name]
		if !again {
			s.first = now
		}
		s.count++
		seen[vm.Name] = s
		if s.count >= 2 && now.Sub(s.first) >= f.cfg.Grace && now.Sub(vm.CreatedAt) >= f.cfg.Grace {
			due = append(due, vm.Name)
		}
	}
	f.sighted = seen // whoever has an owner again, or is gone, starts anew
	return due
}
