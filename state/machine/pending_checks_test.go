package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A check that runs again is not one that people have waited for.
func TestPendingChecksRunAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reran []state.Rerun
		kept  bool
	}{
		"runs again":         {reran: []state.Rerun{{Check: "k", Head: "H", ID: 3}}},
		"is about to":        {reran: []state.Rerun{{Check: "k", Head: "H", ID: 3, Intended: true}}, kept: true},
		"one of two does":    {reran: []state.Rerun{{Check: "k", Head: "H", ID: 3, Intended: true}, {Check: "l", Head: "H", ID: 4}}},
		"nothing runs again": {kept: true},
	} {
		l := openPR(t)
		l.do(event.Event{Payload: event.ChecksRead{Checks: "failure", Head: "H", Pending: true}})
		l.examined(func(e *event.ChecksExamined) {
			e.Reran, e.Failures, e.Notes = c.reran, nil, nil
			if !c.kept {
				e.Again = l.now.Add(10 * time.Minute)
			}
		})
		if l.task.PR.Undecided.IsZero() == c.kept {
			t.Errorf("%s: undecided since %s", name, l.task.PR.Undecided)
		}
	}
}

// With a limit of 0 errand does nothing about failing checks, but people learn of those that do not end, once per head, whoever pushed it.
func TestPendingChecksWithoutRepairs(t *testing.T) {
	t.Parallel()
	pending, failing := state.CheckNote{Name: "deploy", Fault: state.CheckPending}, state.CheckNote{Name: "build", Fault: state.CheckFails}
	settled := event.ChecksRead{Checks: "pending", Pending: true, Settled: true}
	for name, c := range map[string]struct {
		checks  string // that were read; pending if it is empty
		result  event.ChecksExamined
		fails   bool // they could not be examined
		by      *state.Person
		examine bool
		posts   int // for two reads of a head
	}{
		"pending":                  {result: event.ChecksExamined{Notes: []state.CheckNote{pending}}, examine: true, posts: 1},
		"pending, a writer pushed": {result: event.ChecksExamined{Notes: []state.CheckNote{pending}}, by: &writer, examine: true, posts: 1},
		"pending, a sweep noticed": {result: event.ChecksExamined{Notes: []state.CheckNote{pending}}, by: &state.Person{}, examine: true, posts: 1},
		"one has failed":           {checks: "failure", result: event.ChecksExamined{Notes: []state.CheckNote{pending, failing}}},
		"one failed since":         {result: event.ChecksExamined{Notes: []state.CheckNote{pending, failing}}, examine: true},
		"one would run again":      {result: event.ChecksExamined{Reran: []state.Rerun{{Check: "k", Head: "H", ID: 3, Intended: true}}}, examine: true},
		"all have ended":           {examine: true},
		"not examined":             {fails: true, examine: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openPR(t)
			l.task.Settings.Limits.Checks = 0
			if c.by != nil {
				l.do(event.Event{By: *c.by, Payload: event.Pushed{Head: "theirs"}})
			}
			posts := 0
			for n := range 2 {
				read := settled
				read.Head = l.task.Branch.Head
				if c.checks != "" {
					read.Checks = c.checks
				}
				l.do(event.Event{Payload: read})
				if got := has(l.jobs, state.JobExamine); n == 0 && got != c.examine {
					t.Errorf("examined: %t", got)
				}
				if c.fails {
					l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobExamine, Class: state.ClassGitHub, Reason: "GitHub refuses it."}}})
				} else {
					c.result.Head = l.task.Branch.Head
					l.do(event.Event{Payload: c.result})
				}
				if l.handedOver() {
					posts++
				}
				if l.want(state.PhasePROpen); has(l.jobs, state.JobExamine) || l.task.PR.Repair != nil && len(l.task.PR.Repair.Reran) > 0 {
					t.Errorf("checks run again: %v", kindsOf(l.jobs))
				}
			}
			if posts != c.posts {
				t.Errorf("got %d comments", posts)
			}
		})
	}
}

// While checks cannot be read, errand tries again each hour as long as people may have to learn that they do not end, otherwise once.
func TestUnreadChecksAreReadAgain(t *testing.T) {
	t.Parallel()
	pending := event.ChecksRead{Checks: "pending", Head: "H", Pending: true}
	named := func(l *life) {
		l.examined(func(e *event.ChecksExamined) {
			e.Failures, e.Notes = nil, []state.CheckNote{{Name: "deploy", Fault: state.CheckPending}}
		})
	}
	for name, c := range map[string]struct {
		bring func(*life)
		retry int // of three failures
	}{
		"nothing is pending": {retry: 1},
		"pending":            {bring: func(l *life) { l.do(event.Event{Payload: pending}) }, retry: 3},
		"a writer's command": {bring: func(l *life) {
			l.do(event.Event{Payload: pending})
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: command(state.VerbUpdate)})
		}, retry: 1},
		"a reader's command": {bring: func(l *life) {
			l.do(event.Event{Payload: pending})
			l.do(event.Event{By: visitor, Permission: state.PermissionRead, Payload: command(state.VerbUpdate)})
		}, retry: 3},
		"named":       {bring: func(l *life) { l.do(event.Event{Payload: pending}); named(l) }, retry: 1},
		"handed over": {bring: func(l *life) { l.do(event.Event{Payload: pending}); handOver(&change{t: l.task}, nil, "") }, retry: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openPR(t)
			if c.bring != nil {
				c.bring(l)
			}
			retries := 0
			for range 3 {
				l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobChecks, Class: state.ClassGitHub, Reason: "GitHub does not answer."}}})
				for _, j := range l.jobs {
					if j.Kind == state.JobChecks && j.NotBefore.Equal(l.now.Add(time.Hour)) {
						retries++
					}
				}
			}
			if retries != c.retry {
				t.Errorf("got %d retries, want %d", retries, c.retry)
			}
		})
	}
}
