package fleet

import (
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// agedGracePeriod is how long a VM beyond its maximum age is kept while it has a task's unsaved work. Together with the
// reaper's grace period it is less than the day after which the VM powers itself off.
const agedGracePeriod = 22 * time.Hour

// isAged reports whether a VM has reached its maximum age. The image of a suspended one is kept as long as its task
// needs it.
func isAged(row vm.Row, now time.Time) bool {
	return row.Phase != vm.Asleep && !row.NotAfter.IsZero() && !now.Before(row.NotAfter)
}

// isDelayed reports whether a VM beyond its maximum age is kept for a while because it has its task's unsaved work.
func (r *reaper) isDelayed(row vm.Row, task *state.Task, now time.Time) bool {
	return isAged(row, now) && now.Before(row.NotAfter.Add(agedGracePeriod)) && row.Phase.Usable() && r.isNeededByTask(row, task, now)
}

// delayAlarms returns the alarms about VMs whose deletion is delayed.
func (r *reaper) delayAlarms(s survey) (out []Alarm) {
	for _, row := range s.rows {
		if r.isDelayed(row, s.tasks[row.Task], s.at) {
			out = append(out, Alarm{
				Kind: ReapRow, ID: row.Name, Name: row.Name, Since: s.at,
				Explanation: "it reached its maximum age, but has its task's unsaved work; it is deleted at " + row.NotAfter.Add(agedGracePeriod).UTC().Format(time.RFC3339),
			})
		}
	}
	return out
}

// ownsVM reports whether a row has the VM or is about to delete it. A row whose VM is gone, or suspended as an image,
// owns none.
func ownsVM(row vm.Row, server VM) bool {
	over := row.Phase == vm.Gone || row.Phase == vm.Asleep && !row.EndedAt.IsZero()
	return !over && !isDifferentVM(row, server.ID)
}
