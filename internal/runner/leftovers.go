package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// Limits on ending the leftover processes of another user. That user can kill or stop the process that the runner sends
// for this, so from the third try on all processes of that user are killed at once.
const (
	endTries = 20
	endFor   = 45 * time.Second
	endPause = 100 * time.Millisecond
)

// recordFirstRun stores the time at which the first run of this boot began: no older process belongs to an agent.
func recordFirstRun(root Root) error {
	boot, ticks := proc.StartTime()
	if known, _ := firstRun(root); known == boot {
		return nil
	}
	return durable.WriteFile(filepath.Join(string(root), begunFile), fmt.Appendf(nil, "%s %d", boot, ticks), 0o600)
}

// firstRun returns the stored boot id and time, or zero values.
func firstRun(root Root) (boot string, since int64) {
	if data, err := os.ReadFile(filepath.Join(string(root), begunFile)); err == nil {
		_, _ = fmt.Sscan(string(data), &boot, &since)
	}
	return boot, since
}

// endLeftovers kills the leftover processes of another user: every process of that user, except logins, that started
// after the first run, regardless of its parent and its environment. This includes processes that the agent's own files
// started when errand logged in between two runs. If that user is the runner's own, as in tests, only processes with
// the run's mark are killed.
func (u *otherUser) endLeftovers() int {
	uid, other := ownerOf(u.home)
	if !other {
		return proc.KillMarked(u.root().RunDir(u.id))
	}
	boot, since := firstRun(u.keeper)
	if now, _ := proc.StartTime(); now != boot {
		return 0 // the VM has rebooted since
	}
	deadline := time.Now().Add(endFor)
	pause := time.NewTicker(endPause)
	defer pause.Stop()
	for try := 0; try < endTries && time.Now().Before(deadline); try++ {
		// Two scans: one may miss a process whose parent was killed while it was being started, with a smaller ID.
		if len(proc.Leftovers(uid, since)) == 0 && len(proc.Leftovers(uid, since)) == 0 {
			return 0
		}
		// Check the result instead of trusting the answer.
		if _, err := u.execute(liveOrder{Verb: verbEnd, Since: since, Everything: try >= 2}); err != nil {
			<-pause.C // there may be no room for another process at this moment
		}
	}
	return len(proc.Leftovers(uid, since))
}

func (u *otherUser) clearLeftovers() int {
	if _, other := ownerOf(u.home); !other {
		return 0
	}
	return u.endLeftovers()
}

// ownerOf returns the owner of a folder, and whether that is neither the runner's user nor root.
func ownerOf(dir string) (uid int, other bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	uid = int(stat.Uid)
	return uid, uid != 0 && uid != os.Getuid()
}
