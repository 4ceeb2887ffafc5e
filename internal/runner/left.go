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

// The runner begins anew to end what another user has left as often and as long as this. That user can kill or hold whom the
// runner sends for it, so from the third try on everything of that user is killed at one stroke.
const (
	endTries = 20
	endFor   = 45 * time.Second
	endPause = 100 * time.Millisecond
)

// noteBeginning writes down when the first run of this boot began: before that moment nothing is of an agent's.
func noteBeginning(root Root) error {
	boot, ticks := proc.Born()
	if known, _ := begun(root); known == boot {
		return nil
	}
	return durable.WriteFile(filepath.Join(string(root), begunFile), fmt.Appendf(nil, "%s %d", boot, ticks), 0o600)
}

// begun is what was written down, empty if nothing was.
func begun(root Root) (boot string, since int64) {
	if data, err := os.ReadFile(filepath.Join(string(root), begunFile)); err == nil {
		_, _ = fmt.Sscan(string(data), &boot, &since)
	}
	return boot, since
}

// end kills what another user has left: every process of that user that began after the first run did, whatever it says of
// itself and whoever began it, but for logins. So it ends, too, what an agent's own files have begun when errand logged in
// between two runs. Where that user is the runner's own, as in tests, only what carries the run's mark is the run's.
func (u *otherUser) end() int {
	uid, other := ownerOf(u.home)
	if !other {
		return proc.KillMarked(u.root().RunDir(u.id))
	}
	boot, since := begun(u.keeper)
	if now, _ := proc.Born(); now != boot {
		return 0 // the machine has begun anew since
	}
	deadline := time.Now().Add(endFor)
	pause := time.NewTicker(endPause)
	defer pause.Stop()
	for try := 0; try < endTries && time.Now().Before(deadline); try++ {
		if len(proc.Left(uid, since)) == 0 {
			return 0
		}
		// Whether it worked is seen, not said.
		if _, err := u.ask(liveOrder{Verb: verbEnd, Since: since, Everything: try >= 2}); err != nil {
			<-pause.C // there may be no room for one more process at this moment
		}
	}
	return len(proc.Left(uid, since))
}

func (u *otherUser) clear() int {
	if _, other := ownerOf(u.home); !other {
		return 0
	}
	return u.end()
}

// ownerOf says whose a folder is, and whether that is somebody else than the runner and root.
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
