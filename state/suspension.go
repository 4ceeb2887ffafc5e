package state

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state/settings"
)

// SuspendedWork is the saved work of a task, so that its VM could be deleted. A task with saved work and without a VM is
// suspended. The work is kept until newer work replaces it, it was not needed for Policy.KeepAsleep, or the task ended
// Policy.KeepAfterEnd ago. A canceled task's work is saved in the same way, always as an archive.
type SuspendedWork struct {
	Mode   settings.SleepMode `json:"mode"`
	Ref    string             `json:"ref"` // the name of the stored archive, or the ID of the provider's image
	Bytes  int64              `json:"bytes,omitempty"`
	SHA256 string             `json:"sha256,omitempty"`
	// VM is the name of the VM and Gen its number; RestoredFrom names earlier VMs whose work was continued on it.
	VM           string    `json:"vm"`
	Gen          int       `json:"gen"`
	RestoredFrom []string  `json:"carries,omitempty"`
	At           time.Time `json:"at"`
	Session      string    `json:"session,omitempty"` // the agent's session, if the task knows it
	// Base is the published commit that a checkout must be at before an archive is unpacked there; Head is the commit
	// that the branch was at.
	Base string `json:"base,omitempty"`
	Head string `json:"head,omitempty"`
	// Dir is the directory of the checkout, Paths the number of its files with uncommitted changes.
	Dir   string `json:"dir,omitempty"`
	Paths int    `json:"paths,omitempty"`
	// Omitted describes the files that were too large to be saved, for people.
	Omitted []string `json:"left,omitempty"`
	// Stale is set when the work has since been moved onto another commit.
	Stale bool `json:"stale,omitempty"`
}

// LastVMGen returns the highest generation of the task's VMs, 0 if it has had none.
func (t *Task) LastVMGen() (gen int) {
	if t.VM != nil {
		gen = t.VM.Gen
	}
	for i := range t.VMs {
		gen = max(gen, t.VMs[i].Gen)
	}
	return gen
}

// maxVMNames is the maximum number of names that VMNames returns; the newest are kept.
const maxVMNames = 30

// VMNames returns the names of the VMs whose work it contains, which is VM.RestoredFrom of a VM that restores it.
func (a *SuspendedWork) VMNames() []string {
	list := append(slices.Clone(a.RestoredFrom), a.VM)
	return list[max(0, len(list)-maxVMNames):]
}

// Contains reports whether it contains the work done on a VM.
func (a *SuspendedWork) Contains(vm string) bool {
	return a.VM == vm || slices.Contains(a.RestoredFrom, vm)
}

// Contains reports whether this VM contains the work done on the VM of that name.
func (v VM) Contains(name string) bool {
	return v.Name != "" && v.Name == name || slices.Contains(v.RestoredFrom, name)
}

// WorkToRestore returns the saved work that the task's next VM restores. It returns nil if there is none, if a new VM was
// requested, or if an agent has worked since it was saved.
func (t *Task) WorkToRestore() *SuspendedWork {
	a := t.Suspended
	if a == nil || t.Fresh || a.Stale {
		return nil
	}
	runs := t.Runs
	if t.Run != nil {
		runs = append(slices.Clone(runs), *t.Run)
	}
	for _, r := range slices.Backward(runs) {
		if r.Kind == RunCheck || r.Started.IsZero() {
			continue
		}
		if a.Contains(r.VM) && r.Started.Before(a.At) {
			return a
		}
		return nil
	}
	return nil // no agent has worked in this life, so there is nothing to continue
}

// KeepsWork reports whether the task continues with the unpublished work of its last run: that is still on the VM, was saved from
// it, or is a stored changeset.
func (t *Task) KeepsWork() bool {
	if w := t.Work; w != nil && w.Ref != "" {
		return w.Head == "" || w.Head != t.Branch.Head
	}
	runs := t.Runs
	if t.Run != nil {
		runs = append(slices.Clone(runs), *t.Run)
	}
	for _, r := range slices.Backward(runs) {
		if r.Kind == RunCheck || r.Started.IsZero() {
			continue
		}
		onVM := t.VM != nil && t.VM.Contains(r.VM) && (!t.Ended() || t.End != nil && t.End.Saving)
		return (r.Kind == RunImplement || r.Kind == RunReview) && (onVM || t.WorkToRestore() != nil)
	}
	return false
}

// CanResume reports whether `retry` continues a canceled task where it ended. A task that has a pull request continues with that
// instead, if it can.
func (t *Task) CanResume(now time.Time) bool {
	return t.Phase == PhaseCancelled && t.PR == nil && t.End != nil && t.End.Phase != "" && now.Before(t.End.KeptUntil)
}

// CanContinuePR reports whether the next life of the task can continue its pull request: that is open, or was closed recently.
func (t *Task) CanContinuePR(now time.Time) bool {
	return t.Purged.IsZero() && t.PR != nil && (t.PR.State == PROpen || t.PR.State == PRClosed && now.Before(t.PR.KeptUntil))
}

// HasIdleVM reports whether the task has a VM that it does not need at present: it waits for people, for a limit to end,
// or for money.
func (t *Task) HasIdleVM() bool {
	switch {
	case t.VM == nil || t.Ended():
		return false
	case t.Gathering != nil: // an agent is about to need it
		return false
	case t.Run != nil && (t.Run.State != RunLaunching || t.Waiting == nil):
		return false
	case t.Phase.Working():
		return t.Waiting != nil
	}
	return true
}

// IsQueuedForVM reports whether the task waits until other tasks use fewer VMs.
func (t *Task) IsQueuedForVM() bool {
	return t.Phase.Working() && t.Waiting != nil && t.Waiting.Place > 0
}

// CanYieldVM reports whether the task's VM may be suspended because another task needs one: it is idle, and the task waits
// for people, for the operator to resume its repository, or for a new VM that replaces it. A task that continues
// automatically keeps its VM.
func (t *Task) CanYieldVM() bool {
	if !t.HasIdleVM() || t.Phase == PhaseInterrupted {
		return false
	}
	if t.Phase.Working() && t.Waiting.Kind == WaitPaused {
		return true
	}
	if t.IsQueuedForVM() {
		return t.Fresh
	}
	return t.Run == nil
}

// IdleSince returns the time since which the VM is idle.
func (t *Task) IdleSince() time.Time {
	if t.Phase.Working() && t.Waiting != nil && t.Waiting.Since.After(t.Since) {
		return t.Waiting.Since
	}
	return t.Since
}

// Spans returns the number of paid spans of the VM that have begun by a time. It is 0 for a VM that costs nothing.
func (v VM) Spans(now time.Time) int64 {
	if v.Paid <= 0 || v.CreatedAt.IsZero() {
		return 0
	}
	if !v.EndedAt.IsZero() {
		now = v.EndedAt
	}
	return max(int64((now.Sub(v.CreatedAt)+v.Paid-1)/v.Paid), 1)
}

// Cost returns the cost of the VM by a time, in millionths of its Currency.
func (v VM) Cost(now time.Time) int64 { return v.Spans(now) * v.MicroHour }

// Hours returns the VM's paid time by a time.
func (v VM) Hours(now time.Time) time.Duration { return time.Duration(v.Spans(now)) * v.Paid }

// PaidUntil returns the end of the current paid span; zero for a VM that costs nothing.
func (v VM) PaidUntil(now time.Time) time.Time {
	if v.Spans(now) == 0 {
		return time.Time{}
	}
	return v.CreatedAt.Add(v.Hours(now))
}

// VMTime returns the paid VM time that the task may use: the operator's limit and the hours that people added. 0 means
// no limit.
func (t *Task) VMTime(limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	return limit + time.Duration(t.MoreVMHours)*time.Hour
}

// VMUse is the total use of a task's VMs: paid time and cost.
type VMUse struct {
	VMs      int
	Hours    time.Duration
	Micro    int64
	Currency string
}

// VMUse returns the total of the task's VMs that cost money.
func (t *Task) VMUse(now time.Time) VMUse {
	var u VMUse
	add := func(v VM) {
		if v.Paid > 0 {
			u.VMs, u.Hours, u.Micro = u.VMs+1, u.Hours+v.Hours(now), u.Micro+v.Cost(now)
			u.Currency = v.Currency
		}
	}
	for _, v := range t.VMs {
		add(v)
	}
	if t.VM != nil {
		add(*t.VM)
	}
	return u
}
