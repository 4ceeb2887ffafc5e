package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestRunsSkipUsedNumbers: after a restoration, a run gets a number above those that may have been used since the backup.
func TestRunsSkipUsedNumbers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ newest, used, want int }{
		"no restoration":                     {newest: 3, want: 4},
		"the first run since":                {newest: 3, used: 110, want: 111},
		"the next one":                       {newest: 111, used: 110, want: 112},
		"the first run of a task that began": {used: 110, want: 111},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &change{t: &state.Task{Key: state.TaskKey{Repo: 10, Issue: 1}, TaskRuns: state.TaskRuns{RunSeq: test.newest}}, p: Policy{UsedRuns: test.used}}
			c.launchRun(state.RunPlan)
			if r := c.t.Run; r.Seq != test.want || c.t.RunSeq != test.want {
				t.Errorf("got run %s with number %d, want %d", r.ID, r.Seq, test.want)
			}
		})
	}
}

// TestFoundPRIsContinued: a pull request of errand's that the store does not know, since it was restored from a backup, is the task's from
// then on. Work that is not published is saved.
func TestFoundPRIsContinued(t *testing.T) {
	t.Parallel()
	implementing := func(t *testing.T) *life {
		l := newLife(t)
		l.toPreliminary()
		l.approve()
		l.launch()
		l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		l.approve()
		return l
	}
	found := event.Event{Payload: event.PRFound{PR: state.PR{Number: 5, State: state.PROpen}, Head: "H"}}
	for name, test := range map[string]struct {
		until func(l *life)
		saved int
	}{
		"before the launch": {until: func(*life) {}},
		"instead of its work": {saved: 1, until: func(l *life) {
			l.launch()
			l.end(state.RunResult{Outcome: "done"})
			l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: "stored", Paths: 1, LocalHead: "h", LocalTree: "t"}}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := implementing(t)
			test.until(l)
			l.do(found)
			l.want(state.PhasePROpen, state.JobPost, state.JobGather)
			if l.task.PR == nil || l.task.PR.Number != 5 || l.task.Branch.Head != "H" || l.task.Run != nil || l.task.Work != nil || len(l.task.Saved) != test.saved {
				t.Errorf("got pull request %+v, branch %+v, run %+v, work %+v, saved %+v", l.task.PR, l.task.Branch, l.task.Run, l.task.Work, l.task.Saved)
			}
			l.do(found) // an event that comes twice
			l.want(state.PhasePROpen)
		})
	}
	l := newLife(t)
	l.toPR()
	l.do(event.Event{Payload: event.PRFound{PR: state.PR{Number: 6, State: state.PROpen}}})
	if l.task.PR.Number != 5 {
		t.Errorf("got pull request %+v instead of the task's", l.task.PR)
	}
}
