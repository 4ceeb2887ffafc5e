package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// withinCaps refuses to start an agent with money that the task does not have, and says what it has to
// wait for if all tasks together have none.
func (s *Steps) withinCaps(ctx context.Context, t *state.Task) (*state.Waiting, error) {
	if t.Run.Kind == state.RunCheck {
		return nil, nil
	}
	m := t.Money
	if s.Subscribed[s.provider(t)] {
		m.CapMicroUSD = 0
	}
	if m.AtCap() {
		return nil, &Problem{Reason: m.CapReached(), Hint: m.Hint(), Class: state.ClassBudget, Permanent: true}
	}
	if s.Held == nil {
		return nil, nil
	}
	w, err := s.Held(ctx, s.provider(t))
	if w != nil && w.Kind == state.WaitLimit && t.Insist {
		return nil, nil // somebody may have bought more
	}
	return w, err
}

// maxUSD is what an agent may believe that its run costs, 0 for no bound: it knows nothing of a subscription.
func (s *Steps) maxUSD(t *state.Task, adapter string) float64 {
	if s.Subscribed[s.Providers[adapter]] {
		return 0
	}
	return usd(max(t.Money.CapMicroUSD-t.Money.MicroUSD, 0))
}

// usd is an amount of money in dollars.
func usd(micro int64) float64 { return float64(micro) / 1e6 }

// quiet ends what earlier runs may have left at work on the VM: one that was stopped a moment ago, also for
// its turns, or one whose start nobody came to know of. Two agents in one checkout would spoil each other's work.
func (s *Steps) quiet(ctx context.Context, t *state.Task, vm string) error {
	for _, r := range slices.Backward(t.Runs) {
		if r.Status != "interrupted" && (r.Status != state.StatusMaxTurns || r.Told) {
			return nil // it ended by itself
		}
		if r.VM != "" && r.VM != vm {
			continue
		}
		if err := s.Runner.Stop(ctx, vm, r.ID, "another run begins"); err != nil {
			return fmt.Errorf("end run %s before the next begins: %w", r.ID, err)
		}
	}
	return nil
}

// fresh is how long an answer about where the base is serves the job that it was given to, or, for
// the first run, that of the job before: no longer than a push takes to be noticed.
const fresh = 30 * time.Second

// baseHead is the base's newest commit.
func (s *Steps) baseHead(ctx context.Context, w *unit) (string, error) {
	b := w.task.Branch
	young := func(at time.Time) bool {
		age := s.Now().Sub(at)
		return age >= 0 && age < fresh
	}
	v := w.job.Vetted
	switch {
	case w.base != "" && young(w.baseAt):
		return w.base, nil
	case v != nil && v.Base != "" && young(v.At):
		return v.Base, nil // it was read for the comment or the approval that led to this run
	case b.BaseSHA != "" && young(b.BaseAt):
		return b.BaseSHA, nil // the job start has just read it
	}
	return s.GitHub.Head(ctx, w.repo, b.Base)
}
