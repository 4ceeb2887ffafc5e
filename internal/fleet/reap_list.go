package fleet

import (
	"context"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// unlistedID is the ID of the alarm about an unreadable list.
const unlistedID = "list"

// unlistedOther stands for all kinds of unmanaged resources if the failed list is unknown.
const unlistedOther = "other"

// survey is the input of one pass of the reapers.
type survey struct {
	at        time.Time
	since     time.Time // time of the store's first VM; zero if it never had one
	rows      []vm.Row
	byName    map[string]vm.Row
	vms       []VM
	images    []Image
	unmanaged []UnmanagedResource
	tasks     map[state.TaskKey]*state.Task
	opts      ReapOptions
	// unlisted are the kinds whose list is incomplete and therefore empty here.
	unlisted map[string]error
}

// takeSurvey reads the lists and the store.
func (r *reaper) takeSurvey(ctx context.Context, opts ReapOptions) (survey, error) {
	s := survey{
		at: r.cfg.Now(), opts: opts, byName: map[string]vm.Row{}, tasks: map[state.TaskKey]*state.Task{}, unlisted: map[string]error{},
	}
	// Read the lists first: resources created meanwhile have a row by the time the rows are read.
	r.readLists(ctx, &s)
	err := ctx.Err()
	if err != nil {
		return s, err
	}
	if s.since, err = r.rows.Since(ctx); err != nil {
		return s, err
	}
	if s.rows, err = r.rows.List(ctx); err != nil {
		return s, err
	}
	for _, row := range s.rows {
		s.byName[row.Name] = row
		if err := s.loadTask(ctx, r.store, row.Task); err != nil {
			return s, err
		}
	}
	for _, server := range s.vms {
		if err := s.loadTask(ctx, r.store, ownerTask(server.Labels)); err != nil {
			return s, err
		}
	}
	for _, img := range s.images {
		if err := s.loadTask(ctx, r.store, ownerTask(img.Labels)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// loadTask reads a task once.
func (s *survey) loadTask(ctx context.Context, facts Store, key state.TaskKey) error {
	if _, ok := s.tasks[key]; ok || key.IsZero() {
		return nil
	}
	task, err := facts.Task(ctx, key)
	s.tasks[key] = task
	return err
}

// ownerTask returns the task in a label, zero if there is none.
func ownerTask(labels map[string]string) state.TaskKey {
	owner := []byte(labels[LabelOwner])
	for i, c := range owner {
		if c == '-' {
			owner[i] = '/'
		}
	}
	key, err := state.ParseTaskKey(string(owner))
	if err != nil {
		return state.TaskKey{}
	}
	return key
}

// readLists reads the provider's lists into a survey. If a list fails its kind stays empty and is marked as unlisted.
func (r *reaper) readLists(ctx context.Context, s *survey) {
	var err error
	if s.vms, err = r.inventory.list(ctx); err != nil {
		s.vms, s.unlisted[ReapVM] = nil, err
	}
	if imager, ok := r.provider.(Imager); ok {
		if s.images, err = imager.Images(ctx); err != nil {
			s.images, s.unlisted[ReapImage] = nil, err
		}
	}
	auditor, ok := r.provider.(Auditor)
	if !ok {
		return
	}
	s.unmanaged, err = auditor.ListUnmanaged(ctx)
	var unlisted *UnlistedError
	switch {
	case err == nil:
	case errors.As(err, &unlisted):
		maps.Copy(s.unlisted, unlisted.Kinds)
	default:
		s.unmanaged, s.unlisted[unlistedOther] = nil, err
	}
}

// kindOf returns the kind in the key of a sighting.
func kindOf(key string) string {
	kind, _, _ := strings.Cut(key, " ")
	return kind
}
