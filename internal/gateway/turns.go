package gateway

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/state"
)

// outOfTurns says, in words that adapters know, that the run has had all of its turns; empty while it has not. The
// run then remembers what it was refused for: its program may make anything of the refusal.
func (c *call) outOfTurns(ctx context.Context) (string, error) {
	r := c.task.Run
	if !c.g.turns.usedUp(r.ID, r.Answers, r.MaxTurns) {
		return "", nil
	}
	words := fmt.Sprintf("the run's turns are used up (%d)", r.MaxTurns)
	if r.Held != nil && r.Held.Kind == state.WaitTurns {
		return words, nil // it knows
	}
	return words, c.g.cfg.Ledger.Spend(ctx, c.task.Key, r.ID, "", state.Money{}, r.TurnsUsedUp())
}
