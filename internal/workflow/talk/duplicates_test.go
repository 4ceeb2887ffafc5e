package talk_test

import (
	"net/http"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestDuplicatesAreSearchedLater: a duplicate may become visible only after the first search.
func TestDuplicatesAreSearchedLater(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	first := w.Do(state.JobPost, question)
	w.Do(state.JobPost, question) // the task, now in its next life, knows neither of them
	w.HoursPass()
	look := workflowtest.Args(state.JobArgs{Due: state.DueDuplicate, Key: workflowtest.Itoa(event.Of[event.Posted](first).Comment.ID), Marker: event.Of[event.Posted](first).Comment.Key, Since: event.Of[event.Posted](first).Comment.At})
	for range 2 {
		e := w.Do(state.JobDue, look)
		if e.Kind() == event.KindDue {
			t.Errorf("got event %+v", e)
		}
	}
	if list := w.Issue().Comments; len(list) != 1 || list[0].ID != event.Of[event.Posted](first).Comment.ID {
		t.Errorf("got %d comments", len(list))
	}
	for _, bad := range []string{"x", workflowtest.Itoa(event.Of[event.Posted](first).Comment.ID)} {
		if _, err := w.Try(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueDuplicate, Key: bad})); err == nil {
			t.Errorf("got a search for a duplicate of comment %s", bad)
		}
	}
}

// TestRefusedSearchForDuplicatesIsRetried: nothing else would delete the duplicate.
func TestRefusedSearchForDuplicatesIsRetried(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]simgithub.Fault{
		"listing comments":   {Method: http.MethodGet, Path: "/issues/1/comments", Count: 1, Status: http.StatusForbidden},
		"deleting a comment": {Method: http.MethodDelete, Path: "/issues/comments/", Count: 1, Status: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			first := event.Of[event.Posted](w.Do(state.JobPost, question)).Comment
			w.Do(state.JobPost, question)
			look := workflowtest.Args(state.JobArgs{Due: state.DueDuplicate, Key: workflowtest.Itoa(first.ID), Marker: first.Key, Since: first.At})
			w.MustFault(fault)
			if _, err := w.Try(state.JobDue, look); err == nil || step.ProblemOf(err).Permanent {
				t.Errorf("got error %v, want a temporary one", err)
			}
			w.Do(state.JobDue, look)
			if list := w.Issue().Comments; len(list) != 1 || list[0].ID != first.ID {
				t.Errorf("got %d comments", len(list))
			}
		})
	}
}

// TestDuplicatesOfTheStatusComment: like any comment, it may have been written by an attempt with a lost answer.
func TestDuplicatesOfTheStatusComment(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	status := func(j *state.Job) { j.Key = "1.status" }
	if e := w.Do(state.JobStatus, status); e.Searched() {
		t.Error("a first attempt reports a search")
	}
	e := w.Do(state.JobStatus, status, workflowtest.Again)
	if !e.Searched() {
		t.Error("a second attempt does not report its search")
	}
	w.Do(state.JobStatus, status) // the attempt with the lost answer
	w.Task.Status = event.Of[event.StatusSent](e).Status
	w.Do(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueDuplicate, Key: workflowtest.Itoa(event.Of[event.StatusSent](e).Status.Comment), Marker: "1.status", Since: w.Task.Trigger.At}))
	if list := w.Issue().Comments; len(list) != 1 || list[0].ID != event.Of[event.StatusSent](e).Status.Comment {
		t.Errorf("got %d status comments", len(list))
	}
}
