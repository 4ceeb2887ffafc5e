package gateway

import (
	"testing"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// TestReservationsOfATask: the reservations of a task's calls count in full for the task itself, and for all tasks up
// to the task's own caps, so that hanging calls of one agent do not block the others.
func TestReservationsOfATask(t *testing.T) {
	t.Parallel()
	g := &Gateway{cfg: Config{Prices: modelapi.Prices{"m": {Output: 10}}}}
	of := func(id int64, m state.Money) *call {
		c := &call{g: g, task: &state.Task{Key: state.TaskKey{Repo: id, Issue: 1}, TaskRuns: state.TaskRuns{Run: &state.Run{ID: "r"}}, Money: m}}
		c.estimate = modelapi.Usage{Model: "m", Output: 16_000_000}
		g.inFlight.add(c)
		return c
	}
	greedy := state.Money{CapMicroUSD: 10_000_000, MicroUSD: 4_000_000, CapTokens: 1_000_000, InputTokens: 100_000}
	for range 3 {
		of(1, greedy)
	}
	if b := g.inFlight.earlierThan(of(2, state.Money{})); b.all.MicroUSD != 6_000_000 || b.all.Tokens() != 900_000 || b.task.MicroUSD != 0 || b.count != 3 {
		t.Errorf("earlier calls than one of another task: got %+v", b)
	}
	if b := g.inFlight.earlierThan(of(1, greedy)); b.task.MicroUSD != 480_000_000 || b.task.Tokens() != 48_000_000 {
		t.Errorf("earlier calls than one of the same task: got %+v", b)
	}
	if b := g.inFlight.earlierThan(of(3, state.Money{})); b.all.MicroUSD != 6_000_000+160_000_000 {
		t.Errorf("task without a cap: got reservations %+v", b.all)
	}
}
