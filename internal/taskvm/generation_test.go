package taskvm

import (
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestGeneration: the next VM of a task has a greater generation than all of its earlier ones, also where numbers were left out.
func TestGeneration(t *testing.T) {
	t.Parallel()
	vms := func(generations ...int) (list []state.VM) {
		for _, gen := range generations {
			list = append(list, state.VM{Gen: gen})
		}
		return list
	}
	for name, test := range map[string]struct {
		now   *state.VM
		vms   []state.VM
		fresh bool
		want  int
	}{
		"the first":                 {want: 1},
		"the third":                 {vms: vms(1, 2), want: 3},
		"after a restoration":       {vms: vms(1, 105), want: 106},
		"it has one":                {now: &state.VM{Gen: 105}, vms: vms(1), want: 105},
		"it wants another":          {now: &state.VM{Gen: 2}, vms: vms(1), fresh: true, want: 3},
		"it wants another, by then": {now: &state.VM{Gen: 105}, vms: vms(1), fresh: true, want: 106},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := &state.Task{TaskVMs: state.TaskVMs{VM: test.now, VMs: test.vms}}
			task.Fresh = test.fresh
			if got := generation(task); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
