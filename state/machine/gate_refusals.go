package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// storeGateRefusals stores the push gate's refusals for the summary.
func storeGateRefusals(c *change) {
	n := min(len(of[event.Collected](c).Refusals), maxGateRules)
	g := state.GateRefusal{At: c.e.Now, Run: c.e.Run, Refusals: slices.Clone(of[event.Collected](c).Refusals[:n]), More: len(of[event.Collected](c).Refusals) - n}
	for i := range g.Refusals {
		r := &g.Refusals[i]
		r.Path, r.Detail, r.Remedy = state.Truncate(r.Path), state.Truncate(r.Detail), "" // the comment has the full text
	}
	if c.t.Work != nil {
		g.Run = c.t.Work.Run
	}
	c.t.GateRefusals = append(c.t.GateRefusals, g)
	c.t.GateRefusals = c.t.GateRefusals[max(0, len(c.t.GateRefusals)-maxGateRefusals):]
}

const (
	maxGateRefusals = 10 // refused changesets, the newest
	maxGateRules    = 5  // broken rules of each
)
