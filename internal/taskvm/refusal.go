package taskvm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// refusal returns what an error of the fleet means for the task: workspace.ErrNoVM with the reason for people, workspace.ErrNoSnapshot, a
// *vm.LimitError, or the error itself.
// place is the task's place in the queue, if it has to wait there.
func (v *VMs) refusal(ctx context.Context, t *state.Task, spec fleet.AcquireSpec, place int, err error) error {
	var limit *vm.LimitError
	var none *fleet.NoCapacityError
	switch {
	case spec.FromImage && errors.Is(err, fleet.ErrNotFound):
		return fmt.Errorf("%w: %w", workspace.ErrNoSnapshot, err)
	case errors.As(err, &limit) && limit.Limit == vm.LimitVMs:
		reason := limit.Reason
		if by := v.holders(ctx, t); by != "" {
			reason += ", by " + by
		}
		return &workspace.QueuedError{Place: place, Reason: reason}
	case errors.As(err, &limit):
		return limit
	case errors.Is(err, fleet.ErrQuota):
		return v.accountRefusal(ctx, t, place)
	case errors.As(err, &none):
		return fmt.Errorf("%w: %s. %s", workspace.ErrNoVM, none.Reason, none.Hint())
	case errors.Is(err, fleet.ErrUnauthorized), errors.Is(err, fleet.ErrInvalid):
		v.cfg.Log.Error().Err(err).Str("task", t.Key.String()).Msg("failed to get a VM; the operator has to correct the configuration")
		return fmt.Errorf("%w: %s", workspace.ErrNoVM, configurationError(v.cfg.Provider, err))
	}
	return err
}

// accountRefusal lets the task wait in the queue because the provider's limit for the account is reached.
func (v *VMs) accountRefusal(ctx context.Context, t *state.Task, place int) error {
	reason := "the provider's limit for this account is reached"
	if by := v.holders(ctx, t); by != "" {
		reason += " (VMs are in use by " + by + ")"
	}
	return &workspace.QueuedError{Place: place, Reason: reason + ". The operator can request a higher limit, or lower `limits.vms` below it"}
}

// configurationError explains an error that only the operator can fix. The task waits until then.
func configurationError(provider string, err error) string {
	if errors.Is(err, fleet.ErrUnauthorized) {
		return fmt.Sprintf("the provider refuses errand's token; the operator has to correct `%s.token`, and the task then continues automatically", provider)
	}
	return fmt.Sprintf("the provider rejects errand's request; the operator has to correct `%s` in the configuration (errand's log has the reason)", provider)
}

// maxHolders is the largest number of tasks that holders names.
const maxHolders = 3

// holders describes the tasks that have VMs. Tasks of other repositories are counted but not named, because readers may
// have no access to them.
func (v *VMs) holders(ctx context.Context, waiting *state.Task) string {
	tasks, err := v.cfg.Store.Overviews(ctx)
	if err != nil {
		v.cfg.Log.Warn().Err(err).Msg("failed to find out which tasks have the VMs")
		return "" // the reason alone is enough
	}
	var named []string
	elsewhere := 0
	for _, t := range tasks {
		switch {
		case !t.HasVM || t.Key == waiting.Key:
		case t.Key.Repo != waiting.Key.Repo:
			elsewhere++
		case t.Waiting != "" && t.Phase.Working():
			named = append(named, fmt.Sprintf("#%d (waiting for %s)", t.Key.Issue, words.Wait(t.Waiting)))
		default:
			named = append(named, fmt.Sprintf("#%d (%s)", t.Key.Issue, words.Phase(t.Phase)))
		}
	}
	if more := len(named) - maxHolders; more > 0 {
		named = append(named[:maxHolders], fmt.Sprintf("%d more in this repository", more))
	}
	if elsewhere > 0 {
		named = append(named, words.Many(elsewhere, "task")+" of other repositories")
	}
	return strings.Join(named, ", ")
}
