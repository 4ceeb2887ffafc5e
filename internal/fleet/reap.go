package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/errand-bot/errand/state"
)

// Kinds of what a reaper may find, besides those of Stray.
const (
	ReapVM    = "vm"    // a VM of ours
	ReapRow   = "row"   // a row whose VM nobody needs
	ReapImage = "image" // an image of ours
)

// maxReaped is how many things one pass deletes by itself; more is a sign that something else is wrong.
const maxReaped = 5

// ReapOptions say how sure one has to be. Zero is for the reaper that runs by itself.
type ReapOptions struct {
	// Looked says that a person looks at the plan: one sighting is enough, and there is no bound on how
	// many things go. The grace stays.
	Looked bool
	// All takes the store's word for nothing: everything that carries this deployment's label and is
	// older than the grace goes, unless a live row has it. For a store that was lost.
	All bool
}

// ReapItem is one thing that would go, or stays for a reason that somebody should know.
type ReapItem struct {
	Kind string
	ID   string
	Name string
	// Why is a sentence for people, Reason what the VM's row will say.
	Why    string
	Reason Reason
	// After is when it goes at the earliest, for what waits.
	After time.Time

	stray Stray
	vm    string // the provider's id of a VM
}

// ReapPlan is what the reapers found. Reap acts on Delete and on nothing else.
type ReapPlan struct {
	At time.Time
	// Delete is what goes.
	Delete []ReapItem
	// Wait is what will go if it is still so after ReapItem.After.
	Wait []ReapItem
	// Alarms are what nobody but a person may touch.
	Alarms []Alarm
	// Unlisted says, by kind, which lists could not be read: of these kinds nothing goes.
	Unlisted map[string]error
}

// Alarm is something that a person has to look at.
type Alarm struct {
	Kind  string
	ID    string
	Name  string
	Why   string
	Since time.Time
}

// sighting is since when the reaper sees something that nobody owns.
type sighting struct {
	first time.Time
	count int
}

// bakesFor is how long a VM may stay as it is that no task has: an image may be baked in it.
const bakesFor = 6 * time.Hour

// survey is what one pass of the reapers goes by.
type survey struct {
	at     time.Time
	since  time.Time // of the store's first VM; zero if it never had one
	rows   []state.VMRow
	byName map[string]state.VMRow
	vms    []VM
	images []Image
	strays []Stray
	tasks  map[state.TaskKey]*state.Task
	opts   ReapOptions
	// unlisted are the kinds whose list is not whole, and therefore empty here.
	unlisted map[string]error
}

// ReapPlan looks at everything and says what would go and why, without acting. Each kind is judged by its own
// whole list: nothing goes of a kind whose list could not be read, for absence from such a list means nothing,
// and the others do not wait for it. It is an error if the store cannot be read. Each call counts as a sighting.
func (f *Fleet) ReapPlan(ctx context.Context, opts ReapOptions) (ReapPlan, error) {
	s, err := f.survey(ctx, opts)
	if err != nil {
		return ReapPlan{}, fmt.Errorf("plan what to reap: %w", err)
	}
	return f.plan(s), nil
}

// plan judges what a survey found, and raises the alarms.
func (f *Fleet) plan(s survey) ReapPlan {
	plan := ReapPlan{At: s.at, Alarms: f.alarming(s), Unlisted: s.unlisted}
	sure := s.opts.Looked || s.opts.All
	held := 0
	f.mu.Lock()
	seen := map[string]sighting{}
	for _, item := range slices.Concat(f.idleRows(s), f.orphanVMs(s), f.orphanImages(s), f.ourStrays(s)) {
		if s.at.Before(item.After) {
			plan.Wait = append(plan.Wait, item)
			continue
		}
		key := item.Kind + " " + item.ID + " " + item.vm
		sight, again := f.sighted[key]
		if !again {
			sight.first = s.at
		}
		sight.count++
		seen[key] = sight
		due := sure || sight.count >= 2 && s.at.Sub(sight.first) >= f.cfg.Grace
		switch {
		case due && (sure || len(plan.Delete) < maxReaped):
			plan.Delete = append(plan.Delete, item)
			continue
		case due:
			held++
		}
		item.After = sight.first.Add(f.cfg.Grace)
		plan.Wait = append(plan.Wait, item)
	}
	for key, sight := range f.sighted { // a list that failed says nothing about what was seen before
		if _, ok := seen[key]; !ok && s.unlisted[kindOf(key)] != nil {
			seen[key] = sight
		}
	}
	f.sighted = seen // whoever has an owner again, or is gone, starts anew
	f.mu.Unlock()
	if held > 0 {
		plan.Alarms = append(plan.Alarms, Alarm{
			Kind: ReapVM, ID: "many", Since: s.at,
			Why: fmt.Sprintf("%d more things than are deleted at once have no owner: look why (`errand reap --dry-run`)", held),
		})
	}
	f.raise(plan.Alarms, s.unlisted)
	return plan
}

func (f *Fleet) survey(ctx context.Context, opts ReapOptions) (survey, error) {
	s := survey{
		at: f.cfg.Now(), opts: opts, byName: map[string]state.VMRow{}, tasks: map[state.TaskKey]*state.Task{}, unlisted: map[string]error{},
	}
	// The lists come first: what is made meanwhile has a row by the time the rows are read.
	f.list(ctx, &s)
	err := ctx.Err()
	if err != nil {
		return s, err
	}
	if s.since, err = f.rows.Since(ctx); err != nil {
		return s, err
	}
	if s.rows, err = f.rows.List(ctx); err != nil {
		return s, err
	}
	for _, row := range s.rows {
		s.byName[row.Name] = row
		if err := s.load(ctx, f.store, row.Task); err != nil {
			return s, err
		}
	}
	for _, vm := range s.vms {
		if err := s.load(ctx, f.store, ownerTask(vm.Labels)); err != nil {
			return s, err
		}
	}
	for _, img := range s.images {
		if err := s.load(ctx, f.store, ownerTask(img.Labels)); err != nil {
			return s, err
		}
	}
	return s, nil
}

// load reads a task once.
func (s *survey) load(ctx context.Context, facts Store, key state.TaskKey) error {
	if _, ok := s.tasks[key]; ok || key.IsZero() {
		return nil
	}
	task, err := facts.Task(ctx, key)
	s.tasks[key] = task
	return err
}

// ownerTask is the task in a label, zero if it is none.
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

// idleRows are the lease's reaper: rows whose VM nobody needs, or that has had its time.
func (f *Fleet) idleRows(s survey) (out []ReapItem) {
	for _, row := range s.rows {
		if row.Phase == state.VMGone || row.Phase == state.VMDeleting || row.Phase == state.VMFailed {
			continue
		}
		item := ReapItem{Kind: ReapRow, ID: row.Name, Name: row.Name, Reason: ReasonOrphan}
		switch task := s.tasks[row.Task]; {
		case f.delayed(row, task, s.at):
			continue
		case aged(row, s.at):
			item.Why, item.Reason = "it has had its time, whoever owns it", ReasonLimit
		case s.at.Sub(row.Since) < f.cfg.Grace && !(s.opts.Looked || s.opts.All):
			continue
		case row.Spare, row.Task.IsZero() && s.at.Sub(row.Since) < bakesFor: // a spare one goes with its hour
			continue
		case row.Task.IsZero():
			item.Why = "no task has it, and no image takes so long to bake"
		case f.needed(row, task, s.at):
			continue
		case task == nil:
			item.Why = "the store has no task " + row.Task.String()
		case task.Ended():
			item.Why, item.Reason = "its task is over", ReasonDone
			if task.Phase == state.PhaseCancelled {
				item.Reason = ReasonCancelled
			}
		default:
			item.Why = "its task does not use it"
		}
		out = append(out, item)
	}
	return out
}

// needed reports whether a row's task has, or is about to have, its VM.
func (f *Fleet) needed(row state.VMRow, t *state.Task, now time.Time) bool {
	switch {
	case t == nil:
		return false
	case row.Phase == state.VMAsleep: // the job that put it to sleep may not have stored that yet
		return t.Asleep != nil && t.Asleep.Ref == row.Snapshot || t.VM != nil && t.VM.Name == row.Name
	case t.Ended():
		return false
	case t.VM != nil && t.VM.Name == row.Name:
		return true
	case row.Phase == state.VMBusy || row.Phase == state.VMParked || row.Phase == state.VMSleeping:
		return false // it was the task's, and another one is
	case t.Run != nil, t.Waiting != nil:
		return true // its launch brings it up
	}
	return now.Sub(row.Since) < max(f.cfg.Grace, unknownFor)
}

// orphanVMs are the list's reaper: VMs of ours that no live row has.
func (f *Fleet) orphanVMs(s survey) (out []ReapItem) {
	for _, vm := range s.vms {
		row, ok := s.byName[vm.Name]
		item := ReapItem{Kind: ReapVM, ID: vm.Name, Name: vm.Name, Reason: ReasonOrphan, After: vm.CreatedAt.Add(f.cfg.Grace), vm: vm.ID}
		task := s.tasks[ownerTask(vm.Labels)]
		switch {
		case ok && owns(row, vm):
			continue // its row says what becomes of it
		case pastLabel(vm.Labels, s.at):
			item.Why, item.Reason, item.After = "it has had its time, whoever owns it", ReasonLimit, time.Time{}
		case !ok && task != nil && task.VM != nil && task.VM.Name == vm.Name && !task.Ended():
			continue // made by an errand that kept no rows
		case !ok && !s.opts.All && (s.since.IsZero() || vm.CreatedAt.Before(s.since)):
			continue // older than the store: see alarming
		case !ok:
			item.Why = "no row knows it"
		case row.Phase == state.VMGone && f.lacks(SafeguardTombstones):
			continue
		case another(row, vm.ID):
			item.Why = fmt.Sprintf("its row has another VM, %s: it was made late", row.ID)
		case row.Phase == state.VMAsleep:
			item.Why = "its row says that it sleeps as an image, and was deleted"
		default:
			item.Why = "its row says that it is gone: it was made late, or never deleted"
		}
		out = append(out, item)
	}
	return out
}

func pastLabel(labels map[string]string, now time.Time) bool {
	at, err := strconv.ParseInt(labels[LabelNotAfter], 10, 64)
	return err == nil && !now.Before(time.Unix(at, 0)) // one that cannot be read is no reason to delete
}

// orphanImages are images of sleeping VMs that nobody will wake from.
func (f *Fleet) orphanImages(s survey) (out []ReapItem) {
	owned := map[string]bool{}
	busy := map[string]bool{}
	using := map[string]bool{}
	for _, row := range s.rows {
		if row.Phase != state.VMGone && row.Snapshot != "" {
			owned[row.Snapshot] = true
		}
		if row.Phase == state.VMSleeping {
			busy[row.Labels[LabelOwner]+" "+row.Labels[LabelGeneration]] = true
		}
		if row.Phase.Rising() {
			using[row.Image] = true
		}
	}
	for _, img := range s.images {
		task := s.tasks[ownerTask(img.Labels)]
		sleep := img.Labels[LabelKind] == ImageSleep
		switch {
		case owned[img.ID], sleep && busy[img.Labels[LabelOwner]+" "+img.Labels[LabelGeneration]]:
			continue
		case sleep && task != nil && task.Asleep != nil && task.Asleep.Ref == img.ID:
			continue
		case using[img.ID]:
			continue // a VM is made from it
		case !s.opts.All && !img.Failed && (img.Labels[LabelKind] == ImageBase && !f.groupRemoved(img) || img.Labels[LabelKind] == ImageBaking):
			continue // the baker keeps the last ones
		case !s.opts.All && (s.since.IsZero() || img.CreatedAt.Before(s.since)):
			continue
		}
		why := "no sleeping task has it"
		switch {
		case img.Failed:
			why = "it could not be made"
		case f.groupRemoved(img):
			why = fmt.Sprintf("it is a base image of the group %q, which the configuration does not have", img.Labels[LabelGroup])
		}
		out = append(out, ReapItem{
			Kind: ReapImage, ID: img.ID, Name: img.Labels[LabelOwner], Why: why, Reason: ReasonOrphan, After: img.CreatedAt.Add(f.cfg.Grace),
		})
	}
	return out
}

// groupRemoved reports whether an image is a base image of a group that is not configured any more.
func (f *Fleet) groupRemoved(img Image) bool {
	group := img.Labels[LabelGroup]
	return img.Labels[LabelKind] == ImageBase && group != "" && f.cfg.BaseGroups != nil && !slices.Contains(f.cfg.BaseGroups, group)
}

// ourStrays are addresses, keys and the like that nothing of ours uses.
func (f *Fleet) ourStrays(s survey) (out []ReapItem) {
	for _, stray := range s.strays {
		if stray.Ours {
			out = append(out, ReapItem{
				Kind: stray.Kind, ID: stray.ID, Name: stray.Name, Why: "nothing of ours uses it", Reason: ReasonOrphan,
				After: stray.CreatedAt.Add(f.cfg.Grace), stray: stray,
			})
		}
	}
	return out
}

// alarming is what no reaper touches: things without our label, and ours that are older than the store.
func (f *Fleet) alarming(s survey) (out []Alarm) {
	for _, kind := range slices.Sorted(maps.Keys(s.unlisted)) {
		out = append(out, Alarm{
			Kind: kind, ID: unlistedID, Since: s.at,
			Why: fmt.Sprintf("the list could not be read (%s), so none is deleted; it is read again by itself", words(s.unlisted[kind])),
		})
	}
	for _, stray := range s.strays {
		if !stray.Ours {
			out = append(out, Alarm{Kind: stray.Kind, ID: stray.ID, Name: stray.Name, Since: s.at, Why: "it does not carry this deployment's label; errand never touches it, but it may cost money"})
		}
	}
	out = append(out, f.delays(s)...)
	if s.opts.All {
		return out
	}
	for _, vm := range s.vms {
		task := s.tasks[ownerTask(vm.Labels)]
		known := task != nil && task.VM != nil && task.VM.Name == vm.Name
		if _, ok := s.byName[vm.Name]; !ok && !known && !pastLabel(vm.Labels, s.at) && (s.since.IsZero() || vm.CreatedAt.Before(s.since)) {
			out = append(out, Alarm{Kind: ReapVM, ID: vm.Name, Name: vm.Name, Since: s.at, Why: "it is ours and older than the store, which does not know it; was the store lost? `errand reap --all` deletes it"})
		}
	}
	return out
}
