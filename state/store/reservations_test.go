package store

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// Recording a call's cost deletes its reservation in the same transaction; a call without reservation is not recorded
// again, and a released one not at all. A reservation survives the process.
func TestACallIsBookedOnce(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = spend
	key := state.TaskKey{Repo: 7, Issue: 1}
	a := Reservation{ID: "a", Task: key, Run: "7-1-1", At: s.time(), Provider: "anthropic", Model: "claude-x", Input: 10, Output: 20}
	b, other := a, a
	b.ID, other.ID, other.Task, other.Run = "b", "c", state.TaskKey{Repo: 7, Issue: 2}, "7-2-1"
	for _, r := range []Reservation{a, b, other} {
		if err := s.Reservations.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	s.reopen(t)
	s.next = spend
	book := func(id string) error {
		_, err := s.Apply(t.Context(), event.Event{Task: key, Payload: event.ModelCalled{Money: state.Money{MicroUSD: 5}}}, Ack{Call: id})
		return err
	}
	want := func(micro int64, rows ...Reservation) {
		t.Helper()
		got, err := s.Reservations.All(t.Context())
		if diff := cmp.Diff(rows, got); diff != "" || err != nil {
			t.Errorf("reservations (-want +got), %v:\n%s", err, diff)
		}
		task, err := s.Task(t.Context(), key)
		if err != nil || task != nil && task.Money.MicroUSD != micro || task == nil && micro != 0 {
			t.Errorf("the task is %+v, %v: want %d", task, err, micro)
		}
		day, _, err := s.Spending.Spent(t.Context(), s.time())
		if err != nil || day.MicroUSD != micro {
			t.Errorf("the day has cost %d, want %d: %v", day.MicroUSD, micro, err)
		}
	}
	want(0, a, b, other)
	if err := book("a"); err != nil {
		t.Fatal(err)
	}
	want(5, b, other)
	if err := book("a"); !errors.Is(err, ErrSpent) {
		t.Errorf("recorded again: got error %v, want ErrSpent", err)
	}
	for range 2 {
		if err := s.Reservations.Release(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	}
	if err := book("b"); !errors.Is(err, ErrSpent) {
		t.Errorf("recorded after its release: got error %v, want ErrSpent", err)
	}
	want(5, other)
	if _, err := s.Apply(t.Context(), event.Event{Task: key, Payload: event.ModelCalled{Money: state.Money{}}}, Ack{Call: "c", Job: "7-1-1"}); err == nil {
		t.Error("one event spent two items")
	}
}

// It is deleted when its cost is recorded all the same.
func TestAReservationOfATaskThatIsGone(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = machine.Next
	key := state.TaskKey{Repo: 7, Issue: 1}
	if err := s.Reservations.Reserve(t.Context(), Reservation{ID: "a", Task: key, Run: "7-1-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), event.Event{Task: key, Run: "7-1-1", Payload: event.ModelCalled{Money: state.Money{MicroUSD: 5}}}, Ack{Call: "a"}); err != nil {
		t.Error(err)
	}
	if rows, err := s.Reservations.All(t.Context()); err != nil || len(rows) > 0 {
		t.Errorf("got remaining reservations %v, error %v", rows, err)
	}
}
