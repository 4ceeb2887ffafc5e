package taskvm

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestRefusal: a limit is returned as such; any other refusal makes the task wait, with advice.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err   error
		limit string
		waits string // part of the wait's detail
	}{
		"the task's hours":  {err: noVM(&vm.LimitError{Limit: vm.LimitVMHours, Reason: "its 6 hours are used"}), limit: vm.LimitVMHours},
		"the day's money":   {err: noVM(&vm.LimitError{Limit: vm.LimitVMsDay, Reason: "today's money is used"}), limit: vm.LimitVMsDay},
		"VMs in an hour":    {err: noVM(&vm.LimitError{Limit: vm.LimitVMCreates, Reason: "10 were made"}), limit: vm.LimitVMCreates},
		"the account":       {err: noVM(fleet.ErrQuota), waits: "request a higher limit"},
		"no capacity":       {err: noVM(errors.New("resource_unavailable")), waits: "More candidates"},
		"a refused token":   {err: fleet.ErrUnauthorized, waits: "`hetzner.token`"},
		"a wrong parameter": {err: fleet.ErrInvalid, waits: "correct `hetzner`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := New(Config{Provider: "hetzner", Store: &office{}}).refusal(t.Context(), &state.Task{}, fleet.AcquireSpec{}, 1, test.err)
			var limit *vm.LimitError
			if errors.As(err, &limit) != (test.limit != "") || limit != nil && limit.Limit != test.limit {
				t.Errorf("the limit is %+v in %v", limit, err)
			}
			if errors.Is(err, workspace.ErrNoVM) != (test.waits != "") || !strings.Contains(err.Error(), test.waits) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestAllVMsInUse: the task waits in the queue, at the place that follows from those ahead, and reads who has the VMs; of
// other repositories it learns the number only. A holder that waits does not look as if somebody worked for it.
func TestAllVMsInUse(t *testing.T) {
	t.Parallel()
	o := &office{tasks: []state.TaskOverview{
		{Key: key(1), Phase: state.PhaseImplementing, HasVM: true},
		{Key: key(2), Phase: state.PhaseImplementing, HasVM: true, Waiting: state.WaitLimit},
		{Key: key(3), Phase: state.PhasePROpen, HasVM: true},
		{Key: key(4), Phase: state.PhasePROpen},
		{Key: state.TaskKey{Repo: 8, Issue: 1}, Phase: state.PhaseFailed, HasVM: true},
	}}
	const by = "by #1 (implementing), #2 (waiting for a limit or an outage to end), #3 (pull request open), 1 task of other repositories"
	for want, cause := range map[string]error{
		"4 of 4 VMs are in use, " + by: &vm.LimitError{Limit: vm.LimitVMs, Reason: "4 of 4 VMs are in use"},
		"the provider's limit for this account is reached (VMs are in use " + by +
			"). The operator can request a higher limit, or lower `limits.vms` below it": fleet.ErrQuota,
	} {
		err := New(Config{Store: o}).refusal(t.Context(), &state.Task{Key: key(9)}, fleet.AcquireSpec{Behind: 2}, 3, noVM(cause))
		var queued *workspace.QueuedError
		if !errors.As(err, &queued) || queued.Place != 3 || queued.Reason != want || !errors.Is(err, workspace.ErrNoVM) {
			t.Errorf("got %#v, want %q", err, want)
		}
	}
}

// noVM is how the fleet says that there is no VM now.
func noVM(cause error) error {
	return fmt.Errorf("acquire: %w", &fleet.NoCapacityError{Reason: "it is so", Cause: cause})
}
