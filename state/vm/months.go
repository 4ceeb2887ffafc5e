package vm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
)

// updateBills updates the roster. A row that has ended is removed, and its bill is closed.
func (s *Rows) updateBills(tx kv.Tx, o *roster, old, row *Row, now time.Time) error {
	if row.Task != old.Task && !old.Task.IsZero() { // it continues without its task, which has paid so far
		if bill := old.Bill(now); bill != (Bill{}) {
			if err := s.addBill(tx, taskKey(old.Task), bill); err != nil {
				return err
			}
		}
	}
	if row.EndedAt.IsZero() {
		o.put(row)
		return nil
	}
	if !old.EndedAt.IsZero() {
		return nil
	}
	o.Open = slices.DeleteFunc(o.Open, func(v rosterVM) bool { return v.Name == row.Name })
	bill := row.Bill(row.EndedAt)
	if bill == (Bill{}) {
		return nil
	}
	if !row.Task.IsZero() {
		if err := s.addBill(tx, taskKey(row.Task), bill); err != nil {
			return err
		}
	}
	first := row.CreatedAt
	if first.IsZero() {
		first = row.Intended
	}
	return s.bookMonths(tx, row, first, row.EndedAt)
}

// month is the bill of a month and of its days.
type month struct {
	Bill
	Days map[int]Bill `json:"days,omitempty"`
}

// maxBilledMonths limits the months that one VM is billed in; no VM exists that long.
const maxBilledMonths = 40

// billed is a VM or an image with a bill.
type billed interface {
	billIn(from, to, now time.Time) Bill
}

// bookMonths records the cost of b, which existed from first to ended.
func (s *Rows) bookMonths(tx kv.Tx, b billed, first, ended time.Time) error {
	from, to := monthOf(first)
	for range maxBilledMonths {
		if from.After(ended) {
			return nil
		}
		if err := s.bookMonth(tx, b, from, to, ended); err != nil {
			return err
		}
		from, to = monthOf(to)
	}
	return nil
}

func (s *Rows) bookMonth(tx kv.Tx, b billed, from, to, ended time.Time) error {
	bill := b.billIn(from, to, ended)
	if bill == (Bill{}) {
		return nil
	}
	m, err := s.getMonth(tx, from)
	if err != nil {
		return err
	}
	m.add(bill)
	for day := from; day.Before(to); day = day.AddDate(0, 0, 1) {
		if some := b.billIn(day, day.AddDate(0, 0, 1), ended); some != (Bill{}) {
			sum := m.Days[day.Day()]
			sum.add(some)
			if m.Days == nil {
				m.Days = map[int]Bill{}
			}
			m.Days[day.Day()] = sum
		}
	}
	return s.codec.PutJSON(tx, monthKey(from), m)
}

// monthOf returns the beginning and the end of a time's month, dayOf those of its day, in UTC.
func monthOf(at time.Time) (from, to time.Time) {
	at = at.UTC()
	from = time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(0, 1, 0)
}

func dayOf(at time.Time) (from, to time.Time) {
	at = at.UTC()
	from = time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(0, 0, 1)
}

// bills returns the sums of the closed and the open bills of a time's day and month.
func (s *Rows) bills(r kv.Reader, o *roster, now time.Time) (day, month Bill, err error) {
	monthFrom, monthTo := monthOf(now)
	dayFrom, dayTo := dayOf(now)
	m, err := s.getMonth(r, monthFrom)
	if err != nil {
		return Bill{}, Bill{}, err
	}
	day, month = m.Days[now.UTC().Day()], m.Bill
	for _, v := range o.Open {
		day.add(v.row().billIn(dayFrom, dayTo, now))
		month.add(v.row().billIn(monthFrom, monthTo, now))
	}
	images, err := s.getImages(r)
	if err != nil {
		return Bill{}, Bill{}, err
	}
	for _, i := range images.Open {
		day.add(i.billIn(dayFrom, dayTo, now))
		month.add(i.billIn(monthFrom, monthTo, now))
	}
	return day, month, nil
}

func (s *Rows) taskBill(r kv.Reader, o *roster, task state.TaskKey, now time.Time) (Bill, error) {
	bill, err := s.getBill(r, taskKey(task))
	if err != nil {
		return Bill{}, err
	}
	for _, v := range o.Open {
		if v.Task == task {
			bill.add(v.row().Bill(now))
		}
	}
	return bill, nil
}

// Spent returns the cost of VMs and images on the day and in the month of a time, including the reservations for VMs
// that are being created.
func (s *Rows) Spent(ctx context.Context, at time.Time) (day, month Bill, err error) {
	err = s.viewRoster(ctx, func(r kv.Reader, o *roster) (err error) {
		day, month, err = s.bills(r, o, at)
		return err
	})
	if err != nil {
		return Bill{}, Bill{}, fmt.Errorf("read the cost of VMs: %w", err)
	}
	return day, month, nil
}

func (s *Rows) viewRoster(ctx context.Context, fn func(kv.Reader, *roster) error) error {
	return s.db.View(ctx, func(r kv.Reader) error {
		o, err := s.getRoster(r)
		if err != nil {
			return err
		}
		return fn(r, o)
	})
}

func (s *Rows) getMonth(r kv.Reader, at time.Time) (m month, err error) {
	err = ignoreMissing(s.codec.GetJSON(r, monthKey(at), &m))
	return m, err
}

func (s *Rows) getBill(r kv.Reader, key string) (b Bill, err error) {
	err = ignoreMissing(s.codec.GetJSON(r, key, &b))
	return b, err
}

func (s *Rows) addBill(tx kv.Tx, key string, more Bill) error {
	b, err := s.getBill(tx, key)
	if err != nil {
		return err
	}
	b.add(more)
	return s.codec.PutJSON(tx, key, b)
}

func ignoreMissing(err error) error {
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	return err
}
