package runner

import (
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// maxSample is the longest pause between two looks at a run's signs of life.
const maxSample = 10 * time.Second

// watch waits for the command's end, or brings it about: when somebody asked for it, when the time
// is up, or when there was no sign of life for too long. It returns why the command ended.
func (s *supervisor) watch(process process, part runPart) runlog.Cause {
	ticker := time.NewTicker(pollPause)
	defer ticker.Stop()
	start := s.now()
	life := s.newLifeSigns(process, part.stall)
	for {
		select {
		case <-process.Done():
			return runlog.CauseExited
		case <-s.log.failed:
			s.end(process, "the log cannot be written")
			return runlog.CauseLost
		case <-ticker.C:
		}
		switch {
		case exists(filepath.Join(s.dir, stopFile)):
			s.end(process, "somebody asked for it")
			return runlog.CauseStopped
		case s.now().Sub(start) >= part.duration:
			s.end(process, "its time of "+part.duration.String()+" is up")
			return runlog.CauseDuration
		case life.stalled():
			s.end(process, "no output, no open request and no CPU use for "+part.stall.String())
			return runlog.CauseStalled
		}
	}
}

// end interrupts the command, gives it a moment to say its last word, and kills what is left.
func (s *supervisor) end(process process, why string) {
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

// lifeSigns decides when a run has given no sign of life for too long.
type lifeSigns struct {
	s       *supervisor
	process process
	stall   time.Duration
	sample  time.Duration

	next    time.Time     // of the next look
	cpuAt   time.Time     // of the last CPU reading
	cpu     time.Duration // the last CPU reading
	lastAny time.Time     // the last sign other than output
}

func (s *supervisor) newLifeSigns(process process, stall time.Duration) *lifeSigns {
	now := s.now()
	l := &lifeSigns{
		s: s, process: process, stall: stall, sample: min(maxSample, stall/4),
		next: now, cpuAt: now, lastAny: now,
	}
	return l
}

// stalled looks at most once per sample, so it may be called often.
func (l *lifeSigns) stalled() bool {
	now := l.s.now()
	if l.stall < 0 || now.Before(l.next) {
		return false
	}
	l.next = now.Add(l.sample)
	if busy, asks := l.usesCPU(now), l.s.openRequests() > 0; busy || asks {
		l.lastAny = now
	}
	return l.quiet(now)
}

func (l *lifeSigns) quiet(now time.Time) bool {
	return now.Sub(l.lastAny) >= l.stall && now.Sub(l.s.log.lastOutput()) >= l.stall
}

// usesCPU compares with the last reading. Where the system does not tell, a run counts as busy, and
// only its duration bounds it. A shrunken sum means that processes came and went.
func (l *lifeSigns) usesCPU(now time.Time) bool {
	used, known := l.process.CPU()
	if !known {
		return true
	}
	delta, elapsed := used-l.cpu, now.Sub(l.cpuAt)
	l.cpu, l.cpuAt = used, now
	return delta < 0 || float64(delta) > l.s.spec.IdleCPU*float64(elapsed)
}
