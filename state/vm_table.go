package state

import "slices"

// VMTableRow is one line of the VMs' transition table: in one of the phases From, the event On leads to To.
type VMTableRow struct {
	From []VMPhase
	On   VMEventKind
	// If names the condition, in words.
	If string
	// To is the phase afterwards; VMSame leaves it as it is.
	To  VMPhase
	Doc string // what happens, one sentence

	when func(*VMRow, VMEvent) bool
	do   func(*VMRow, VMEvent)
}

// VMSame stands in VMTableRow.To for "the phase does not change".
const VMSame VMPhase = "same"

// VMTable returns the transition table of VMs. docs/lifecycle.md is made from it.
func VMTable() []VMTableRow { return slices.Clone(vmTable) }

// vmTable is the whole life of a VM. It is read, never changed; rows are tried from the top.
var vmTable = slices.Concat(vmRises(), vmWorks(), vmEnds())

// vmRises is the way from the intent to a VM that can be used.
func vmRises() []VMTableRow {
	wakes := func(r *VMRow, e VMEvent) bool { return r.FromSleep != "" }
	return []VMTableRow{
		{From: []VMPhase{VMIntended}, On: VMMade, If: "it can be used at once, and takes over work", To: VMWaking, Doc: "as up", when: func(r *VMRow, e VMEvent) bool { return e.Usable && wakes(r, e) }, do: both((*VMRow).made, (*VMRow).up)},
		{From: []VMPhase{VMIntended}, On: VMMade, If: "it can be used at once", To: VMReady, Doc: "as up", when: func(_ *VMRow, e VMEvent) bool { return e.Usable }, do: both((*VMRow).made, (*VMRow).up)},
		{From: []VMPhase{VMIntended}, On: VMMade, To: VMCreating, Doc: "its id, place and price are stored before anything waits for it", do: (*VMRow).made},
		{From: []VMPhase{VMFailed, VMDeleting}, On: VMMade, If: "it was not known to exist", To: VMSame, Doc: "a create landed late: what has to be deleted, and paid for, is stored", when: func(r *VMRow, _ VMEvent) bool { return r.ID == "" && r.CreatedAt.IsZero() }, do: (*VMRow).made},
		{From: []VMPhase{VMCreating}, On: VMRuns, To: VMBooting, Doc: "its first contact begins"},
		{From: []VMPhase{VMBooting}, On: VMPinned, To: VMSame, Doc: "the new host key is accepted beside the old one, before the VM takes it", do: func(r *VMRow, e VMEvent) { r.Pins = slices.Clone(e.Pins) }},
		{From: []VMPhase{VMBooting}, On: VMUp, If: "it takes over work", To: VMWaking, Doc: "only the new host key is accepted from now on", when: wakes, do: (*VMRow).up},
		{From: []VMPhase{VMBooting}, On: VMUp, To: VMReady, Doc: "only the new host key is accepted from now on", do: (*VMRow).up},
	}
}

// vmWorks is what happens to a VM that can be used.
func vmWorks() []VMTableRow {
	return []VMTableRow{
		{From: []VMPhase{VMWaking, VMReady, VMParked, VMSleeping}, On: VMWork, If: "it has a task", To: VMBusy, Doc: "in the transaction that gives the run its VM", when: func(r *VMRow, _ VMEvent) bool { return !r.Spare }},
		{From: []VMPhase{VMWaking, VMReady, VMBusy}, On: VMRest, To: VMParked, Doc: "in the transaction that ends the run"},
		{From: []VMPhase{VMSleeping}, On: VMRest, To: VMParked, Doc: "its work could not be put away; it is tried again"},
		{From: []VMPhase{VMReady, VMParked}, On: VMSleep, To: VMSleeping, Doc: "its disk comes to rest and is made an image"},
		{From: []VMPhase{VMSleeping}, On: VMImaged, To: VMAsleep, Doc: "the image is available; the VM is deleted next", do: func(r *VMRow, e VMEvent) { r.Snapshot = e.Snapshot; r.ended(e) }},
		{From: []VMPhase{VMWaking, VMReady, VMBusy, VMParked}, On: VMKeep, To: VMParked, Doc: "spare: a rebuild gives it to the next task of the repository, or the end of its hour ends it", do: func(r *VMRow, e VMEvent) { r.Spare, r.Task, r.Why = true, TaskKey{}, e.Why }},
		{From: []VMPhase{VMParked}, On: VMInherits, If: "it is spare", To: VMDeleting, Doc: "in the transaction of its heir's intent; what is left under the old name is deleted later", when: func(r *VMRow, _ VMEvent) bool { return r.Spare }, do: func(r *VMRow, e VMEvent) { r.Heir = e.Heir; r.ended(e); r.EndedAt = e.Now }},
	}
}

// vmEnds is how a VM ends.
func vmEnds() []VMTableRow {
	live := slices.DeleteFunc(VMPhases(), VMPhase.Over)
	return []VMTableRow{
		{From: live, On: VMFail, To: VMFailed, Doc: "the row keeps why", do: (*VMRow).ended},
		{From: append(slices.Clone(live), VMFailed, VMAsleep), On: VMEnd, To: VMDeleting, Doc: "stored before the provider is asked to delete it", do: (*VMRow).ended},
		{From: []VMPhase{VMAsleep}, On: VMDeleted, If: "it was there", To: VMSame, Doc: "its bill is closed; the image stays", when: func(r *VMRow, _ VMEvent) bool { return r.EndedAt.IsZero() }, do: (*VMRow).freed},
		{From: []VMPhase{VMDeleting}, On: VMDeleted, To: VMGone, Doc: "its bill is closed", do: (*VMRow).freed},
	}
}

// NextVM returns the row after an event, and whether the event changed it. It is pure.
func NextVM(row VMRow, e VMEvent) (VMRow, bool) {
	for i := range vmTable {
		line := &vmTable[i]
		if line.On != e.Kind || !slices.Contains(line.From, row.Phase) || line.when != nil && !line.when(&row, e) {
			continue
		}
		if line.do != nil {
			line.do(&row, e)
		}
		if line.To != VMSame && line.To != row.Phase {
			row.Phase, row.Since = line.To, e.Now
		}
		row.Version++
		return row, true
	}
	return row, false
}

func both(a, b func(*VMRow, VMEvent)) func(*VMRow, VMEvent) {
	return func(r *VMRow, e VMEvent) { a(r, e); b(r, e) }
}

// made stores the provider's facts. What it does not say stays as it was intended.
func (r *VMRow) made(e VMEvent) {
	r.ID, r.Kind, r.CreatedAt = e.ID, e.VMKind, e.CreatedAt
	if e.Location != "" {
		r.Location = e.Location
	}
	if e.Paid > 0 {
		r.MicroHour, r.Currency, r.Paid = e.MicroHour, e.Currency, e.Paid
	}
}

func (r *VMRow) up(e VMEvent) {
	r.UpAt = e.Now
	if len(e.Pins) > 0 {
		r.Pins = slices.Clone(e.Pins)
	}
}

// ended keeps the first reason: that of a failure, not that of the deletion which follows from it.
func (r *VMRow) ended(e VMEvent) {
	if r.Why == "" || r.Phase == VMAsleep {
		r.Why, r.Detail = e.Why, e.Detail
	}
}

func (r *VMRow) freed(e VMEvent) {
	if r.EndedAt.IsZero() {
		r.EndedAt = e.Now
	}
}
