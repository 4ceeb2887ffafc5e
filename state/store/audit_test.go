package store

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/machine"
)

var operatorsTask = state.TaskKey{Repo: 7, Issue: 1}

// operated returns a store with machine.Next and a task.
func operated(t *testing.T) *testStore {
	t.Helper()
	s := newTestStore(t)
	s.next = machine.Next
	_, err := s.Apply(t.Context(), event.Event{Task: operatorsTask, By: ada, Permission: state.PermissionWrite, Via: state.TriggerAssigned,
		Payload: event.Triggered{Issue: &state.Issue{Title: "Bug"}}}, Ack{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// raise raises the task's cap, as one request of an operator.
func (s *testStore) raise(ctx context.Context, id string) (Action, error) {
	order := state.Order{Verb: state.VerbBudget, MicroUSD: 1e6}
	return s.Act(ctx, event.OperatorCommand(operatorsTask, id, order, false), Action{ID: id, By: "token", Command: "budget +1"},
		func(applied Applied, a *Action) { a.Result, a.Refused = applied.Answer, !applied.Changed })
}

// A command of an operator counts once, however often it is sent, and is in the audit log if and only if it was applied.
func TestOperatorActionIsAppliedWithItsAuditEntryOnce(t *testing.T) {
	t.Parallel()
	s := operated(t)
	all := func(Action) bool { return true }
	before, err := s.Task(t.Context(), operatorsTask)
	if err != nil {
		t.Fatal(err)
	}
	db := s.Store.db
	lost := errors.New("power cut")
	s.Store.db, s.Store.rows.db = failing{db, lost}, failing{db, lost}
	if _, err := s.raise(t.Context(), "one"); !errors.Is(err, lost) {
		t.Fatalf("got error %v, want the power cut", err)
	}
	s.Store.db, s.Store.rows.db = db, db
	if list, err := s.Audit.List(t.Context(), 10, all); err != nil || len(list) > 0 {
		t.Fatalf("after a power cut: got %v, %v", list, err)
	}
	for range 3 {
		if _, err := s.raise(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
	}
	s.reopen(t)
	s.next = machine.Next
	if again, err := s.raise(t.Context(), "one"); err != nil || again.Result != noteSeen {
		t.Errorf("after a restart: got %+v, %v", again, err)
	}
	after, err := s.Task(t.Context(), operatorsTask)
	if err != nil || after.Money.CapMicroUSD != before.Money.CapMicroUSD+1e6 {
		t.Errorf("got cap %d, %v; want one dollar more than %d", after.Money.CapMicroUSD, err, before.Money.CapMicroUSD)
	}
	list, err := s.Audit.List(t.Context(), 10, all)
	if err != nil || len(list) != 1 || list[0].Task != operatorsTask || list[0].Result != state.ReplyBudgetRaised || list[0].By != "token" {
		t.Errorf("got audit log %+v, %v; want one entry", list, err)
	}
}

// failing fails every update after its closure ran.
type failing struct {
	kv.DB
	err error
}

func (f failing) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return f.DB.Update(ctx, func(tx kv.Tx) error { return errors.Join(fn(tx), f.err) })
}

// The audit log is listed from the newest action to the oldest, and pruned from the oldest.
func TestAuditLogIsOrderedAndPruned(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	for i := range 250 {
		a := Action{ID: "a", At: testStart.Add(time.Duration(i) * time.Hour), Command: "adopt", Subject: "acme/shop#1"}
		if i%2 == 0 {
			a.Subject = "acme/shop#2"
		}
		if err := s.Audit.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	hours := func(list []Action) (h []int) {
		for _, a := range list {
			h = append(h, int(a.At.Sub(testStart)/time.Hour))
		}
		return h
	}
	list, err := s.Audit.List(t.Context(), 3, func(a Action) bool { return a.Subject == "acme/shop#2" })
	if err != nil || !slices.Equal(hours(list), []int{248, 246, 244}) {
		t.Errorf("got the actions of hours %v, %v", hours(list), err)
	}
	if err := s.Audit.Prune(t.Context(), testStart.Add(247*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if list, err = s.Audit.List(t.Context(), 1000, func(Action) bool { return true }); err != nil || !slices.Equal(hours(list), []int{249, 248, 247}) {
		t.Errorf("after pruning: got the actions of hours %v, %v", hours(list), err)
	}
}
