package launch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestLaunchFindsAnswers: a restored errand starts no agent for feedback that the lost one had answered on GitHub.
func TestLaunchFindsAnswers(t *testing.T) {
	t.Parallel()
	restored := func(j *state.Job) { j.Restored = time.Now() }
	for name, c := range map[string]struct {
		job   func(*state.Job)
		act   func(w *workflowtest.World, first *simgithub.Thread) // instead of the lost errand's answers
		found int
	}{
		"all are answered":      {job: restored, found: 3},
		"in a store of its own": {job: func(*state.Job) {}},
		"nothing is answered":   {job: restored, act: func(*workflowtest.World, *simgithub.Thread) {}},
		"a person answered in a thread": {job: restored, act: func(w *workflowtest.World, first *simgithub.Thread) {
			copied := "I think so, too.\n\n<!-- errand:1.answer-1-" + w.Task.Feedback[0].ID + " -->"
			_, err := w.As("bob").ReplyToThread(workflowtest.RepoName, w.Task.PR.Number, first.ID, copied)
			workflowtest.Check(w.T, err)
		}},
		"another pull request": {job: restored, act: func(w *workflowtest.World, _ *simgithub.Thread) {
			w.Answered()
			w.Task.PR.URL += "0"
			w.Task.Feedback = w.Task.Feedback[2:]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			first, _ := w.Reviewed()
			w.Rounded()
			w.Task.Feedback = append(w.Task.Feedback, state.Feedback{
				ID: "review:5", OnPR: true, Kind: "review", By: w.Person("ada"), TakenBy: "r-2", At: time.Now(),
			})
			if c.act == nil {
				c.act = func(w *workflowtest.World, _ *simgithub.Thread) { w.Answered() }
			}
			c.act(w, first)
			w.Task.Work = nil
			for i := range w.Task.Feedback {
				w.Task.Feedback[i].TakenBy = ""
			}
			run := w.Launching(state.RunReview)
			e := w.Do(state.JobLaunch, c.job)
			found := event.Of[event.AnswersFound](e).IDs
			want := event.KindLaunched
			if c.found > 0 {
				want = event.KindAnswersFound
			}
			if len(found) != c.found || e.Kind() != want || e.Run != run.ID {
				t.Errorf("got %s of run %s with %q, want %s with %d answers", e.Kind(), e.Run, found, want, c.found)
			}
			if (len(w.Host.Started) == 0) != (c.found > 0) {
				t.Errorf("the agent was started %d times", len(w.Host.Started))
			}
		})
	}
}

// TestOwnLostCommitsAreMentioned: the agent learns that commits on the branch may be its own.
func TestOwnLostCommitsAreMentioned(t *testing.T) {
	t.Parallel()
	for _, restored := range []bool{false, true} {
		w := workflowtest.New(t)
		w.OpenPull()
		w.Task.Phase, w.Task.Round = state.PhaseAddressingReview, 1
		w.Task.Feedback = []state.Feedback{{ID: "comment:1", Kind: "comment", Body: "Say more."}}
		w.Launching(state.RunReview)
		w.Task.Branch.VMHead = w.Launched().VMHead
		w.EndRun(state.RunSucceeded, workflowtest.Session)
		w.Task.Branch.Head = w.Push("ada", w.Task.Branch.Name, map[string]string{"ada.txt": "x\n"})
		w.Task.Round = 2
		w.Launching(state.RunReview)
		w.Do(state.JobLaunch, func(j *state.Job) {
			if restored {
				j.Restored = time.Now()
			}
		})
		want := []string{"people pushed 1 commit to the branch"}
		if restored {
			want = []string{"you or people pushed 1 commit to the branch", "Check which requests the commits on the branch address already."}
		}
		p := strings.Join(strings.Fields(w.Prompt()), " ")
		if slices.ContainsFunc(want, func(s string) bool { return !strings.Contains(p, s) }) || restored != strings.Contains(p, "you or people") {
			t.Errorf("restored %v: got the prompt\n%s", restored, p)
		}
	}
}
