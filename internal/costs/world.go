package costs

import (
	"container/heap"
	"fmt"
	"time"
)

// cloud provides and bills VMs and images. Only Sleep moves its clock.
type cloud interface {
	// Sleep advances the clock to a time.
	Sleep(until time.Time)
	Create(name, image string) error
	Delete(name string) error
	// Image creates an image of a VM and returns when it is available.
	Image(name string) (image string, err error)
	DeleteImage(image string) error
	Bill() (Bill, error)
}

// world simulates one policy on a trace: it holds the due events in order.
type world struct {
	cloud   cloud
	policy  Policy
	setting Setting

	now   time.Time
	due   agenda
	seq   int
	made  int
	live  int
	most  int
	waits []time.Duration

	taskHours int64
}

// at schedules an event.
func (w *world) at(t time.Time, do func() error) {
	w.seq++
	heap.Push(&w.due, entry{at: t, seq: w.seq, do: do})
}

// run processes all events, including those that they schedule.
func (w *world) run() error {
	for len(w.due) > 0 {
		e := heap.Pop(&w.due).(entry)
		w.now = e.at
		w.cloud.Sleep(e.at)
		if err := e.do(); err != nil {
			return err
		}
	}
	return nil
}

// create makes a VM now.
func (w *world) create(name, image string) error {
	if err := w.cloud.Create(name, image); err != nil {
		return fmt.Errorf("create VM %s: %w", name, err)
	}
	w.made++
	w.live++
	w.most = max(w.most, w.live)
	return nil
}

// remove deletes a VM now.
func (w *world) remove(name string) error {
	if err := w.cloud.Delete(name); err != nil {
		return fmt.Errorf("delete VM %s: %w", name, err)
	}
	w.live--
	return nil
}

// entry is a scheduled event; seq keeps the order of events at the same time.
type entry struct {
	at  time.Time
	seq int
	do  func() error
}

// agenda is a heap of entries.
type agenda []entry

var _ heap.Interface = (*agenda)(nil)

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at.Equal(a[j].at) {
		return a[i].seq < a[j].seq
	}
	return a[i].at.Before(a[j].at)
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements container/heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(entry)) }

// Pop implements container/heap.Interface.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
