package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// However and from whichever phase a task ends, no queued work or reminder remains. Jobs that post comments, delete the
// VM, check for duplicate comments or delete saved work remain.
func TestEndDropsQueuedJobs(t *testing.T) {
	t.Parallel()
	order := func(v state.Verb) event.Event {
		return event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 99, Mention: true}, Orders: []state.Order{{Verb: v}}}}
	}
	anywhere := map[string]event.Event{
		"canceled":      order(state.VerbCancel),
		"unassigned":    {Via: "assigned", By: writer, Payload: event.Untriggered{}},
		"issue closed":  {Via: event.ViaConfirmed, Payload: event.IssueClosed{}},
		"issue gone":    {Payload: event.IssueGone{}},
		"access lost":   {Payload: event.AccessLost{}},
		"pull merged":   {Payload: event.PRClosed{Merged: true}},
		"nothing to do": {Payload: event.RunEnded{Result: state.RunResult{Class: state.RunSucceeded, Status: state.StatusOK, Outcome: state.OutcomeReport, Text: "It works."}}},
	}
	for where, bring := range map[string]func(*life){
		"before it began":           func(l *life) { l.trigger() },
		"while a run is launched":   func(l *life) { l.trigger(); l.start() },
		"while an agent works":      func(l *life) { l.trigger(); l.start(); l.launch() },
		"while a plan waits":        func(l *life) { l.toPreliminary() },
		"while a pull request does": func(l *life) { l.toPR() },
	} {
		for how, e := range anywhere {
			t.Run(where+", "+how, func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				bring(l)
				if l.task.Run != nil {
					e.Run = l.task.Run.ID
				}
				if p, ok := e.Payload.(event.Commented); ok {
					c := *p.Comment
					c.At, p.Comment = l.now, &c
					e.Payload = p
				}
				e.Task, e.Now, e.At = l.task.Key, l.now, l.now
				ch := Next(l.task, e, DefaultPolicy())
				if ch.Task == nil || !ch.Task.Ended() {
					if l.task.PR == nil && e.Kind() == event.KindPRClosed || e.Kind() == event.KindRunEnded && (l.task.Run == nil || l.task.Run.State != state.RunActive) {
						return // it cannot happen there
					}
					t.Fatalf("got a task that has not ended: %s", ch.Note)
				}
				job := func(kind state.JobKind, lane state.Lane, due state.DueKind) *state.Job {
					return &state.Job{Kind: kind, Lane: lane, State: state.JobQueued, Args: state.JobArgs{Due: due}}
				}
				for name, c := range map[string]struct {
					job  *state.Job
					want bool
				}{
					"a launch":              {job(state.JobLaunch, state.LaneWork, ""), true},
					"a round":               {job(state.JobGather, state.LaneWork, ""), true},
					"the pull request":      {job(state.JobOpenPR, state.LaneWork, ""), true},
					"a reminder":            {job(state.JobDue, state.LaneControl, state.DueRemind), true},
					"a look at the VM":      {job(state.JobDue, state.LaneControl, state.DueIdle), true},
					"a look for a twin":     {job(state.JobDue, state.LaneControl, state.DueDuplicate), false},
					"a look at the archive": {job(state.JobDue, state.LaneControl, state.DueForget), false},
					"a look at the checks":  {job(state.JobChecks, state.LaneTalk, ""), true},
					"a stop":                {job(state.JobStop, state.LaneControl, ""), false},
					"a release":             {job(state.JobRelease, state.LaneControl, ""), false},
					"a comment":             {job(state.JobPost, state.LaneTalk, ""), false},
					"the status":            {job(state.JobStatus, state.LaneStatus, ""), false},
				} {
					if got := ch.Drops(c.job); got != c.want {
						t.Errorf("%s: got dropped %v, want %v", name, got, c.want)
					}
				}
			})
		}
	}
}
