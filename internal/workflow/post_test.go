package workflow_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

func question(j *state.Job) {
	j.Key, j.Post = "1.question-7", &state.Post{Kind: state.PostQuestion, Reason: state.AskAgent, Text: "Which one? " + secret}
}

func TestPostWritesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.do(state.JobPost, question)
	list := w.ours(1)
	if len(list) != 1 || !strings.Contains(list[0], "Which one?") || !strings.Contains(list[0], comment.Marker("1.question-7")) || strings.Contains(list[0], secret) {
		t.Fatalf("comments %q", list)
	}
	c := w.issue().Comments[0]
	if e.Kind != state.EventPosted || e.Posted.ID != c.ID || e.Posted.Node != c.NodeID || e.Posted.Key != "1.question-7" || e.Detail != "" || e.Hash != comment.BodyHash(c.Body) || e.Posted.OnPR {
		t.Errorf("event %+v, posted %+v", e, e.Posted)
	}
	if len(w.attempted) != 1 {
		t.Errorf("marked %v before the first call", w.attempted)
	}
}

// TestPostAfterAnUnknownOutcome: the comment is there, only GitHub's answer was lost.
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
			w := newWorld(t)
			w.fault(c.fault)
			if e, err := w.try(state.JobPost, question); err == nil {
				t.Fatalf("event %+v without an answer", e)
			}
			if n := len(w.ours(1)); n != c.there || len(w.attempted) != 1 {
				t.Fatalf("%d comments, marked %v", n, w.attempted)
			}
			w.hoursPass()
			e := w.do(state.JobPost, question, again)
			if n := len(w.ours(1)); n != 1 || e.Posted.ID != w.issue().Comments[0].ID || e.Detail != "looked" {
				t.Errorf("%d comments, event %+v", n, e)
			}
		})
	}
}

func TestPostRemovesYoungerTwins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.do(state.JobPost, question)
	w.do(state.JobPost, question) // as two workers would, neither knowing of the other
	check(t, second(w.ada.Comment(full, 1, "quoting: "+comment.Marker("1.question-7"))))
	e := w.do(state.JobPost, question, again)
	if list := w.ours(1); len(list) != 1 || e.Posted.ID != first.Posted.ID {
		t.Errorf("%d comments, kept %d, want the elder %d", len(list), e.Posted.ID, first.Posted.ID)
	}
	if n := len(w.issue().Comments); n != 2 {
		t.Errorf("%d comments with ada's, want 2", n)
	}
}

// TestTwinsAreLookedForLater: a twin may become visible only after the answer to the first look.
func TestTwinsAreLookedForLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.do(state.JobPost, question)
	w.do(state.JobPost, question) // the task, in its next life by now, need not know of either
	w.hoursPass()
	look := args("what", "twin", "key", itoa(first.Posted.ID), "marker", first.Posted.Key, "since", first.Posted.At.Format(time.RFC3339))
	for range 2 {
		e := w.do(state.JobDue, look)
		if e.Kind == state.EventDue {
			t.Errorf("event %+v", e)
		}
	}
	if list := w.issue().Comments; len(list) != 1 || list[0].ID != first.Posted.ID {
		t.Errorf("%d comments left", len(list))
	}
	for _, bad := range []string{"x", itoa(first.Posted.ID)} {
		if _, err := w.try(state.JobDue, args("what", "twin", "key", bad)); err == nil {
			t.Errorf("a twin of comment %s is looked for", bad)
		}
	}
}

// TestTwinsOfTheStatusComment: as any comment it may have been written by an attempt that was taken for lost.
func TestTwinsOfTheStatusComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	status := func(j *state.Job) { j.Key = "1.status" }
	if e := w.do(state.JobStatus, status); e.Detail != "" {
		t.Errorf("a first attempt says %q", e.Detail)
	}
	e := w.do(state.JobStatus, status, again)
	if e.Detail != "looked" {
		t.Errorf("a second attempt says %q, want that it looked", e.Detail)
	}
	w.do(state.JobStatus, status) // the attempt that was taken for lost
	w.task.Status = *e.Status
	w.do(state.JobDue, args("what", "twin", "key", itoa(e.Status.Comment), "marker", "1.status", "since", w.task.Trigger.At.Format(time.RFC3339)))
	if list := w.issue().Comments; len(list) != 1 || list[0].ID != e.Status.Comment {
		t.Errorf("%d status comments left", len(list))
	}
}

func TestPostOnThePullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.openPull()
	e := w.do(state.JobPost, func(j *state.Job) {
		j.Key, j.Post = "1.round-1", &state.Post{Kind: state.PostRound, OnPR: true, Text: "Done.", Items: []string{"a"}}
	})
	if len(w.ours(w.task.PR.Number)) != 1 || len(w.ours(1)) != 0 || !e.Posted.OnPR {
		t.Errorf("on the pull request %q, on the issue %q", w.ours(w.task.PR.Number), w.ours(1))
	}
}

func TestPostDoesNothingThatCannotBeMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refuse = errors.New("lease lost")
	if _, err := w.try(state.JobPost, question); !errors.Is(err, w.refuse) {
		t.Errorf("error %v", err)
	}
	if n := len(w.ours(1)); n != 0 {
		t.Errorf("%d comments", n)
	}
}

func TestPostOfAPlanThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.do(state.JobPost, func(j *state.Job) { j.Post = &state.Post{Kind: state.PostPlan, Hash: "00000000"} })
	if e.Kind == state.EventPosted || len(w.ours(1)) != 0 {
		t.Errorf("event %+v, comments %q", e, w.ours(1))
	}
}

// sent takes the status job and stores what it says.
func (w *world) sent(change ...func(*state.Job)) state.Event {
	w.t.Helper()
	e := w.do(state.JobStatus, change...)
	if e.Kind == state.EventStatusSent {
		w.task.Status = *e.Status
	}
	return e
}

func TestStatusIsOneComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sent()
	first := w.task.Status
	if len(w.ours(1)) != 1 || first.Comment != w.issue().Comments[0].ID || first.Shown != w.task.Visible || first.At.IsZero() {
		t.Fatalf("status %+v, comments %q", first, w.ours(1))
	}
	if e := w.sent(); e.Kind == state.EventStatusSent {
		t.Error("written again though it shows the newest state")
	}
	w.task.Phase = state.PhaseFailed
	w.task.Visible++
	w.task.End = &state.End{Reason: "It broke: " + secret, Hint: "Mend it."}
	before := w.ours(1)[0]
	w.sent()
	after := w.ours(1)
	if len(after) != 1 || after[0] == before || strings.Contains(after[0], secret) || w.task.Status.Shown != w.task.Visible || w.task.Status.Comment != first.Comment {
		t.Errorf("status %+v, comments %q", w.task.Status, after)
	}
}

func TestADeletedStatusCommentIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sent()
	check(t, w.ada.DeleteComment(full, w.task.Status.Comment))
	w.task.Visible++
	w.sent()
	if list := w.issue().Comments; len(list) != 1 || list[0].ID != w.task.Status.Comment {
		t.Errorf("%d comments, status %+v", len(list), w.task.Status)
	}
}

// TestAStatusThatWasFoundIsBroughtUpToDate: the answer to the first attempt was lost, and the task
// has moved on since; what is found shows the old state.
func TestAStatusThatWasFoundIsBroughtUpToDate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fault(simgithub.Fault{Method: "POST", Path: "/comments$", Count: 1, After: true, Cut: true})
	if _, err := w.try(state.JobStatus); err == nil {
		t.Fatal("no error")
	}
	w.task.Phase = state.PhaseFailed
	w.task.Visible++
	w.task.End = &state.End{Reason: "The roof came down.", Hint: "Mend it."}
	w.sent(again)
	if list := w.ours(1); len(list) != 1 || !strings.Contains(list[0], "The roof came down.") || w.task.Status.Shown != w.task.Visible {
		t.Errorf("status %+v, comments %q", w.task.Status, list)
	}
}

func TestAStatusThatCannotBeWrittenStaysDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sent()
	w.task.Visible++
	w.fault(simgithub.Fault{Method: "PATCH", Path: "/comments/", Status: http.StatusBadGateway})
	if _, err := w.try(state.JobStatus); err == nil {
		t.Error("no error")
	}
	if n := len(w.ours(1)); n != 1 {
		t.Errorf("%d comments", n)
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, err := w.ada.Comment(full, 1, "@errand plan")
	check(t, err)
	for range 2 {
		w.do(state.JobReact, args("content", "eyes"))
		w.do(state.JobReact, args("content", "eyes", "comment", itoa(c.ID)))
	}
	w.task = nil // who may not start a task is told so without one
	_, err = w.steps.Handle(t.Context(), &state.Job{Kind: state.JobReact, Task: state.TaskKey{Repo: w.repo.ID, Issue: 1}, Args: map[string]string{
		"content": "confused", "installation": itoa(w.installationOf()), "owner": "acme", "name": "slug",
	}})
	check(t, err)
	i := w.number(1)
	if len(i.Reactions) != 2 || len(i.Comments[0].Reactions) != 1 || i.Comments[0].Reactions[0].Content != "eyes" {
		t.Errorf("reactions on the issue %d, on the comment %d", len(i.Reactions), len(i.Comments[0].Reactions))
	}
	for name, a := range map[string][]string{"comment": {"content", "eyes", "comment", "x"}, "content": {"content", "dance"}} {
		w.task = &state.Task{Key: state.TaskKey{Repo: w.repo.ID, Issue: 1}, TaskIssue: state.TaskIssue{Installation: w.installationOf(), Repo: state.Repo{ID: w.repo.ID, Owner: "acme", Name: "slug"}}}
		if _, err := w.try(state.JobReact, args(a...)); err == nil {
			t.Errorf("a bad %s is no error", name)
		}
	}
}

func TestVet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by    string
		allow []string
		want  state.Permission
	}{
		"admin":                {"ada", nil, state.PermissionAdmin},
		"writer":               {"bob", nil, state.PermissionWrite},
		"triage":               {"errand-bot", nil, state.PermissionRead},
		"stranger":             {"eve", nil, state.PermissionRead},
		"bot":                  {"ci[bot]", nil, state.PermissionNone},
		"listed without write": {"ci[bot]", []string{"CI[bot]"}, state.PermissionRead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.AddBot("ci[bot]")
			cfg := w.cfg
			cfg.AllowBots = c.allow
			w.steps = newSteps(cfg)
			key, inst := w.task.Key, w.task.Installation
			in := state.Event{Kind: state.EventTriggered, Task: key, ID: "x", By: w.person(c.by), Installation: inst, Repo: &state.Repo{ID: key.Repo, Owner: "acme", Name: "slug"}}
			for _, task := range []*state.Task{w.task, nil} { // before there is a task, too
				w.task = task
				e, err := w.steps.Handle(t.Context(), &state.Job{Kind: state.JobVet, Task: key, Event: &in})
				check(t, err)
				if e.Permission != c.want && !(c.want == state.PermissionRead && e.Permission == state.PermissionNone) {
					t.Errorf("permission %q, want %q", e.Permission, c.want)
				}
				if e.Kind != in.Kind || e.ID != "x" || e.Permission.CanWrite() != c.want.CanWrite() {
					t.Errorf("event %+v", e)
				}
			}
		})
	}
}

func TestHandleRefusesUnknownKinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.try("dance"); err == nil {
		t.Error("a job of an unknown kind is done")
	}
	key := w.task.Key
	w.task = nil
	for _, k := range []state.JobKind{state.JobStart, state.JobLaunch, state.JobPost, state.JobStatus} {
		if e, err := w.steps.Handle(t.Context(), &state.Job{Kind: k, Task: key, Created: time.Now()}); err != nil || e.Kind == "" {
			t.Errorf("%s without a task: %+v, %v", k, e, err)
		}
	}
	if fmt.Sprint(w.ours(1)) != "[]" {
		t.Errorf("comments without a task: %q", w.ours(1))
	}
}

// TestTheLastCommentLooksAtTheBranch: what it says of a branch is what GitHub has when it is written.
func TestTheLastCommentLooksAtTheBranch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change     func(w *world) error
		says, lies string
	}{
		"it is there":         {func(*world) error { return nil }, "stays", "deleted"},
		"somebody deleted it": {func(w *world) error { return w.ada.DeleteBranch(full, w.task.Branch.Name) }, "was deleted", "stays"},
		"nobody can tell": {func(w *world) error {
			w.fault(simgithub.Fault{Path: "/git/ref", Status: 502})
			return nil
		}, "cancelled", "The branch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.openPull()
			w.task.Phase, w.task.PR = state.PhaseCancelled, nil
			check(t, c.change(w))
			w.do(state.JobPost, func(j *state.Job) { j.Post = &state.Post{Kind: state.PostEnded} })
			list := w.issue().Comments
			if got := list[len(list)-1].Body; !strings.Contains(got, c.says) || strings.Contains(got, c.lies) {
				t.Errorf("it says:\n%s", got)
			}
		})
	}
}

// TestPostOfAnEarlierLife: the answer to the last comment of a task was lost, and the task began anew before it was looked for. It is
// found on its pull request, although the task has none now, so that it does not stand twice.
func TestPostOfAnEarlierLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.openPull()
	number := w.task.PR.Number
	ended := func(j *state.Job) {
		j.Key, j.Post = "1.ended", &state.Post{Kind: state.PostEnded, OnPR: true}
		j.Args = map[string]string{"number": itoa(int64(number))}
	}
	w.do(state.JobPost, ended)
	w.task.Gen, w.task.PR = 2, nil
	w.hoursPass()
	e := w.do(state.JobPost, ended, again)
	if on, issue := w.ours(number), w.ours(1); len(on) != 1 || len(issue) != 0 || e.Posted.Number != number || e.Detail != "looked" {
		t.Errorf("on the pull request %q, on the issue %q, event %+v", on, issue, e.Posted)
	}
	if _, err := w.try(state.JobPost, ended, args("number", "x")); err == nil {
		t.Error("a comment on no pull request is posted")
	}
}
