package talk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPostAfterARestoration: an errand that was restored from a backup finds comments with the keys of its jobs, which the lost errand has
// posted. People see a question of their own for each job that asks one, and the end of the task as it is now; nothing is said twice.
func TestPostAfterARestoration(t *testing.T) {
	t.Parallel()
	later := time.Now().Add(time.Hour)
	ask := func(text string) state.Post {
		return state.Post{Kind: state.PostQuestion, Reason: state.AskAgent, Text: text}
	}
	ended := state.Post{Kind: state.PostEnded}
	checksFail := func(names ...string) state.Post {
		p := state.Post{Kind: state.PostChecks}
		for _, name := range names {
			p.Checks = append(p.Checks, state.CheckNote{Name: name, Fault: state.CheckFails})
		}
		return p
	}
	for name, test := range map[string]struct {
		lost, post state.Post
		phase      state.Phase // of the task in the lost store; now it is done
		restored   time.Time
		posted     int // comments afterwards
		says, lies string
	}{
		"another question":         {lost: ask("Which color?"), post: ask("Which size?"), restored: later, posted: 2, says: "Which size?"},
		"the same question":        {lost: ask("Which color?"), post: ask("Which color?"), restored: later, posted: 1, says: "Which color?"},
		"a question asked since":   {lost: ask("Which color?"), post: ask("Which size?"), restored: time.Now().Add(-time.Hour), posted: 1, says: "Which color?"},
		"in a store of its own":    {lost: ask("Which color?"), post: ask("Which size?"), posted: 1, says: "Which color?"},
		"a failure":                {lost: state.Post{Kind: state.PostFailed, Text: "One."}, post: state.Post{Kind: state.PostFailed, Text: "Two."}, restored: later, posted: 2, says: "Two."},
		"an answer to one comment": {lost: state.Post{Kind: state.PostReply, Reason: state.ReplyModelSet}, post: state.Post{Kind: state.PostReply, Reason: state.ReplyModelUnknown}, restored: later, posted: 1},
		"failing checks":           {lost: checksFail("build"), post: checksFail("build", "lint"), restored: later, posted: 1, says: "build"},
		"another end":              {lost: ended, post: ended, phase: state.PhaseCancelled, restored: later, posted: 1, says: "is done", lies: "anceled"},
		"the same end":             {lost: ended, post: ended, phase: state.PhaseDone, restored: later, posted: 1, says: "is done"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			post := func(p state.Post) func(*state.Job) {
				return func(j *state.Job) { j.Key, j.Post = "1.key-7", &p }
			}
			if test.phase != "" {
				w.Task.Phase = test.phase
			}
			first := event.Of[event.Posted](w.Do(state.JobPost, post(test.lost))).Comment
			if test.phase != "" {
				w.Task.Phase = state.PhaseDone
			}
			after := func(j *state.Job) {
				j.Attempted, j.UnknownSince, j.Restored = true, time.Now().Add(-time.Hour), test.restored
			}
			e := w.Do(state.JobPost, post(test.post), after)
			got := event.Of[event.Posted](e).Comment
			if got.ID == 0 || (got.ID == first.ID) != (test.posted == 1) {
				t.Errorf("got comment %d, the lost errand's is %d", got.ID, first.ID)
			}
			look := workflowtest.Args(state.JobArgs{Due: state.DueDuplicate, Key: workflowtest.Itoa(got.ID), Marker: got.Key, Since: got.At})
			w.Do(state.JobDue, look, after)
			list := w.Ours(1)
			if len(list) != test.posted {
				t.Fatalf("got %d comments, want %d: %q", len(list), test.posted, list)
			}
			if last := list[len(list)-1]; !strings.Contains(last, test.says) || test.lies != "" && strings.Contains(last, test.lies) {
				t.Errorf("got text:\n%s", last)
			}
		})
	}
}

// TestProposalAfterARestoration: an issue that the lost errand created for another proposal with the same number is not taken for this one's.
func TestProposalAfterARestoration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		title string
		same  bool
	}{"another proposal": {"Something else", false}, "the same one": {"", true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Proposed()
			now := w.Task.Proposed[0]
			if test.title != "" {
				w.Task.Proposed[0].Title = test.title
			}
			first := event.Of[event.IssueCreated](w.Do(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: 1})))
			w.Task.Proposed[0] = now
			again := event.Of[event.IssueCreated](w.Do(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: 1}), func(j *state.Job) {
				j.Attempted, j.UnknownSince, j.Restored = true, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
			}))
			if (first.Issue == again.Issue) != test.same {
				t.Errorf("got issue %d, the lost errand's is %d", again.Issue, first.Issue)
			}
		})
	}
}

// TestStatusAfterARestoration: an errand that was restored from a backup, which does not know the task's status comment, takes over the
// one of the lost errand.
func TestStatusAfterARestoration(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	status := func(j *state.Job) { j.Key = "1.status" }
	w.Task.Visible = 1
	lost := event.Of[event.StatusSent](w.Do(state.JobStatus, status)).Status
	w.Task.Visible, w.Task.Status, w.Task.Phase = 2, state.StatusComment{}, state.PhaseDone
	now := event.Of[event.StatusSent](w.Do(state.JobStatus, status, func(j *state.Job) {
		j.Attempted, j.UnknownSince, j.Restored = true, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	})).Status
	if lost.Comment == 0 || now.Comment != lost.Comment {
		t.Errorf("got comment %d, the lost errand's is %d", now.Comment, lost.Comment)
	}
	if list := w.Ours(1); len(list) != 1 || !strings.Contains(list[0], "Done") {
		t.Errorf("got %q, want one comment, which is up to date", list)
	}
}
