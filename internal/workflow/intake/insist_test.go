package intake_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPersonsCommentIsNotLost: a permission that cannot be read is read again later, because the person will not repeat
// the comment.
func TestPersonsCommentIsNotLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault simgithub.Fault
		gone  bool // the App is
		perm  bool
	}{
		"forbidden":               {simgithub.Fault{Status: 403, Body: `{"message":"Resource not accessible by integration"}`}, false, false},
		"5xx":                     {simgithub.Fault{Status: 502}, false, false},
		"the App was uninstalled": {gone: true, perm: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.Planned(state.PlanPreliminary)
			k := w.Candidate(p, "ada", state.ViaCommand)
			if c.gone {
				w.Uninstall("acme")
				_, err := w.Approve(k) // the old token
				workflowtest.WantProblem(t, err, "github", false)
			} else {
				c.fault.Method, c.fault.Path = "GET", "/collaborators/ada/permission$"
				w.MustFault(c.fault)
			}
			_, err := w.Approve(k)
			workflowtest.WantProblem(t, err, "github", c.perm)
			_, err = w.Try(state.JobVet, workflowtest.Vets(event.Event{Task: w.Task.Key, By: w.Person("ada"), Payload: event.Triggered{}}))
			workflowtest.WantProblem(t, err, "github", c.perm)
		})
	}
}

// TestSearchForTheEffectOfAnEarlierJob: a job with the key of one that failed permanently searches for the effect of
// the earlier job.
func TestSearchForTheEffectOfAnEarlierJob(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	status := func(j *state.Job) { j.Key = "1.status" }
	first := w.Do(state.JobStatus, status)
	w.HoursPass()
	again := w.Do(state.JobStatus, status, func(j *state.Job) { // unknown to the store
		j.Created, j.Attempted, j.UnknownSince = time.Now().Add(time.Hour), true, time.Now()
	})
	was, is := event.Of[event.StatusSent](first).Status, event.Of[event.StatusSent](again).Status
	if was.Comment == 0 || is.Comment != was.Comment {
		t.Errorf("got status comment %+v, then %+v", was, is)
	}
}
