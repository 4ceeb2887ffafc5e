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

// TestHeadOfFoundPRIsStored: the next run starts from what somebody had pushed to a pull request before the store knew of it: the errand that
// was lost, or a person. Later pushes count as usual.
func TestHeadOfFoundPRIsStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ found, want, tree string }{
		"nobody has pushed":                  {"H", "H", "t"},
		"the lost errand or a person":        {"H1", "H1", ""},
		"an event of an older version's job": {"", "H", "t"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.task.PR, l.task.Phase = nil, state.PhaseImplementing // as in a backup from when it was being opened
			l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: state.PROpen}, Searched: true, Head: test.found}})
			l.want(state.PhasePROpen, state.JobPost, state.JobGather)
			if b := l.task.Branch; b.Head != test.want || b.Tree != test.tree {
				t.Errorf("got branch %+v, want %s with tree %q", b, test.want, test.tree)
			}
			for _, p := range []state.Person{{ID: 1, Login: "ada"}, {ID: 2, Login: "bob"}} {
				l.do(event.Event{By: p, Payload: event.Pushed{Head: p.Login}})
				if l.task.Branch.Head != p.Login {
					t.Errorf("got head %s after a push by %s", l.task.Branch.Head, p.Login)
				}
			}
		})
	}
}

// rebasing ends the run of a round whose work is behind the branch.
func (l *life) rebasing() {
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	work := state.Work{Run: l.task.Work.Run, Ref: "stored", Paths: 1, LocalHead: "h", LocalTree: "t"}
	l.do(event.Event{Payload: event.Collected{Work: &work}})
	l.do(event.Event{Payload: event.BranchAhead{Head: "theirs"}})
}

// TestAnsweredFeedbackIsRemoved: before the run of a review round is launched, or its work is rebased, feedback that was answered before errand was restored from a
// backup is removed. If nothing else is left, the round is over, and unpublished work of it is saved.
func TestAnsweredFeedbackIsRemoved(t *testing.T) {
	t.Parallel()
	all := []string{"thread:1:2", "thread:3:4"}
	thread := func(id string) state.Feedback {
		return state.Feedback{ID: id, Kind: state.FeedbackThread, By: writer, Thread: 1}
	}
	for name, test := range map[string]struct {
		found       []string
		until       func(l *life)
		phase       state.Phase
		jobs        []state.JobKind
		left, saved int
	}{
		"all of it": {found: all, phase: state.PhasePROpen},
		"a part":    {found: []string{"thread:3:4"}, phase: state.PhaseAddressingReview, jobs: []state.JobKind{state.JobLaunch}, left: 1},
		"other":     {found: []string{"thread:5:6"}, phase: state.PhaseAddressingReview, jobs: []state.JobKind{state.JobLaunch}, left: 2},
		"more since": {found: all, phase: state.PhaseAddressingReview, jobs: []state.JobKind{state.JobLaunch}, left: 1, until: func(l *life) {
			l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{thread("thread:7:8")}}})
		}},
		"after a failed rebase": {found: all, phase: state.PhasePROpen, saved: 1, until: func(l *life) {
			l.rebasing()
			l.do(event.Event{Payload: event.Conflict{Head: "theirs", Paths: []string{"a.txt"}}})
		}},
		"before a rebase": {found: all, phase: state.PhasePROpen, saved: 1, until: func(l *life) { l.rebasing() }},
		"before a rebase, a part": {found: []string{"thread:3:4"}, phase: state.PhasePROpen, jobs: []state.JobKind{state.JobGather}, left: 1, saved: 1, until: func(l *life) {
			l.rebasing()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{thread("thread:1:2"), thread("thread:3:4")}}})
			if test.until != nil {
				test.until(l)
			}
			run := ""
			if l.task.Run != nil {
				run = l.task.Run.ID
			} else {
				run = l.task.Work.Run
			}
			found := event.Event{Run: run, Payload: event.AnswersFound{IDs: test.found}}
			l.do(found)
			l.want(test.phase, test.jobs...)
			if len(l.task.Feedback) != test.left || len(l.task.Saved) != test.saved {
				t.Errorf("got feedback %+v and saved work %+v", l.task.Feedback, l.task.Saved)
			}
			ended := test.phase == state.PhasePROpen
			if ended != (l.task.Run == nil) || !ended && l.task.Run.ID != run || ended && l.task.Work != nil {
				t.Errorf("got run %+v and work %+v", l.task.Run, l.task.Work)
			}
			l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{thread(test.found[0])}}}) // from a webhook that comes late
			if ended && test.left == 0 {
				l.want(state.PhasePROpen)
				l.do(found)
				l.want(state.PhasePROpen)
			}
		})
	}
	l := newLife(t)
	l.toPR()
	l.beginRound()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.AnswersFound{IDs: ids(l.task.Feedback)}})
	if l.want(state.PhaseAddressingReview); l.task.Run == nil || len(l.task.Feedback) != 1 {
		t.Errorf("a working agent: got run %+v, feedback %+v", l.task.Run, l.task.Feedback)
	}
}
