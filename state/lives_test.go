package state

import (
	"slices"
	"testing"
	"time"
)

// proposed is an ended task, one of whose runs proposed an issue.
func proposed(t *testing.T, open bool) *life {
	l := newLife(t)
	l.toPR()
	l.task.Proposed = []Proposal{{N: 1, Title: "Also this", Body: "It breaks, too."}}
	if !open {
		l.do(Event{Kind: EventPRClosed, Merged: true, By: writer})
		l.want(PhaseDone)
	}
	return l
}

// TestDoubtAfterTheEnd: what a job of an ended task may have left is looked for, too. A proposed issue can still be created then.
func TestDoubtAfterTheEnd(t *testing.T) {
	t.Parallel()
	since := t0.Add(time.Hour)
	for name, open := range map[string]bool{"while the task goes on": true, "after its end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := proposed(t, open)
			l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Issue: &Issue{}, Comment: &Comment{ID: 70, Mention: true}, Orders: []Order{{Verb: VerbIssue, Choice: 1}}})
			i := slices.IndexFunc(l.jobs, func(j Job) bool { return j.Kind == JobIssue })
			if i < 0 {
				t.Fatalf("jobs %v", kindsOf(l.jobs))
			}
			job := l.jobs[i]
			l.do(Event{Kind: EventStepFailed, Failure: &Failure{Job: JobIssue, Key: job.Key, Doubt: since, Class: "github", Reason: "GitHub does not answer.", Hint: "Try again later."}})
			if !l.replied(ReplyIssueFailed) {
				t.Errorf("whoever wanted it is told nothing: %v", kindsOf(l.jobs))
			}
			l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Issue: &Issue{}, Comment: &Comment{ID: 71, Mention: true}, Orders: []Order{{Verb: VerbIssue, Choice: 1}}})
			i = slices.IndexFunc(l.jobs, func(j Job) bool { return j.Kind == JobIssue })
			if i < 0 || l.jobs[i].Key != job.Key || !l.jobs[i].Doubt.Equal(since) {
				t.Errorf("the next attempt does not look for what the first may have left: %+v", l.jobs)
			}
		})
	}
}

// TestEffectsOfALifeAreItsOwn: no job of a task's next life has the key of one before, so that nothing of theirs is taken for the other's,
// and the ended one's comments go where they belonged.
func TestEffectsOfALifeAreItsOwn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	keys := map[string]JobKind{}
	last := func(gen string) {
		l.toPR()
		for _, j := range l.jobs {
			if old, ok := keys[j.Key]; ok && j.Kind != JobVet {
				t.Errorf("life %s: %s has the key %s of an earlier %s", gen, j.Kind, j.Key, old)
			}
		}
	}
	last("one")
	l.do(Event{Kind: EventPRClosed, Merged: true, By: writer})
	for _, j := range l.jobs {
		keys[j.Key] = j.Kind
		if j.Kind == JobPost && j.Post.Kind == PostEnded && (!j.Post.OnPR || j.Args["number"] != "5") {
			t.Errorf("the last comment does not say that it belongs to #5: %+v", j)
		}
	}
	l.now = l.now.Add(time.Hour)
	last("two")
	l.do(Event{Kind: EventPRClosed, Merged: true, By: writer})
	for _, j := range l.jobs {
		if old, ok := keys[j.Key]; ok {
			t.Errorf("%s has the key %s of an earlier %s", j.Kind, j.Key, old)
		}
	}
}

// TestTwinOfAnEarlierLifesComment: a second copy is looked for where the comment stands, whatever the task's pull request is by then.
func TestTwinOfAnEarlierLifesComment(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(Event{Kind: EventPosted, Detail: "looked", Posted: &Posted{Key: "0.ended", ID: 9, At: l.now, OnPR: true, Number: 5}, Post: &Post{Kind: PostEnded, OnPR: true}})
	i := slices.IndexFunc(l.jobs, func(j Job) bool { return j.Kind == JobDue && j.Args["what"] == "twin" })
	if i < 0 || l.jobs[i].Args["number"] != "5" {
		t.Errorf("jobs %+v", l.jobs)
	}
}
