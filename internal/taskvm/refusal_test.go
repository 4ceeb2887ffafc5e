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
		"the account":       {err: noVM(fleet.ErrQuota), waits: "Request a higher limit"},
		"no capacity":       {err: noVM(errors.New("resource_unavailable")), waits: "More candidates"},
		"a refused token":   {err: fleet.ErrUnauthorized, waits: "`hetzner.token`"},
		"a wrong parameter": {err: fleet.ErrInvalid, waits: "correct `hetzner`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := New(Config{Provider: "hetzner"}).refusal(t.Context(), &state.Task{}, fleet.AcquireSpec{}, test.err)
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

// noVM is how the fleet says that there is no VM now.
func noVM(cause error) error {
	return fmt.Errorf("acquire: %w", &fleet.NoCapacityError{Reason: "it is so", Cause: cause})
}
