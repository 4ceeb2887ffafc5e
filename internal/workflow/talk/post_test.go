package talk_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/workflow"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func question(j *state.Job) {
	j.Key, j.Post = "1.question-7", &state.Post{Kind: state.PostQuestion, Reason: state.AskAgent, Text: "Which one? " + workflowtest.Secret}
}

func TestPostWritesOnce(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	e := w.Do(state.JobPost, question)
	list := w.Ours(1)
	if len(list) != 1 || !strings.Contains(list[0], "Which one?") || !strings.Contains(list[0], comment.Marker("1.question-7")) || strings.Contains(list[0], workflowtest.Secret) {
		t.Fatalf("got comments %q", list)
	}
	c := w.Issue().Comments[0]
	if e.Kind() != event.KindPosted || event.Of[event.Posted](e).Comment.ID != c.ID || event.Of[event.Posted](e).Comment.Node != c.NodeID || event.Of[event.Posted](e).Comment.Key != "1.question-7" || e.Searched() || event.Of[event.Posted](e).BodyHash != comment.BodyHash(c.Body) || event.Of[event.Posted](e).Comment.OnPR {
		t.Errorf("got event %+v, posted %+v", e, event.Of[event.Posted](e).Comment)
	}
	if len(w.Attempted) != 1 {
		t.Errorf("got marked %v before the first call", w.Attempted)
	}
}

// TestPostAfterAnUnknownOutcome: the comment exists, but GitHub's answer was lost.
func TestPostAfterAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault simgithub.Fault
		there int // comments after the first attempt
	}{
		"lost answer": {simgithub.Fault{Method: "POST", Path: "/issues/1/comments$", Nth: 1, Count: 1, After: true, Cut: true}, 1},
		"502 after":   {simgithub.Fault{Method: "POST", Path: "/issues/1/comments$", Nth: 1, Count: 1, After: true, Status: 502}, 1},
		"never came":  {simgithub.Fault{Method: "POST", Path: "/issues/1/comments$", Nth: 1, Count: 1, Cut: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.MustFault(c.fault)
			if e, err := w.Try(state.JobPost, question); err == nil {
				t.Fatalf("got event %+v without an answer", e)
			}
			if n := len(w.Ours(1)); n != c.there || len(w.Attempted) != 1 {
				t.Fatalf("got %d comments, marked %v", n, w.Attempted)
			}
			w.HoursPass()
			e := w.Do(state.JobPost, question, workflowtest.Again)
			if n := len(w.Ours(1)); n != 1 || event.Of[event.Posted](e).Comment.ID != w.Issue().Comments[0].ID || !e.Searched() {
				t.Errorf("got %d comments, event %+v", n, e)
			}
		})
	}
}

func TestPostRemovesNewerDuplicates(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	first := w.Do(state.JobPost, question)
	w.Do(state.JobPost, question) // like two workers without knowledge of each other
	workflowtest.Check(t, workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "quoting: "+comment.Marker("1.question-7"))))
	e := w.Do(state.JobPost, question, workflowtest.Again)
	if list := w.Ours(1); len(list) != 1 || event.Of[event.Posted](e).Comment.ID != event.Of[event.Posted](first).Comment.ID {
		t.Errorf("got %d comments, kept %d, want the older %d", len(list), event.Of[event.Posted](e).Comment.ID, event.Of[event.Posted](first).Comment.ID)
	}
	if n := len(w.Issue().Comments); n != 2 {
		t.Errorf("got %d comments including ada's, want 2", n)
	}
}

func TestPostOnThePullRequest(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	e := w.Do(state.JobPost, func(j *state.Job) {
		j.Key, j.Post = "1.round-1", &state.Post{Kind: state.PostRound, OnPR: true, Text: "Done.", Items: []string{"a"}}
	})
	if len(w.Ours(w.Task.PR.Number)) != 1 || len(w.Ours(1)) != 0 || !event.Of[event.Posted](e).Comment.OnPR {
		t.Errorf("got %q on the pull request, %q on the issue", w.Ours(w.Task.PR.Number), w.Ours(1))
	}
}

func TestPostNeedsItsAttemptStored(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Refuse = errors.New("lease lost")
	if _, err := w.Try(state.JobPost, question); !errors.Is(err, w.Refuse) {
		t.Errorf("got error %v", err)
	}
	if n := len(w.Ours(1)); n != 0 {
		t.Errorf("got %d comments", n)
	}
}

func TestPostOfADeletedPlan(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	e := w.Do(state.JobPost, func(j *state.Job) { j.Post = &state.Post{Kind: state.PostPlan, Hash: "00000000"} })
	if e.Kind() == event.KindPosted || len(w.Ours(1)) != 0 {
		t.Errorf("got event %+v, comments %q", e, w.Ours(1))
	}
}

func TestStatusIsOneComment(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Sent()
	first := w.Task.Status
	if len(w.Ours(1)) != 1 || first.Comment != w.Issue().Comments[0].ID || first.Shown != w.Task.Visible || first.At.IsZero() {
		t.Fatalf("got status %+v, comments %q", first, w.Ours(1))
	}
	if e := w.Sent(); e.Kind() == event.KindStatusSent {
		t.Error("the comment was edited although it shows the newest state")
	}
	w.Task.Phase = state.PhaseFailed
	w.Task.Visible++
	w.Task.End = &state.End{Reason: "It broke: " + workflowtest.Secret, Hint: "Mend it."}
	before := w.Ours(1)[0]
	w.Sent()
	after := w.Ours(1)
	if len(after) != 1 || after[0] == before || strings.Contains(after[0], workflowtest.Secret) || w.Task.Status.Shown != w.Task.Visible || w.Task.Status.Comment != first.Comment {
		t.Errorf("got status %+v, comments %q", w.Task.Status, after)
	}
}

func TestDeletedStatusCommentIsCreatedAgain(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Sent()
	workflowtest.Check(t, w.Ada.DeleteComment(workflowtest.RepoName, w.Task.Status.Comment))
	w.Task.Visible++
	w.Sent()
	if list := w.Issue().Comments; len(list) != 1 || list[0].ID != w.Task.Status.Comment {
		t.Errorf("got %d comments, status %+v", len(list), w.Task.Status)
	}
}

// TestFoundStatusCommentIsUpdated: the answer to the first attempt was lost, and the task has changed since, so the
// found comment with the old state is updated.
func TestFoundStatusCommentIsUpdated(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.MustFault(simgithub.Fault{Method: "POST", Path: "/comments$", Count: 1, After: true, Cut: true})
	if _, err := w.Try(state.JobStatus); err == nil {
		t.Fatal("got no error")
	}
	w.Task.Phase = state.PhaseFailed
	w.Task.Visible++
	w.Task.End = &state.End{Reason: "The roof came down.", Hint: "Mend it."}
	w.Sent(workflowtest.Again)
	if list := w.Ours(1); len(list) != 1 || !strings.Contains(list[0], "The roof came down.") || w.Task.Status.Shown != w.Task.Visible {
		t.Errorf("got status %+v, comments %q", w.Task.Status, list)
	}
}

func TestFailedStatusStaysDue(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Sent()
	w.Task.Visible++
	w.MustFault(simgithub.Fault{Method: "PATCH", Path: "/comments/", Status: http.StatusBadGateway})
	if _, err := w.Try(state.JobStatus); err == nil {
		t.Error("got no error")
	}
	if n := len(w.Ours(1)); n != 1 {
		t.Errorf("got %d comments", n)
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	c, err := w.Ada.Comment(workflowtest.RepoName, 1, "@errand plan")
	workflowtest.Check(t, err)
	for range 2 {
		w.Do(state.JobReact, workflowtest.Args(state.JobArgs{Reaction: "eyes"}))
		w.Do(state.JobReact, workflowtest.Args(state.JobArgs{Reaction: "eyes", Comment: c.ID}))
	}
	w.Task = nil // without a task, a user who may not start one gets an answer
	_, err = w.Steps.Handle(t.Context(), &state.Job{Kind: state.JobReact, Task: state.TaskKey{Repo: w.Repo.ID, Issue: 1}, Args: state.JobArgs{
		Reaction: "confused", Installation: w.InstallationID(), Owner: "acme", Name: "slug",
	}})
	workflowtest.Check(t, err)
	i := w.IssueAt(1)
	if len(i.Reactions) != 2 || len(i.Comments[0].Reactions) != 1 || i.Comments[0].Reactions[0].Content != "eyes" {
		t.Errorf("got %d reactions on the issue, %d on the comment", len(i.Reactions), len(i.Comments[0].Reactions))
	}
	w.Task = &state.Task{Key: state.TaskKey{Repo: w.Repo.ID, Issue: 1}, TaskIssue: state.TaskIssue{Installation: w.InstallationID(), Repo: state.Repo{ID: w.Repo.ID, Owner: "acme", Name: "slug"}}}
	if _, err := w.Try(state.JobReact, workflowtest.Args(state.JobArgs{Reaction: "dance"})); err == nil {
		t.Error("a reaction that GitHub does not know: got no error, want one")
	}
}

func TestVet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by    string
		allow []string
		want  state.Permission
	}{
		"admin":                        {"ada", nil, state.PermissionAdmin},
		"writer":                       {"bob", nil, state.PermissionWrite},
		"triage":                       {"errand-bot", nil, state.PermissionRead},
		"without write access":         {"eve", nil, state.PermissionRead},
		"bot":                          {"ci[bot]", nil, state.PermissionNone},
		"listed, without write access": {"ci[bot]", []string{"CI[bot]"}, state.PermissionRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.AddBot("ci[bot]")
			cfg := w.Config
			cfg.AllowBots = c.allow
			w.Steps = workflow.New(cfg)
			key, inst := w.Task.Key, w.Task.Installation
			in := event.Event{Task: key, ID: "x", By: w.Person(c.by), Installation: inst, Repo: &state.Repo{ID: key.Repo, Owner: "acme", Name: "slug"}, Payload: event.Triggered{}}
			for _, task := range []*state.Task{w.Task, nil} { // also before the task exists
				w.Task = task
				job := &state.Job{Kind: state.JobVet, Task: key}
				workflowtest.Vets(in)(job)
				e, err := w.Steps.Handle(t.Context(), job)
				workflowtest.Check(t, err)
				if e.Permission != c.want && !(c.want == state.PermissionRead && e.Permission == state.PermissionNone) {
					t.Errorf("got permission %q, want %q", e.Permission, c.want)
				}
				if e.Kind() != in.Kind() || e.ID != "x" || e.Permission.CanWrite() != c.want.CanWrite() {
					t.Errorf("got event %+v", e)
				}
			}
		})
	}
}

func TestHandleRefusesUnknownKinds(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	if _, err := w.Try("dance"); err == nil {
		t.Error("got no error for an unknown kind of job")
	}
	key := w.Task.Key
	w.Task = nil
	for _, k := range []state.JobKind{state.JobStart, state.JobLaunch, state.JobPost, state.JobStatus} {
		if e, err := w.Steps.Handle(t.Context(), &state.Job{Kind: k, Task: key, Created: time.Now()}); err != nil || e.Kind() == "" {
			t.Errorf("%s without a task: got %+v, %v", k, e, err)
		}
	}
	if fmt.Sprint(w.Ours(1)) != "[]" {
		t.Errorf("got comments without a task: %q", w.Ours(1))
	}
}

// TestLastCommentChecksTheBranch: its statement about the branch matches GitHub's state at that time.
func TestLastCommentChecksTheBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change     func(w *workflowtest.World) error
		says, lies string
	}{
		"it exists": {func(*workflowtest.World) error { return nil }, "stays", "deleted"},
		"deleted": {func(w *workflowtest.World) error {
			return w.Ada.DeleteBranch(workflowtest.RepoName, w.Task.Branch.Name)
		}, "was deleted", "stays"},
		"unknown": {func(w *workflowtest.World) error {
			w.MustFault(simgithub.Fault{Path: "/git/ref", Status: 502})
			return nil
		}, "canceled", "The branch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.OpenPull()
			w.Task.Phase, w.Task.PR = state.PhaseCancelled, nil
			workflowtest.Check(t, c.change(w))
			w.Do(state.JobPost, func(j *state.Job) { j.Post = &state.Post{Kind: state.PostEnded} })
			list := w.Issue().Comments
			if got := list[len(list)-1].Body; !strings.Contains(got, c.says) || strings.Contains(got, c.lies) {
				t.Errorf("got text:\n%s", got)
			}
		})
	}
}

// TestPostOfAnEarlierLife: the answer to the last comment of a task was lost, and the task restarted before errand
// searched for the comment. The comment is found on its pull request, although the task has none now, so that it is not
// posted twice.
func TestPostOfAnEarlierLife(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	number := w.Task.PR.Number
	ended := func(j *state.Job) {
		j.Key, j.Post = "1.ended", &state.Post{Kind: state.PostEnded, OnPR: true}
		j.Args.Number = number
	}
	w.Task.Phase = state.PhaseCancelled
	w.Do(state.JobPost, ended)
	w.Task.Phase, w.Task.Gen, w.Task.PR = state.PhaseQueued, 2, nil
	w.HoursPass()
	e := w.Do(state.JobPost, ended, workflowtest.Again)
	if on, issue := w.Ours(number), w.Ours(1); len(on) != 1 || len(issue) != 0 || event.Of[event.Posted](e).Comment.Number != number || !e.Searched() {
		t.Errorf("got %q on the pull request, %q on the issue, event %+v", on, issue, event.Of[event.Posted](e).Comment)
	}
}

// TestPostBeforeTheNextLife: the end of a task that has begun another life is not posted, nor is anything twice.
func TestPostBeforeTheNextLife(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*state.Task)
		post   state.Post
		want   int
	}{
		"canceled":              {func(t *state.Task) { t.Phase = state.PhaseCancelled }, state.Post{Kind: state.PostEnded, Reason: state.EndSaving}, 1},
		"continued":             {func(t *state.Task) { t.Phase = state.PhaseImplementing }, state.Post{Kind: state.PostEnded, Reason: state.EndSaving}, 0},
		"the work was saved":    {func(t *state.Task) { t.Phase = state.PhaseImplementing }, state.Post{Kind: state.PostEnded}, 0},
		"ended again":           {func(t *state.Task) { t.Phase, t.Gen = state.PhaseCancelled, 2 }, state.Post{Kind: state.PostEnded}, 0},
		"by another job":        {func(t *state.Task) { t.Posted = []state.Posted{{Key: "1.post", ID: 9}} }, state.Post{Kind: state.PostEnded}, 0},
		"a plan":                {func(t *state.Task) { t.Plans = []state.Plan{{Hash: "abcdef0123", Text: "Do it."}} }, state.Post{Kind: state.PostPlan, Hash: "abcdef0123"}, 1},
		"a plan of life before": {func(t *state.Task) { t.Plans = []state.Plan{{Hash: "abcdef0123", Text: "Do it.", Comment: 9}} }, state.Post{Kind: state.PostPlan, Hash: "abcdef0123"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			c.change(w.Task)
			w.Do(state.JobPost, func(j *state.Job) { j.Post = &c.post })
			if got := w.Ours(1); len(got) != c.want {
				t.Errorf("got comments %q, want %d", got, c.want)
			}
		})
	}
}
