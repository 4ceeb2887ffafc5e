package fleet

import (
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// agedFor is how long a VM beyond its maximum age is kept while it has a task's unsaved work. Together with the
// reaper's grace period it is less than the day after which the VM powers itself off.
const agedFor = 22 * time.Hour

// aged reports whether a VM has reached its maximum age. The image of a suspended one is kept as long as its task needs
// it.
func aged(row vm.Row, now time.Time) bool {
	return row.Phase != vm.Asleep && !row.NotAfter.IsZero() && !now.Before(row.NotAfter)
}

// delayed reports whether a VM beyond its maximum age is kept for a while because it has its task's unsaved work.
func (r *reaper) delayed(row vm.Row, task *state.Task, now time.Time) bool {
	return aged(row, now) && now.Before(row.NotAfter.Add(agedFor)) && row.Phase.Usable() && r.needed(row, task, now)
}

// delays returns the alarms about VMs whose deletion is delayed.
func (r *reaper) delays(s survey) (out []Alarm) {
	for _, row := range s.rows {
		if r.delayed(row, s.tasks[row.Task], s.at) {
			out = append(out, Alarm{
				Kind: ReapRow, ID: row.Name, Name: row.Name, Since: s.at,
				Why: "it reached its maximum age, but has its task's unsaved work; it is deleted at " + row.NotAfter.Add(agedFor).UTC().Format(time.RFC3339),
			})
		}
	}
	return out
}

// owns reports whether a row has the VM or is about to delete it. A row whose VM is gone, or suspended as an image,
// owns none.
func owns(row vm.Row, server VM) bool {
	over := row.Phase == vm.Gone || row.Phase == vm.Asleep && !row.EndedAt.IsZero()
	return !over && !isAnother(row, server.ID)
}
