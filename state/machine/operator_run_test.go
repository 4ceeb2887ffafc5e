package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// operatorRuns applies an order of the operator to begin a task.
func (l *life) operatorRuns() []state.Job {
	return l.do(event.OperatorRun(state.Repo{ID: 7, Owner: "o", Name: "r"}, 1, "r1", bug))
}

// The operator begins a task with the text that was shown, which only the operator vouches for; nobody on GitHub is named for it, and no
// reaction is made.
func TestOperatorBeginsTask(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	jobs := l.operatorRuns()
	if l.task == nil || l.task.Phase != state.PhaseQueued || l.task.Step != state.JobStart || l.task.History[0].Reason != "started by the operator" {
		t.Fatalf("got task %+v", l.task)
	}
	operator := state.Person{Operator: true}
	if tr := l.task.Trigger; tr.By != operator || tr.Via != state.TriggerOperator || !tr.Operator || !tr.At.Equal(l.now) {
		t.Errorf("got trigger %+v", tr)
	}
	if f := l.task.Frozen; f.By != operator || f.Hash != state.FreezeHash(bug.Title, bug.Body) || f.Title != bug.Title || f.Body != bug.Body {
		t.Errorf("got frozen text %+v", f)
	}
	for _, j := range jobs {
		if j.Kind == state.JobReact || j.Kind == state.JobVet {
			t.Errorf("got job %s with %+v", j.Kind, j.Args)
		}
	}
	l.start()
	if l.task.Approval != nil || l.task.Phase != state.PhasePreliminaryPlanning {
		t.Errorf("got approval %+v and phase %s: vouching for the issue's text approves no plan", l.task.Approval, l.task.Phase)
	}
}

// A person's action after the operator's order counts although errand's clock is ahead of GitHub's, and one from before the issue was read does not.
func TestClockOfOperatorRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		updated, canceled time.Duration // after the order, by GitHub's clock and errand's
		ends              bool
	}{
		"errand's clock is a minute ahead":  {updated: -time.Minute, canceled: -40 * time.Second, ends: true},
		"errand's clock is a minute behind": {updated: time.Minute, canceled: 80 * time.Second, ends: true},
		"an old issue":                      {updated: -9 * time.Hour, canceled: -40 * time.Second, ends: true},
		"a comment from before":             {updated: -time.Second, canceled: -30 * time.Second},
		"from before, and an old issue":     {updated: -9 * time.Hour, canceled: -10 * time.Hour},
		"GitHub is hours ahead":             {updated: 9 * time.Hour, canceled: time.Hour, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			e := event.OperatorRun(state.Repo{ID: 7, Owner: "o", Name: "r"}, 1, "r1", bug)
			now := l.now
			e.At = now.Add(c.updated)
			l.do(e)
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, At: now.Add(c.canceled),
				Payload: event.Commented{Comment: &state.Comment{ID: 5, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}})
			if l.task.Ended() != c.ends {
				t.Errorf("got phase %s of a task triggered at %s", l.task.Phase, l.task.Trigger.At)
			}
		})
	}
}

// The operator begins no task where there is one, whatever it does, and a trigger of a person afterwards counts as a second one.
func TestOperatorBeginsNoSecondTask(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]func(*life){
		"queued": (*life).trigger, "plan waits": (*life).toPreliminary, "pull request": (*life).toPR, "begun by the operator": func(l *life) { l.operatorRuns() },
		"failed":   func(l *life) { l.implementing(); l.end(state.RunResult{Class: state.RunFatal, Status: "refused"}) },
		"canceled": func(l *life) { l.implementing(); l.comment(state.VerbCancel) },
		"parked":   func(l *life) { l.toPR(); l.do(event.Event{Payload: event.PRClosed{}}) },
		"done":     func(l *life) { l.toPR(); l.do(event.Event{Payload: event.PRClosed{Merged: true}}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			bring(l)
			e := event.OperatorRun(l.task.Repo, 1, "r2", state.Issue{Title: "Another", Body: "text"})
			e.Now = l.now
			if c := Next(l.task, e, DefaultPolicy()); c.Task != nil || len(c.Jobs) > 0 {
				t.Errorf("got task %+v and jobs %v", c.Task, kindsOf(c.Jobs))
			}
		})
	}
}

// The text that the operator vouched for stays vouched for when the task begins again, and an edit by a user without write access pauses the
// task as usual.
func TestTextOfOperatorSurvivesRestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    event.Event
		by   state.Person
		held bool
		via  state.TriggerVia
	}{
		"restarted by the operator": {event.OperatorCommand(state.TaskKey{Repo: 7, Issue: 1}, "r2", state.Order{Verb: state.VerbRestart}, false), state.Person{Operator: true}, false, state.TriggerOperator},
		"restarted on the pull request": {event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{
			Comment: &state.Comment{ID: 5, OnPR: true, Mention: true}, Orders: []state.Order{{Verb: state.VerbRestart}}}}, writer, false, state.TriggerMention},
		"restarted on a page": {event.PersonCommand(state.TaskKey{Repo: 7, Issue: 1}, "r2", writer, state.Order{Verb: state.VerbRestart}, false),
			state.Person{Operator: true}, false, state.TriggerMention},
		"edited": {event.Event{By: visitor, Permission: state.PermissionRead, Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: "Other."}}},
			state.Person{Operator: true}, true, state.TriggerOperator},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.operatorRuns()
			l.start()
			l.do(c.e)
			held := l.task.Waiting != nil && l.task.Waiting.Kind == state.WaitEdit
			if l.task.Frozen.By != c.by || l.task.Frozen.Body != bug.Body || held != c.held || l.task.Trigger.Via != c.via {
				t.Errorf("got a text by %+v, waiting %+v, trigger %+v", l.task.Frozen.By, l.task.Waiting, l.task.Trigger)
			}
		})
	}
}
