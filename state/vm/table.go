package vm

import (
	"slices"

	"github.com/errand-bot/errand/state"
)

// TableRow is one row of the VMs' transition table: in one of the phases From, the event On leads to To.
type TableRow struct {
	From []Phase
	On   EventKind
	// If describes the condition.
	If string
	// To is the phase afterwards; Same leaves it as it is.
	To  Phase
	Doc string // the effect, in one sentence

	when func(*Row, Event) bool
	do   func(*Row, Event)
}

// Same means in TableRow.To that the phase does not change.
const Same Phase = "same"

// Table returns the transition table of VMs. docs/lifecycle.md is generated from it.
func Table() []TableRow { return slices.Clone(table) }

// table is the complete transition table of VMs. It is never changed; rows are tried from the top.
var table = slices.Concat(risingRows(), usableRows(), endingRows(), lostRows())

// risingRows returns the rows from the intent to a usable VM.
func risingRows() []TableRow {
	wakes := func(r *Row, _ Event) bool { return r.FromSleep != "" }
	return []TableRow{
		{
			From: []Phase{Intended}, On: Made, If: "it can be used at once, and restores work", To: Waking,
			Doc:  "like `up`",
			when: func(r *Row, e Event) bool { return e.Usable && wakes(r, e) },
			do:   inSequence((*Row).setCreated, (*Row).setUp),
		},
		{
			From: []Phase{Intended}, On: Made, If: "it can be used at once", To: Ready,
			Doc:  "like `up`",
			when: func(_ *Row, e Event) bool { return e.Usable },
			do:   inSequence((*Row).setCreated, (*Row).setUp),
		},
		{From: []Phase{Intended}, On: Made, To: Creating, Doc: "its id, place and price are stored before anything waits for it", do: (*Row).setCreated},
		{
			From: []Phase{Failed, Deleting}, On: Made, If: "it was not known to exist", To: Same,
			Doc:  "a late creation: the VM to delete and its cost are stored",
			when: func(r *Row, _ Event) bool { return r.ID == "" && r.CreatedAt.IsZero() },
			do:   (*Row).setCreated,
		},
		{From: []Phase{Creating}, On: Runs, To: Booting, Doc: "its first contact begins"},
		{
			From: []Phase{Booting}, On: Pinned, To: Same,
			Doc: "the new host key is accepted in addition to the old one, before the VM uses it",
			do:  func(r *Row, e Event) { r.Pins = slices.Clone(e.Pins) },
		},
		{
			From: []Phase{Booting}, On: Up, If: "it restores work", To: Waking,
			Doc:  "only the new host key is accepted from now on",
			when: wakes, do: (*Row).setUp,
		},
		{From: []Phase{Booting}, On: Up, To: Ready, Doc: "only the new host key is accepted from now on", do: (*Row).setUp},
	}
}

// usableRows returns the rows of usable VMs.
func usableRows() []TableRow {
	return []TableRow{
		{
			From: []Phase{Waking, Ready, Parked, Sleeping}, On: Work, If: "it has a task", To: Busy,
			Doc:  "in the transaction that gives the run its VM",
			when: func(r *Row, _ Event) bool { return !r.Standby },
		},
		{From: []Phase{Waking, Ready, Busy}, On: Rest, To: Parked, Doc: "in the transaction that ends the run"},
		{From: []Phase{Sleeping}, On: Rest, To: Parked, Doc: "saving its work failed; this is retried"},
		{From: []Phase{Ready, Parked}, On: Sleep, To: Sleeping, Doc: "it is shut down, and an image of its disk is created"},
		{
			From: []Phase{Sleeping}, On: Imaged, To: Asleep,
			Doc: "the image is available; the VM is deleted next",
			do:  func(r *Row, e Event) { r.Snapshot = e.Snapshot; r.setReason(e) },
		},
		{
			From: []Phase{Waking, Ready, Busy, Parked}, On: Keep, To: Parked,
			Doc: "standby: a rebuild assigns it to the next task of the repository, or it is deleted at the end of its hour",
			do:  func(r *Row, e Event) { r.Standby, r.Task, r.EndReason = true, state.TaskKey{}, e.EndReason },
		},
		{
			From: []Phase{Parked}, On: Inherits, If: "it is a standby VM", To: Deleting,
			Doc:  "in the transaction of its successor's intent; a leftover under the old name is deleted later",
			when: func(r *Row, _ Event) bool { return r.Standby },
			do:   func(r *Row, e Event) { r.Successor = e.Successor; r.setReason(e); r.EndedAt = e.Now },
		},
	}
}

// endingRows returns the rows that end a VM.
func endingRows() []TableRow {
	live := slices.DeleteFunc(Phases(), Phase.Over)
	return []TableRow{
		{From: live, On: Fail, To: Failed, Doc: "the row keeps the reason", do: (*Row).setReason},
		{From: append(slices.Clone(live), Failed, Asleep), On: End, To: Deleting, Doc: "stored before the provider is asked to delete it", do: (*Row).setReason},
		{
			From: []Phase{Asleep}, On: Deleted, If: "it was there", To: Same,
			Doc:  "its bill is closed; the image stays",
			when: func(r *Row, _ Event) bool { return r.EndedAt.IsZero() },
			do:   (*Row).setDeleted,
		},
		{From: []Phase{Deleting}, On: Deleted, To: Gone, Doc: "its bill is closed", do: (*Row).setDeleted},
	}
}

// Next returns the row after an event, and whether the event changed it. It is pure.
func Next(row Row, e Event) (Row, bool) {
	for i := range table {
		line := &table[i]
		if line.On != e.Kind || !slices.Contains(line.From, row.Phase) || line.when != nil && !line.when(&row, e) {
			continue
		}
		if line.do != nil {
			line.do(&row, e)
		}
		if line.To != Same && line.To != row.Phase {
			row.Phase, row.Since = line.To, e.Now
		}
		row.Version++
		return row, true
	}
	return row, false
}

func inSequence(a, b func(*Row, Event)) func(*Row, Event) {
	return func(r *Row, e Event) { a(r, e); b(r, e) }
}

// setCreated stores the provider's data. Fields without data keep the values of the intent.
func (r *Row) setCreated(e Event) {
	r.ID, r.Kind, r.CreatedAt = e.ID, e.Type, e.CreatedAt
	if e.Location != "" {
		r.Location = e.Location
	}
	if e.Paid > 0 {
		r.MicroHour, r.Currency, r.Paid = e.MicroHour, e.Currency, e.Paid
	}
}

func (r *Row) setUp(e Event) {
	r.UpAt = e.Now
	if len(e.Pins) > 0 {
		r.Pins = slices.Clone(e.Pins)
	}
}

// setReason stores the first reason: that of a failure rather than that of the following deletion.
func (r *Row) setReason(e Event) {
	if r.EndReason == "" || r.Phase == Asleep {
		r.EndReason, r.Detail = e.EndReason, e.Detail
	}
}

func (r *Row) setDeleted(e Event) {
	if r.EndedAt.IsZero() {
		r.EndedAt = e.Now
	}
}
