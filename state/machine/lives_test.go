package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// taskWithProposal returns an ended task, one of whose runs proposed an issue.
func taskWithProposal(t *testing.T, open bool) *life {
	l := newLife(t)
	l.toPR()
	l.task.Proposed = []state.Proposal{{N: 1, Title: "Also this", Body: "It breaks, too."}}
	if !open {
		l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}})
		l.want(state.PhaseDone)
	}
	return l
}

// TestUnknownOutcomeAfterTheEnd: effects of a job of an ended task are checked, too: a proposed issue can still be
// created then.
func TestUnknownOutcomeAfterTheEnd(t *testing.T) {
	t.Parallel()
	since := t0.Add(time.Hour)
	for name, open := range map[string]bool{"while the task goes on": true, "after its end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := taskWithProposal(t, open)
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Issue: &state.Issue{}, Comment: &state.Comment{ID: 70, Mention: true}, Orders: []state.Order{{Verb: state.VerbIssue, Choice: 1}}}})
			i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobIssue })
			if i < 0 {
				t.Fatalf("got jobs %v", kindsOf(l.jobs))
			}
			job := l.jobs[i]
			l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobIssue, Key: job.Key, UnknownSince: since, Class: state.ClassGitHub, Reason: "GitHub does not answer.", Hint: "Try again later."}}})
			if !l.hasReply(state.ReplyIssueFailed) {
				t.Errorf("got no answer to the request: %v", kindsOf(l.jobs))
			}
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Issue: &state.Issue{}, Comment: &state.Comment{ID: 71, Mention: true}, Orders: []state.Order{{Verb: state.VerbIssue, Choice: 1}}}})
			i = slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobIssue })
			if i < 0 || l.jobs[i].Key != job.Key || !l.jobs[i].UnknownSince.Equal(since) {
				t.Errorf("got a next attempt that does not check for effects of the first: %+v", l.jobs)
			}
		})
	}
}

// TestJobKeysDifferBetweenLives: no job of a task's next life has the key of an earlier one, so that their effects can
// be distinguished, and comments of the ended life appear in the right place.
func TestJobKeysDifferBetweenLives(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	keys := map[string]state.JobKind{}
	last := func(gen string) {
		l.toPR()
		for _, j := range l.jobs {
			if old, ok := keys[j.Key]; ok && j.Kind != state.JobVet {
				t.Errorf("life %s: got %s with the key %s of an earlier %s", gen, j.Kind, j.Key, old)
			}
		}
	}
	last("one")
	l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}})
	for _, j := range l.jobs {
		keys[j.Key] = j.Kind
		if j.Kind == state.JobPost && j.Post.Kind == state.PostEnded && (j.Post.OnPR || j.Args.Number != 0) {
			t.Errorf("got last comment %+v, want it on the issue only", j)
		}
	}
	l.now = l.now.Add(time.Hour)
	last("two")
	l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}})
	for _, j := range l.jobs {
		if old, ok := keys[j.Key]; ok {
			t.Errorf("got %s with the key %s of an earlier %s", j.Kind, j.Key, old)
		}
	}
}

// TestDuplicateCheckOfEarlierLife: a duplicate is searched for where the comment was posted, whatever pull request the
// task has by then.
func TestDuplicateCheckOfEarlierLife(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(event.Event{Payload: event.Posted{Searched: true, Comment: state.Posted{Key: "0.ended", ID: 9, At: l.now, OnPR: true, Number: 5}, Post: &state.Post{Kind: state.PostEnded, OnPR: true}}})
	i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobDue && j.Args.Due == state.DueDuplicate })
	if i < 0 || l.jobs[i].Args.Number != 5 {
		t.Errorf("got jobs %+v", l.jobs)
	}
}
