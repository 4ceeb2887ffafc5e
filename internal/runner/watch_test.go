//go:build linux

package runner

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// The processor use from which on a command counts as busy: one that is never reached, and one that is always reached.
const (
	neverBusy  = 1e9
	alwaysBusy = -1
)

// patient is a supervisor of an idle command, with a simulated clock.
type patient struct {
	*supervisor
	at   time.Time
	asks int // requests that are open at the tether
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{at: time.Unix(1_700_000_000, 0)}
	now := func() time.Time { return p.at }
	log, err := openLog(filepath.Join(t.TempDir(), "log"), 1<<20, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = log.finish() })
	p.supervisor = &supervisor{log: log, now: now, openRequests: func() int { return p.asks }, spec: Spec{IdleCPU: neverBusy}}
	return p
}

// says logs a line of the command, or part of one.
func (p *patient) says()  { p.log.add(runlog.StreamStdout, "something", 0) }
func (p *patient) warns() { p.log.add(runlog.StreamStderr, "something", 0) }

// idle starts a command that waits until it is killed.
func idle(t *testing.T) *proc.Process {
	t.Helper()
	process, err := proc.Start(proc.Command{Argv: []string{"sleep", "600"}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: t.TempDir()}, proc.Group)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Kill(); process.Wait() })
	return process
}

// TestActivityPreventsAStall plays the seconds of a run and checks when it counts as stalled. The events of a second
// come before its check; there is a check every ten seconds, or every quarter of the limit.
func TestActivityPreventsAStall(t *testing.T) {
	t.Parallel()
	if _, known := idle(t).CPU(); !known {
		t.Skip("this system does not tell how much processor time a command uses: every run counts as busy here")
	}
	const never = 0
	tests := map[string]struct {
		stall  time.Duration // 40 s unless set
		second func(p *patient, n int)
		want   int
	}{
		"nothing at all":           {want: 40},
		"a short time":             {stall: 4 * time.Second, want: 4},
		"a long time":              {stall: 5 * time.Minute, want: 300},
		"not watched":              {stall: -1, want: never},
		"one line":                 {second: at(25, (*patient).says), want: 70},
		"one line of errors":       {second: at(25, (*patient).warns), want: 70},
		"a part of a line":         {second: at(25, func(p *patient) { p.log.alive() }), want: 70},
		"a line at the last check": {second: at(40, (*patient).says), want: 80},
		"endless lines":            {second: func(p *patient, n int) { each(n, 39, p.says) }, want: never},
		"lines that come too late": {second: func(p *patient, n int) { each(n, 51, p.says) }, want: 40},
		"the runner's own notes":   {second: func(p *patient, n int) { p.log.note("note %d", n) }, want: 40},
		"beyond the log's limit": {second: func(p *patient, n int) {
			p.log.maxLog = 0 // lines are dropped, but count as activity
			each(n, 39, p.says)
		}, want: never},
		"a request":                         {second: func(p *patient, n int) { p.asks = open(n, 1, 35) }, want: 70},
		"a request without end":             {second: func(p *patient, n int) { p.asks = open(n, 5, 1e6) }, want: never},
		"many requests":                     {second: func(p *patient, n int) { p.asks = open(n, 5, 22) + open(n, 15, 45) }, want: 80},
		"work":                              {second: func(p *patient, n int) { p.spec.IdleCPU = busy(n, 100) }, want: 130},
		"endless work":                      {second: func(p *patient, n int) { p.spec.IdleCPU = busy(n, 1e6) }, want: never},
		"work without output, then output":  {second: func(p *patient, n int) { p.spec.IdleCPU = busy(n, 100); at(105, (*patient).says)(p, n) }, want: 150},
		"output, then a request, then none": {second: func(p *patient, n int) { at(15, (*patient).says)(p, n); p.asks = open(n, 45, 65) }, want: 100},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.stall == 0 {
				test.stall = 40 * time.Second
			}
			p := newPatient(t)
			if got := p.stalledAt(idle(t), test.stall, test.second); got != test.want {
				t.Errorf("counted as stalled after %d s, want %d (0 is never)", got, test.want)
			}
		})
	}
}

// stalledAt returns the number of seconds, of ten minutes, after which a run counts as stalled; 0 is never.
func (p *patient) stalledAt(process *proc.Process, stall time.Duration, second func(*patient, int)) int {
	life := p.newActivityMonitor(process, stall)
	for n := range 600 {
		if n > 0 {
			p.at = p.at.Add(time.Second)
		}
		if second != nil {
			second(p, n)
		}
		if life.stalled() {
			return n
		}
	}
	return 0
}

// at does something in one second.
func at(when int, do func(*patient)) func(*patient, int) {
	return func(p *patient, n int) {
		if n == when {
			do(p)
		}
	}
}

// each repeats something.
func each(n, every int, do func()) {
	if n%every == every-1 {
		do()
	}
}

// open returns 1 while a request is open.
func open(n, from, to int) int {
	if n >= from && n < to {
		return 1
	}
	return 0
}

// busy returns the limit of processor use by which a command counts as busy until a given second.
func busy(n, until int) float64 {
	if n < until {
		return alwaysBusy
	}
	return neverBusy
}
