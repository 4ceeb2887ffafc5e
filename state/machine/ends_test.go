package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
)

// However and from whichever phase a task ends, no queued work or reminder remains. Jobs that post comments, delete the
// VM, check for duplicate comments or delete saved work remain.
func TestTheEndDropsWhatIsQueued(t *testing.T) {
	t.Parallel()
	order := func(v state.Verb) state.Event {
		return state.Event{Kind: state.EventCommented, By: writer, Permission: state.PermissionWrite, Comment: &state.Comment{ID: 99, Mention: true}, Orders: []state.Order{{Verb: v}}}
	}
	anywhere := map[string]state.Event{
		"cancelled":     order(state.VerbCancel),
		"unassigned":    {Kind: state.EventUntriggered, Via: "assigned", By: writer},
		"issue closed":  {Kind: state.EventIssueClosed, Via: state.ViaConfirmed},
		"issue gone":    {Kind: state.EventIssueGone},
		"access lost":   {Kind: state.EventGone},
		"pull closed":   {Kind: state.EventPRClosed},
		"pull merged":   {Kind: state.EventPRClosed, Merged: true},
		"nothing to do": {Kind: state.EventRunEnded, RunReport: state.RunReport{Result: &state.RunResult{Class: "success", Status: "ok", Outcome: string(state.OutcomeReport), Text: "It works."}}},
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
				if e.Comment != nil {
					c := *e.Comment
					c.At, e.Comment = l.now, &c
				}
				e.Task, e.Now, e.At = l.task.Key, l.now, l.now
				ch := Next(l.task, e, DefaultPolicy())
				if ch.Task == nil || !ch.Task.Ended() {
					if l.task.PR == nil && e.Kind == state.EventPRClosed || e.Kind == state.EventRunEnded && (l.task.Run == nil || l.task.Run.State != state.RunActive) {
						return // it cannot happen there
					}
					t.Fatalf("got a task that has not ended: %s", ch.Note)
				}
				job := func(kind state.JobKind, lane state.Lane, what string) *state.Job {
					return &state.Job{Kind: kind, Lane: lane, State: state.JobQueued, Args: map[string]string{"what": what}}
				}
				for name, c := range map[string]struct {
					job  *state.Job
					want bool
				}{
					"a launch":              {job(state.JobLaunch, state.LaneWork, ""), true},
					"a round":               {job(state.JobGather, state.LaneWork, ""), true},
					"the pull request":      {job(state.JobOpenPR, state.LaneWork, ""), true},
					"a reminder":            {job(state.JobDue, state.LaneControl, "remind"), true},
					"a look at the VM":      {job(state.JobDue, state.LaneControl, string(state.DueIdle)), true},
					"a look for a twin":     {job(state.JobDue, state.LaneControl, "twin"), false},
					"a look at the archive": {job(state.JobDue, state.LaneControl, string(state.DueForget)), false},
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
