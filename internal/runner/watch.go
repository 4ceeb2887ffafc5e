package runner

import (
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// maxSample is the longest interval between two checks of a run's activity.
const maxSample = 10 * time.Second

// watch waits for the command's end. It ends the command if a stop was requested, the time limit is exceeded, or there
// was no activity for too long. It returns why the command ended.
func (s *supervisor) watch(process process, part runPart) runlog.Cause {
	ticker := time.NewTicker(pollPause)
	defer ticker.Stop()
	start := s.now()
	activity := s.newActivityMonitor(process, part.stall)
	for {
		select {
		case <-process.Done():
			return runlog.CauseExited
		case <-s.log.failed:
			s.endProcess(process, "the log cannot be written")
			return runlog.CauseLost
		case <-ticker.C:
		}
		switch {
		case exists(filepath.Join(s.dir, stopFile)):
			s.endProcess(process, "a stop was requested")
			return runlog.CauseStopped
		case s.now().Sub(start) >= part.duration:
			s.endProcess(process, "it exceeded its time limit of "+part.duration.String())
			return runlog.CauseDuration
		case activity.stalled():
			s.endProcess(process, "no output, no open request and no CPU use for "+part.stall.String())
			return runlog.CauseStalled
		}
	}
}

// endProcess interrupts the command, waits for the grace period, and kills the remaining processes.
func (s *supervisor) endProcess(process process, why string) {
	s.log.note("The run is being ended: %s.", why)
	process.Interrupt()
	grace := time.NewTimer(s.spec.Grace)
	defer grace.Stop()
	select {
	case <-process.Done():
	case <-grace.C:
		s.log.note("It did not end after SIGINT and is killed.")
		process.Kill()
	}
}

// activityMonitor decides when a run has been inactive for too long.
type activityMonitor struct {
	s       *supervisor
	process process
	stall   time.Duration
	sample  time.Duration

	next    time.Time     // time of the next check
	cpuAt   time.Time     // time of the last CPU reading
	cpu     time.Duration // the last CPU reading
	lastAny time.Time     // time of the last activity other than output
}

func (s *supervisor) newActivityMonitor(process process, stall time.Duration) *activityMonitor {
	now := s.now()
	l := &activityMonitor{
		s: s, process: process, stall: stall, sample: min(maxSample, stall/4),
		next: now, cpuAt: now, lastAny: now,
	}
	return l
}

// stalled checks at most once per sample interval, so it may be called often.
func (l *activityMonitor) stalled() bool {
	now := l.s.now()
	if l.stall < 0 || now.Before(l.next) {
		return false
	}
	l.next = now.Add(l.sample)
	if busy, waiting := l.usesCPU(now), l.s.openRequests() > 0; busy || waiting {
		l.lastAny = now
	}
	return l.quiet(now)
}

func (l *activityMonitor) quiet(now time.Time) bool {
	return now.Sub(l.lastAny) >= l.stall && now.Sub(l.s.log.lastOutput()) >= l.stall
}

// usesCPU compares the CPU time with the last reading. If the system does not report it, the run counts as busy, and
// only its duration bounds it. A decreased sum means that processes started and ended.
func (l *activityMonitor) usesCPU(now time.Time) bool {
	used, known := l.process.CPU()
	if !known {
		return true
	}
	delta, elapsed := used-l.cpu, now.Sub(l.cpuAt)
	l.cpu, l.cpuAt = used, now
	return delta < 0 || float64(delta) > l.s.spec.IdleCPU*float64(elapsed)
}
