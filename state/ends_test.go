package state

import (
	"testing"
)

// TestTheEndDropsWhatIsQueued: whatever ends a task, from wherever it stands, no queued work and no reminder outlives it;
// what tells people, gives the VM back, looks for a comment's twin or deletes what was put away does.
func TestTheEndDropsWhatIsQueued(t *testing.T) {
	t.Parallel()
	order := func(v Verb) Event {
		return Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 99, Mention: true}, Orders: []Order{{Verb: v}}}
	}
	anywhere := map[string]Event{
		"cancelled":     order(VerbCancel),
		"unassigned":    {Kind: EventUntriggered, Via: "assigned", By: writer},
		"issue closed":  {Kind: EventIssueClosed, Via: ViaConfirmed},
		"issue gone":    {Kind: EventIssueGone},
		"access lost":   {Kind: EventGone},
		"pull closed":   {Kind: EventPRClosed},
		"pull merged":   {Kind: EventPRClosed, Merged: true},
		"nothing to do": {Kind: EventRunEnded, Result: &RunResult{Class: "success", Status: "ok", Outcome: string(OutcomeReport), Text: "It works."}},
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
					if l.task.PR == nil && e.Kind == EventPRClosed || e.Kind == EventRunEnded && (l.task.Run == nil || l.task.Run.State != RunActive) {
						return // it cannot happen there
					}
					t.Fatalf("the task goes on: %s", ch.Note)
				}
				job := func(kind JobKind, lane Lane, what string) *Job {
					return &Job{Kind: kind, Lane: lane, State: JobQueued, Args: map[string]string{"what": what}}
				}
				for name, c := range map[string]struct {
					job  *Job
					want bool
				}{
					"a launch":              {job(JobLaunch, LaneWork, ""), true},
					"a round":               {job(JobGather, LaneWork, ""), true},
					"the pull request":      {job(JobOpenPR, LaneWork, ""), true},
					"a reminder":            {job(JobDue, LaneControl, "remind"), true},
					"a look at the VM":      {job(JobDue, LaneControl, dueIdle), true},
					"a look for a twin":     {job(JobDue, LaneControl, "twin"), false},
					"a look at the archive": {job(JobDue, LaneControl, dueForget), false},
					"a stop":                {job(JobStop, LaneControl, ""), false},
					"a release":             {job(JobRelease, LaneControl, ""), false},
					"a comment":             {job(JobPost, LaneTalk, ""), false},
					"the status":            {job(JobStatus, LaneStatus, ""), false},
				} {
					if got := ch.dropped(c.job); got != c.want {
						t.Errorf("%s is dropped: %v, want %v", name, got, c.want)
					}
				}
			})
		}
	}
}
