package fleet

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// agedFor is how long a VM that has had its time is kept while its task has work on it that is not put away. With the
// reaper's grace it is less than the day after which the VM powers itself off.
const agedFor = 22 * time.Hour

// aged reports whether a VM has had its time. The image of one that sleeps stays as long as its task wants it.
func aged(row state.VMRow, now time.Time) bool {
	return row.Phase != state.VMAsleep && !row.NotAfter.IsZero() && !now.Before(row.NotAfter)
}

// delayed reports whether a VM that has had its time is kept for a while: its task has it, with work on it.
func (f *Fleet) delayed(row state.VMRow, task *state.Task, now time.Time) bool {
	return aged(row, now) && now.Before(row.NotAfter.Add(agedFor)) && row.Phase.Usable() && f.needed(row, task, now)
}

// delays are the alarms about VMs whose deletion is delayed.
func (f *Fleet) delays(s survey) (out []Alarm) {
	for _, row := range s.rows {
		if f.delayed(row, s.tasks[row.Task], s.at) {
			out = append(out, Alarm{
				Kind: ReapRow, ID: row.Name, Name: row.Name, Since: s.at,
				Why: "it has had its time, and its task's work on it is not put away; it is deleted at " + row.NotAfter.Add(agedFor).UTC().Format(time.RFC3339),
			})
		}
	}
	return out
}

// owns reports whether a VM is the one that a row has, or is about to delete. No row owns a VM that is gone according to
// its row, or whose disk is an image.
func owns(row state.VMRow, vm VM) bool {
	over := row.Phase == state.VMGone || row.Phase == state.VMAsleep && !row.EndedAt.IsZero()
	return !over && !another(row, vm.ID)
}
