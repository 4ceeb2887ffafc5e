package vm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// roster has the data that the caps are checked against: every row whose bill is open. It is one value, because an
// update reads single keys only.
type roster struct {
	// Born is the time at which the first VM was intended in this store, or at which the store was restored from a backup.
	Born time.Time  `json:"born,omitzero"`
	Open []rosterVM `json:"open,omitempty"`
	// Intents are the times of the latest intents of VMs that cost something.
	Intents []time.Time `json:"makes,omitempty"`
	// Used is a generation up to which the names of VMs may have been used without a row: see [Rows.Distrust].
	Used int `json:"used_gen,omitempty"`
}

// rosterVM is the part of a row that the caps need.
type rosterVM struct {
	Name      string        `json:"name"`
	Task      state.TaskKey `json:"task,omitzero"`
	Phase     Phase         `json:"phase"`
	Intended  time.Time     `json:"intended"`
	CreatedAt time.Time     `json:"created_at,omitzero"`
	MicroHour int64         `json:"micro_hour,omitempty"`
	Currency  string        `json:"currency,omitempty"`
	Paid      time.Duration `json:"paid,omitempty"`
	Skip      int64         `json:"skip,omitempty"`
}

func (v rosterVM) row() *Row {
	return &Row{
		Name: v.Name, Task: v.Task, Phase: v.Phase, Intended: v.Intended, CreatedAt: v.CreatedAt,
		MicroHour: v.MicroHour, Currency: v.Currency, Paid: v.Paid, Skip: v.Skip,
	}
}

// maxIntents limits the number of stored intents of the last hour.
const maxIntents = 1000

func (o *roster) addIntent(now time.Time) {
	o.Intents = slices.DeleteFunc(o.Intents, func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	o.Intents = append(o.Intents, now)
	if len(o.Intents) > maxIntents {
		o.Intents = o.Intents[len(o.Intents)-maxIntents:]
	}
}

func (o *roster) put(r *Row) {
	if o.Born.IsZero() {
		o.Born = r.Intended
	}
	v := rosterVM{r.Name, r.Task, r.Phase, r.Intended, r.CreatedAt, r.MicroHour, r.Currency, r.Paid, r.Skip}
	for i := range o.Open {
		if o.Open[i].Name == r.Name {
			o.Open[i] = v
			return
		}
	}
	o.Open = append(o.Open, v)
}

// countsAsVM reports whether the VM counts towards `limits.vms`. A VM that costs something counts until the provider
// confirms the deletion, others until they are no longer needed.
func (v rosterVM) countsAsVM() bool {
	return v.Paid > 0 || v.Phase != Failed && v.Phase != Deleting
}

// affectsRoster reports whether a change of a row affects its entry in the roster or closes its bill.
func affectsRoster(old, row *Row) bool {
	return old.Phase.Over() != row.Phase.Over() || !old.EndedAt.Equal(row.EndedAt) ||
		!old.CreatedAt.Equal(row.CreatedAt) || old.MicroHour != row.MicroHour || old.Paid != row.Paid || old.Task != row.Task
}

// checkCaps returns a *LimitError if a cap forbids the VM of row, which is not in the roster yet.
func (s *Rows) checkCaps(r kv.Reader, o *roster, row *Row, caps Caps, now time.Time) error {
	if row.Paid > 0 {
		if err := o.checkIntents(caps.PerHour, now); err != nil && row.Rebuilds == "" {
			return err
		}
		if err := s.checkMoney(r, o, row, caps, now); err != nil {
			return err
		}
	}
	return o.checkNumber(caps) // last: other tasks may be suspended for a VM that only this cap forbids
}

// checkNumber checks the number of VMs.
func (o *roster) checkNumber(caps Caps) error {
	taken := 0
	for _, v := range o.Open {
		if v.countsAsVM() {
			taken++
		}
	}
	if caps.VMs <= 0 || taken+caps.Reserved < caps.VMs {
		return nil
	}
	reason := fmt.Sprintf("%d of %d VMs are in use", taken, caps.VMs)
	if taken < caps.VMs {
		reason += ", and tasks that have waited longer get the next ones"
	}
	return &LimitError{Limit: LimitVMs, Reason: reason}
}

func (o *roster) checkIntents(perHour int, now time.Time) error {
	recent := slices.DeleteFunc(slices.Clone(o.Intents), func(at time.Time) bool { return now.Sub(at) >= time.Hour })
	if perHour <= 0 || len(recent) < perHour {
		return nil
	}
	return &LimitError{
		Limit: LimitVMCreates, Until: recent[len(recent)-perHour].Add(time.Hour),
		Reason: fmt.Sprintf("%d VMs were created in the last hour; the limit is %d", len(recent), perHour),
	}
}

// checkMoney returns a *LimitError if the caps on time and money forbid one more span of row now.
func (s *Rows) checkMoney(r kv.Reader, o *roster, row *Row, caps Caps, now time.Time) error {
	if row.Rebuilds != "" && row.Spans(now) == 0 {
		return nil // its span is already paid
	}
	if caps.PerTask > 0 && !row.Task.IsZero() {
		bill, err := s.taskBill(r, o, row.Task, now)
		if err != nil {
			return err
		}
		if bill.Time+row.Paid > caps.PerTask {
			return &LimitError{Limit: LimitVMHours,
				Reason: fmt.Sprintf("this task has used %s of its %s of VM time", state.DurationText(bill.Time), state.DurationText(caps.PerTask))}
		}
	}
	if caps.MicroDay <= 0 && caps.MicroMonth <= 0 {
		return nil
	}
	day, month, err := s.bills(r, o, now)
	if err != nil {
		return err
	}
	if caps.MicroMonth > 0 && month.Micro+row.MicroHour > caps.MicroMonth {
		_, until := monthOf(now)
		reason := fmt.Sprintf("VMs and images have cost %s this month; the limit is %s", amount(month.Micro, row.Currency), amount(caps.MicroMonth, row.Currency))
		return &LimitError{Limit: LimitVMsMonth, Until: until, Reason: reason}
	}
	if caps.MicroDay > 0 && day.Micro+row.MicroHour > caps.MicroDay {
		_, until := dayOf(now)
		reason := fmt.Sprintf("VMs and images have cost %s today; the limit is %s", amount(day.Micro, row.Currency), amount(caps.MicroDay, row.Currency))
		return &LimitError{Limit: LimitVMsDay, Until: until, Reason: reason}
	}
	return nil
}

// amount formats money for people.
func amount(micro int64, currency string) string {
	if currency == "" {
		currency = "EUR"
	}
	return fmt.Sprintf("%.2f %s", float64(micro)/1e6, currency)
}

// SpanAllowed returns a *LimitError if the caps forbid another span of the VM. It is called before a paid span ends; a
// span that has begun may be used up.
func (s *Rows) SpanAllowed(ctx context.Context, row Row, caps Caps) error {
	if row.Paid <= 0 {
		return nil
	}
	row.Rebuilds = ""
	now := s.now()
	return s.viewRoster(ctx, func(r kv.Reader, o *roster) error { return s.checkMoney(r, o, &row, caps, now) })
}

// Since returns the time at which the first VM was intended in this store, or zero if there was none. Older VMs may be
// unknown to the store.
func (s *Rows) Since(ctx context.Context) (since time.Time, err error) {
	err = s.viewRoster(ctx, func(_ kv.Reader, o *roster) error {
		since = o.Born
		return nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the first VM: %w", err)
	}
	return since, nil
}

func (s *Rows) getRoster(r kv.Reader) (*roster, error) {
	var o roster
	err := ignoreMissing(s.codec.GetJSON(r, keyRoster, &o))
	return &o, err
}

func (s *Rows) putRoster(tx kv.Tx, o *roster) error { return s.codec.PutJSON(tx, keyRoster, o) }
