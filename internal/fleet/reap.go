package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// Kinds of reaped resources, in addition to those of [UnmanagedResource].
const (
	ReapVM    = "vm"    // a VM of this deployment
	ReapRow   = "row"   // a row whose VM is not needed
	ReapImage = "image" // an image of this deployment
)

// maxReaped is the number of resources that one automatic pass deletes; more indicate another problem.
const maxReaped = 5

// ReapOptions configure a plan. The zero value is for the automatic reaper.
type ReapOptions struct {
	// Reviewed states that a person reviews the plan: one sighting is sufficient, and the number of deletions is
	// unlimited. The grace period still applies.
	Reviewed bool
	// All ignores the store: everything that has this deployment's label and is older than the grace period is deleted,
	// unless a live row has it. It is for a lost store.
	All bool
}

// A ReapItem is one resource to delete, or one that is kept for a reason worth reporting.
type ReapItem struct {
	Kind string
	ID   string
	Name string
	// Explanation is a sentence for people; Reason is stored in the VM's row.
	Explanation string
	Reason      Reason
	// After is the earliest time of the deletion, for items that wait.
	After time.Time

	resource UnmanagedResource
	vm       string // the provider's ID of a VM
}

// A ReapPlan is the result of the reapers. Reap only acts on Delete.
type ReapPlan struct {
	At time.Time
	// Delete is to be deleted.
	Delete []ReapItem
	// Wait is to be deleted if nothing changes until ReapItem.After.
	Wait []ReapItem
	// Alarms require a person.
	Alarms []Alarm
	// Unlisted has the errors of unreadable lists by kind. Nothing of these kinds is deleted.
	Unlisted map[string]error
}

// An Alarm requires a person's attention.
type Alarm struct {
	Kind        string
	ID          string
	Name        string
	Explanation string
	Since       time.Time
}

// sighting records since when the reaper has seen an unowned resource.
type sighting struct {
	first time.Time
	count int
}

// A reaper finds and deletes resources that nothing needs.
type reaper struct {
	*core
	inventory *inventory
	images    *imageStore
	limit     *accountLimit
	deletion  *deleter

	mu               sync.Mutex
	sighted          map[string]sighting
	alarms           map[string]Alarm
	unreadablePasses map[string]int // consecutive passes in which the list of a kind was unreadable
}

// maxBakePhase is how long a VM without a task may stay in a phase, since an image may be baked in it.
const maxBakePhase = 6 * time.Hour

// newPlan implements [Fleet.ReapPlan].
func (r *reaper) newPlan(ctx context.Context, opts ReapOptions) (ReapPlan, error) {
	s, err := r.takeSurvey(ctx, opts)
	if err != nil {
		return ReapPlan{}, fmt.Errorf("plan the reaping: %w", err)
	}
	return r.planReap(s), nil
}

// planReap judges a survey and raises the alarms.
func (r *reaper) planReap(s survey) ReapPlan {
	plan := ReapPlan{At: s.at, Alarms: r.findAlarms(s), Unlisted: s.unlisted}
	sure := s.opts.Reviewed || s.opts.All
	surplus := 0
	r.mu.Lock()
	seen := map[string]sighting{}
	for _, item := range slices.Concat(r.idleRows(s), r.orphanVMs(s), r.orphanImages(s), r.unusedResources(s)) {
		if s.at.Before(item.After) {
			plan.Wait = append(plan.Wait, item)
			continue
		}
		key := item.Kind + " " + item.ID + " " + item.vm
		sight, again := r.sighted[key]
		if !again {
			sight.first = s.at
		}
		sight.count++
		seen[key] = sight
		due := sure || sight.count >= 2 && s.at.Sub(sight.first) >= r.cfg.Grace
		switch {
		case due && (sure || len(plan.Delete) < maxReaped):
			plan.Delete = append(plan.Delete, item)
			continue
		case due:
			surplus++
		}
		item.After = sight.first.Add(r.cfg.Grace)
		plan.Wait = append(plan.Wait, item)
	}
	for key, sight := range r.sighted { // a failed list does not change earlier sightings
		if _, ok := seen[key]; !ok && s.unlisted[kindOf(key)] != nil {
			seen[key] = sight
		}
	}
	r.sighted = seen // resources that have an owner again, or are gone, start from zero
	r.mu.Unlock()
	if surplus > 0 {
		plan.Alarms = append(plan.Alarms, Alarm{
			Kind: ReapVM, ID: "many", Since: s.at,
			Explanation: fmt.Sprintf("%d more unowned resources than one pass may delete; check them with `errand reap --dry-run`", surplus),
		})
	}
	r.recordAlarms(plan.Alarms, s.unlisted)
	return plan
}

// idleRows returns rows whose VM is not needed or has reached its maximum age.
func (r *reaper) idleRows(s survey) (out []ReapItem) {
	for _, row := range s.rows {
		if row.Phase == vm.Gone || row.Phase == vm.Deleting || row.Phase == vm.Failed {
			continue
		}
		item := ReapItem{Kind: ReapRow, ID: row.Name, Name: row.Name, Reason: ReasonOrphan}
		switch task := s.tasks[row.Task]; {
		case r.isDelayed(row, task, s.at):
			continue
		case isAged(row, s.at):
			item.Explanation, item.Reason = "it reached its maximum age", ReasonLimit
		case s.at.Sub(row.Since) < r.cfg.Grace && !(s.opts.Reviewed || s.opts.All):
			continue
		case row.Standby, row.Task.IsZero() && s.at.Sub(row.Since) < maxBakePhase: // a standby VM is deleted when its hour ends
			continue
		case row.Task.IsZero():
			item.Explanation = "no task has it, and no image takes this long to bake"
		case r.isNeededByTask(row, task, s.at):
			continue
		case task == nil:
			item.Explanation = "the store has no task " + row.Task.String()
		case task.Ended():
			item.Explanation, item.Reason = "its task has ended", ReasonDone
			if task.Phase == state.PhaseCancelled {
				item.Reason = ReasonCancelled
			}
		default:
			item.Explanation = "its task does not use it"
		}
		out = append(out, item)
	}
	return out
}

// isNeededByTask reports whether a row's task has its VM or is about to have it.
func (r *reaper) isNeededByTask(row vm.Row, t *state.Task, now time.Time) bool {
	switch {
	case t == nil:
		return false
	case row.Phase == vm.Asleep: // the job that suspended it may not have stored that yet
		return t.Suspended != nil && t.Suspended.Ref == row.Snapshot || t.VM != nil && t.VM.Name == row.Name
	case t.Ended():
		return false
	case t.VM != nil && t.VM.Name == row.Name:
		return true
	case row.Phase == vm.Busy || row.Phase == vm.Parked || row.Phase == vm.Sleeping:
		return false // the task has another VM by now
	case t.Waiting != nil && t.Waiting.Kind == state.WaitPaused:
		return false // nobody brings it up before the operator resumes, and until then it costs money
	case t.Run != nil, t.Waiting != nil:
		return true // its launch brings it up
	}
	return now.Sub(row.Since) < max(r.cfg.Grace, unknownIntentTTL)
}

// orphanVMs returns this deployment's VMs without a live row.
func (r *reaper) orphanVMs(s survey) (out []ReapItem) {
	for _, server := range s.vms {
		row, ok := s.byName[server.Name]
		item := ReapItem{
			Kind:   ReapVM,
			ID:     server.Name,
			Name:   server.Name,
			Reason: ReasonOrphan,
			After:  server.CreatedAt.Add(r.cfg.Grace),
			vm:     server.ID,
		}
		task := s.tasks[ownerTask(server.Labels)]
		switch {
		case ok && ownsVM(row, server):
			continue // its row decides
		case pastLabel(server.Labels, s.at):
			item.Explanation, item.Reason, item.After = "it reached its maximum age", ReasonLimit, time.Time{}
		case !ok && task != nil && task.VM != nil && task.VM.Name == server.Name && !task.Ended():
			continue // created by an errand that stored no rows
		case isOlderThanStore(s, server):
			continue // see findAlarms
		case !ok:
			item.Explanation = "no row has it"
		case row.Phase == vm.Gone && r.isDisabled(SafeguardTombstones):
			continue
		case isDifferentVM(row, server.ID):
			item.Explanation = fmt.Sprintf("its row has another VM, %s: it was created late", row.ID)
		case row.Phase == vm.Asleep:
			item.Explanation = "according to its row it was suspended as an image and deleted"
		default:
			item.Explanation = "according to its row it was deleted: it was created late, or never deleted"
		}
		out = append(out, item)
	}
	return out
}

// isOlderThanStore reports whether a VM that no row owns is older than the store, or than the restoration of the store from a backup:
// it may have work of which the store knows nothing. Only in a restored store are there rows from before that time.
func isOlderThanStore(s survey, server VM) bool {
	if s.opts.All {
		return false
	}
	if row, ok := s.byName[server.Name]; ok && !row.Intended.Before(s.since) && !predates(row, server) {
		return false // clocks differ: the first row of a store may be a little younger than its VM
	}
	return s.since.IsZero() || server.CreatedAt.Before(s.since)
}

func pastLabel(labels map[string]string, now time.Time) bool {
	at, err := strconv.ParseInt(labels[LabelNotAfter], 10, 64)
	return err == nil && !now.Before(time.Unix(at, 0)) // an unreadable label does not allow deletion
}

// orphanImages returns images of suspended VMs that no task will restore.
func (r *reaper) orphanImages(s survey) (out []ReapItem) {
	owned := map[string]bool{}
	busy := map[string]bool{}
	using := map[string]bool{}
	for _, row := range s.rows {
		if row.Phase != vm.Gone && row.Snapshot != "" {
			owned[row.Snapshot] = true
		}
		if row.Phase == vm.Sleeping {
			busy[row.Labels[LabelOwner]+" "+row.Labels[LabelGeneration]] = true
		}
		if row.Phase.Rising() {
			using[row.Image] = true
		}
	}
	for _, img := range s.images {
		task := s.tasks[ownerTask(img.Labels)]
		sleep := img.Labels[LabelKind] == ImageSnapshot
		switch {
		case owned[img.ID], sleep && busy[img.Labels[LabelOwner]+" "+img.Labels[LabelGeneration]]:
			continue
		case sleep && task != nil && task.Suspended != nil && task.Suspended.Ref == img.ID:
			continue
		case using[img.ID]:
			continue // a VM is being created from it
		case !s.opts.All && !img.Failed &&
			(img.Labels[LabelKind] == ImageBase && !r.isGroupRemoved(img) || img.Labels[LabelKind] == ImageBaking):
			continue // the baker keeps the newest ones
		case !s.opts.All && (s.since.IsZero() || img.CreatedAt.Before(s.since)):
			continue
		}
		why := "no suspended task has it"
		switch {
		case img.Failed:
			why = "its creation failed"
		case r.isGroupRemoved(img):
			why = fmt.Sprintf("it is a base image of the group %q, which is not configured", img.Labels[LabelGroup])
		}
		out = append(out, ReapItem{
			Kind:        ReapImage,
			ID:          img.ID,
			Name:        img.Labels[LabelOwner],
			Explanation: why,
			Reason:      ReasonOrphan,
			After:       img.CreatedAt.Add(r.cfg.Grace),
		})
	}
	return out
}

// isGroupRemoved reports whether an image is a base image of a group that is not configured.
func (r *reaper) isGroupRemoved(img Image) bool {
	group := img.Labels[LabelGroup]
	return img.Labels[LabelKind] == ImageBase && group != "" && r.cfg.BaseGroups != nil && !slices.Contains(r.cfg.BaseGroups, group)
}

// unusedResources returns unused addresses, keys and other resources of this deployment.
func (r *reaper) unusedResources(s survey) (out []ReapItem) {
	for _, stray := range s.unmanaged {
		if stray.HasOwnLabel {
			out = append(out, ReapItem{
				Kind: stray.Kind, ID: stray.ID, Name: stray.Name, Explanation: "nothing of this deployment uses it", Reason: ReasonOrphan,
				After: stray.CreatedAt.Add(r.cfg.Grace), resource: stray,
			})
		}
	}
	return out
}

// findAlarms returns resources that no reaper changes: those without this deployment's label, and its own that are older
// than the store.
func (r *reaper) findAlarms(s survey) (out []Alarm) {
	for _, kind := range slices.Sorted(maps.Keys(s.unlisted)) {
		out = append(out, Alarm{
			Kind: kind, ID: unlistedID, Since: s.at,
			Explanation: fmt.Sprintf("the list could not be read (%s), so none is deleted; errand retries automatically", shortenError(s.unlisted[kind])),
		})
	}
	for _, stray := range s.unmanaged {
		if !stray.HasOwnLabel {
			out = append(out, Alarm{Kind: stray.Kind, ID: stray.ID, Name: stray.Name, Since: s.at, Explanation: "it does not carry this deployment's label; errand never changes it, but it may cost money"})
		}
	}
	out = append(out, r.delayAlarms(s)...)
	if s.opts.All {
		return out
	}
	for _, server := range s.vms {
		task := s.tasks[ownerTask(server.Labels)]
		known := task != nil && task.VM != nil && task.VM.Name == server.Name
		row, ok := s.byName[server.Name]
		if known = known && !ok || ok && ownsVM(row, server); !known && !pastLabel(server.Labels, s.at) && isOlderThanStore(s, server) {
			out = append(out, Alarm{Kind: ReapVM, ID: server.Name, Name: server.Name, Since: s.at, Explanation: "it belongs to this deployment but is older than the store, or was created between a backup and its restoration, and the store does not know it; `errand reap --all` deletes such VMs"})
		}
	}
	return out
}
