package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// openPR returns a task whose pull request is open.
func openPR(t *testing.T) *life {
	l := newLife(t)
	l.toPR()
	l.want(state.PhasePROpen)
	return l
}

// compared applies a comparison of the branch with its base, for the command that the task knows.
func (l *life) compared(r event.BaseRead) {
	l.t.Helper()
	r.Known, r.Base, r.Request = l.task.Branch.Head, "main", l.task.PR.Update
	if r.Head == "" {
		r.Head = r.Known
	}
	l.do(event.Event{Payload: r})
}

// bases returns the reasons of the comments about the base that the last event enqueued.
func (l *life) bases() (list []string) {
	for _, j := range l.jobs {
		if j.Post != nil && j.Post.Kind == state.PostBase {
			list = append(list, j.Post.Reason)
		}
	}
	return list
}

// updates returns after which time the job update is due, or -1 if the last event enqueued none.
func (l *life) updates() time.Duration {
	for _, j := range l.jobs {
		if j.Kind == state.JobUpdate {
			return max(0, j.NotBefore.Sub(l.now))
		}
	}
	return -1
}

// review brings a task with a pull request to the agent's work on a review.
func (l *life) review() {
	l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: fmt.Sprintf("review:%d", l.now.Unix()), Kind: state.FeedbackReview, By: writer, Body: "Better."}}}})
	l.launch()
	l.want(state.PhaseAddressingReview)
}

// endReview ends the agent's work on a review, which published head.
func (l *life) endReview(head string) {
	l.end(state.RunResult{Outcome: "done"})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: head, LocalTree: head}}})
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: head, Tree: head}}})
	l.do(event.Event{Payload: event.BranchMoved{}})
	l.do(event.Event{Payload: event.ThreadsAnswered{}})
	l.want(state.PhasePROpen)
}

// TestWhoUpdates: people with write access have the branch updated, as they give any command; nobody else has. After the work it is done if
// somebody asked while the agent worked.
func TestWhoUpdates(t *testing.T) {
	t.Parallel()
	machineUser := state.Person{ID: 4, Login: "errand-bot"}
	bot := state.Person{ID: 5, Login: "dependabot[bot]", Bot: true}
	for name, c := range map[string]struct {
		by    state.Person
		may   state.Permission
		verb  state.Verb
		bring func(*life)
		want  time.Duration // until the update; -1 for never
		reply string
	}{
		"a writer":               {by: writer, may: state.PermissionWrite, verb: state.VerbUpdate},
		"an admin":               {by: writer, may: state.PermissionAdmin, verb: state.VerbRebase},
		"the machine user":       {by: machineUser, may: state.PermissionWrite, verb: state.VerbUpdate}, // a writer as any other
		"a reader":               {by: visitor, may: state.PermissionRead, verb: state.VerbUpdate, want: -1},
		"a stranger":             {by: visitor, may: state.PermissionNone, verb: state.VerbRebase, want: -1},
		"a bot":                  {by: bot, may: state.PermissionNone, verb: state.VerbUpdate, want: -1},
		"while an agent works":   {by: writer, may: state.PermissionWrite, verb: state.VerbUpdate, bring: (*life).review, want: -1, reply: state.ReplyUpdateLater},
		"without a pull request": {by: writer, may: state.PermissionWrite, verb: state.VerbUpdate, bring: func(l *life) { l.task.PR = nil }, want: -1, reply: state.ReplyNoOpenPR},
		"after it was closed": {by: writer, may: state.PermissionWrite, verb: state.VerbUpdate, bring: func(l *life) {
			l.do(event.Event{By: writer, Payload: event.PRClosed{}})
		}, want: -1, reply: state.ReplyNoOpenPR},
		"after the end": {by: writer, may: state.PermissionWrite, verb: state.VerbRebase, bring: func(l *life) {
			l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}})
		}, want: -1, reply: state.ReplyNoOpenPR},
	} {
		l := openPR(t)
		if c.bring != nil {
			c.bring(l)
		}
		phase := l.task.Phase
		l.do(order(c.by, c.may, state.Order{Verb: c.verb}))
		if got := l.updates(); got != c.want || l.task.Phase != phase {
			t.Errorf("%s: got an update after %s in %s, want %s", name, got, l.task.Phase, c.want)
		}
		if c.reply != "" != slices.Contains(l.posted(), c.reply) {
			t.Errorf("%s: got %q, want %q", name, l.posted(), c.reply)
		}
		asked := l.task.PR != nil && l.task.PR.Update != state.UpdateRequest{}
		if asked != (c.want == 0 || c.reply == state.ReplyUpdateLater) || asked && l.task.PR.Update.Rebase != (c.verb == state.VerbRebase) {
			t.Errorf("%s: got the request %+v", name, l.task.PR)
		}
	}
}

// TestWhenTheBaseIsCompared: pushes to the base only have errand compare, a moment later; so does the moment at which nothing else is
// missing. What happens while an agent works is made up for.
func TestWhenTheBaseIsCompared(t *testing.T) {
	t.Parallel()
	gather := DefaultPolicy().Gather
	approved := func(by state.Person, own bool) event.Event {
		return event.Event{By: by, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 1, State: state.ReviewApproved, Machine: own}}}
	}
	green := event.Event{Payload: event.ChecksRead{Checks: "success", Head: "H"}}
	moved := event.Event{Payload: event.BaseMoved{}}
	for name, c := range map[string]struct {
		events []event.Event
		want   time.Duration
	}{
		"a push to the base":           {[]event.Event{moved}, gather},
		"approved, but not green":      {[]event.Event{approved(writer, false)}, -1},
		"green, but not approved":      {[]event.Event{green}, -1},
		"approved and green":           {[]event.Event{approved(writer, false), green}, gather},
		"green and approved":           {[]event.Event{green, approved(writer, false)}, gather},
		"approved by the machine user": {[]event.Event{green, approved(state.Person{ID: 4, Login: "errand-bot"}, true)}, -1},
		"approved and green as before": {[]event.Event{green, approved(writer, false), green}, -1},
		"a push to the branch":         {[]event.Event{{By: writer, Payload: event.Pushed{Head: "theirs"}}}, -1},
	} {
		l := openPR(t)
		for _, e := range c.events {
			l.do(e)
		}
		if got := l.updates(); got != c.want {
			t.Errorf("%s: got an update after %s, want %s", name, got, c.want)
		}
	}
	l := openPR(t)
	l.review()
	if l.do(moved); l.updates() != -1 {
		t.Error("the branch is compared while an agent works on it")
	}
	if l.endReview("H2"); l.updates() != gather {
		t.Errorf("got an update after %s at the end of the round, want %s", l.updates(), gather)
	}
	l.compared(event.BaseRead{Result: event.BaseCurrent})
	l.review()
	if l.endReview("H3"); l.updates() != -1 {
		t.Error("the branch is compared again, although the base did not move")
	}
}

// TestUpdateResults: a new head is stored and its checks start anew, a command is answered once, and a refusal that nobody asked for is
// reported once.
func TestUpdateResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read  event.BaseRead
		asked string // the answer to a command
		own   string // the comment without one
	}{
		"updated":              {event.BaseRead{Result: event.BaseUpdated, Head: "U"}, state.BaseUpdated, ""},
		"rebased":              {event.BaseRead{Result: event.BaseUpdated, Head: "U", Rebased: true}, state.BaseRebased, ""},
		"current":              {event.BaseRead{Result: event.BaseCurrent}, state.BaseCurrent, ""},
		"current by a push":    {event.BaseRead{Result: event.BaseCurrent, Head: "U"}, state.BaseCurrent, ""},
		"unknown for long":     {event.BaseRead{Result: event.BaseUnknown, Reads: maxBaseReads}, state.BaseUnknown, ""},
		"refused":              {event.BaseRead{Result: event.BaseRefused, Refusal: "No."}, state.BaseRefused, state.BaseRefused},
		"a workflow":           {event.BaseRead{Result: event.BaseRefused, Workflow: "w"}, state.BaseWorkflows, state.BaseWorkflows},
		"conflict, a workflow": {event.BaseRead{Result: event.BaseConflict, Workflow: "w"}, state.BaseConflictWorkflows, state.BaseConflictWorkflows},
		"too often":            {event.BaseRead{Result: event.BaseLimit}, state.BaseLeft, state.BaseLeft},
	} {
		for _, asked := range []bool{false, true} {
			l := openPR(t)
			l.do(event.Event{Payload: event.ChecksRead{Checks: "success", Head: "H"}})
			want := c.own
			if asked {
				l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbUpdate}))
				want = c.asked
			}
			for n := range 2 {
				before := l.task.Branch.Head
				l.compared(c.read)
				if got := strings.Join(l.bases(), " "); n == 0 && got != want || n > 0 && got != "" {
					t.Errorf("%s, asked %v, time %d: got %q, want %q", name, asked, n+1, got, want)
				}
				if c.read.Head != "" && (l.task.Branch.Head != c.read.Head || l.task.PR.Checks != "") {
					t.Errorf("%s: got head %s with checks %q", name, l.task.Branch.Head, l.task.PR.Checks)
				}
				if moved := l.task.Branch.Head != before; l.task.Phase != state.PhasePROpen || has(l.jobs, state.JobLaunch) || moved && n > 0 {
					t.Errorf("%s: got phase %s, jobs %v", name, l.task.Phase, kindsOf(l.jobs))
				}
			}
			if l.task.PR.Update != (state.UpdateRequest{}) {
				t.Errorf("%s: the command is not done: %+v", name, l.task.PR.Update)
			}
		}
	}
}

// TestTwoCommandsToUpdate: a command that comes while another one is carried out is carried out, too.
func TestTwoCommandsToUpdate(t *testing.T) {
	t.Parallel()
	l := openPR(t)
	l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbUpdate}))
	first := event.BaseRead{Known: "H", Head: "U", Base: "main", Result: event.BaseUpdated, Request: l.task.PR.Update}
	second := order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRebase})
	second.Comment().ID = 61
	l.do(second)
	if l.do(event.Event{Payload: first}); !slices.Equal(l.bases(), []string{state.BaseUpdated}) || !l.task.PR.Update.Rebase {
		t.Errorf("got %q, the request %+v", l.bases(), l.task.PR.Update)
	}
	if l.compared(event.BaseRead{Result: event.BaseCurrent}); !slices.Equal(l.bases(), []string{state.BaseCurrent}) || l.task.PR.Update.Rebase {
		t.Errorf("got %q, the request %+v", l.bases(), l.task.PR.Update)
	}
}

// TestConflictWithTheBase: a conflict is a round, a limited number of times in a row: a person's push, review or command begins a new row, a
// bot's push does not.
func TestConflictWithTheBase(t *testing.T) {
	t.Parallel()
	conflict := event.BaseRead{Result: event.BaseConflict, Newest: strings.Repeat("b", 40)}
	for name, c := range map[string]struct {
		act  event.Event
		more bool
	}{
		"nobody":             {event.Event{Payload: event.BaseMoved{}}, false},
		"a person's push":    {event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}}, true},
		"the same push":      {event.Event{By: writer, Payload: event.Pushed{Head: "H"}}, false},
		"a bot's push":       {event.Event{By: state.Person{ID: 5, Login: "format[bot]", Bot: true}, Payload: event.Pushed{Head: "theirs"}}, false},
		"GitHub's push":      {event.Event{By: state.Person{ID: 6, Login: "web-flow"}, Payload: event.Pushed{Head: "theirs"}}, false},
		"a person's command": {order(writer, state.PermissionWrite, state.Order{Verb: state.VerbUpdate}), true},
		"a reader's command": {order(visitor, state.PermissionRead, state.Order{Verb: state.VerbUpdate}), false},
	} {
		l := openPR(t)
		for n := range state.MaxUpdates {
			l.compared(conflict)
			if l.want(state.PhaseAddressingReview, state.JobLaunch); l.task.Round != n+1 {
				t.Fatalf("got round %d, want %d", l.task.Round, n+1)
			}
			f := l.task.Feedback[len(l.task.Feedback)-1]
			if f.Kind != state.FeedbackConflict || f.Base != conflict.Newest || !strings.Contains(f.Body, conflict.Newest) {
				t.Fatalf("got feedback %+v", f)
			}
			l.launch()
			if l.endReview("H"); l.updates() < 0 {
				t.Fatal("the branch is not compared again after the round")
			}
		}
		for _, want := range []string{state.BaseConflictLeft, ""} {
			if l.compared(conflict); l.task.Phase != state.PhasePROpen || strings.Join(l.bases(), " ") != want || !l.task.PR.Conflict {
				t.Errorf("got %s, %q, want %q", l.task.Phase, l.bases(), want)
			}
		}
		l.do(c.act)
		if l.compared(conflict); (l.task.Phase == state.PhaseAddressingReview) != c.more {
			t.Errorf("%s: got %s, want another round: %v", name, l.task.Phase, c.more)
		}
	}
}

// TestOutdatedComparison: what is known of a head is not applied to a newer one, which is compared instead. An update that a push followed
// leaves the push's head.
func TestOutdatedComparison(t *testing.T) {
	t.Parallel()
	for _, result := range []event.BaseResult{event.BaseConflict, event.BaseCurrent, event.BaseRefused, event.BaseUpdated} {
		l := openPR(t)
		read := event.BaseRead{Known: "H", Head: "H", Base: "main", Newest: "b", Result: result}
		if result == event.BaseUpdated {
			read.Head = "U"
		}
		l.do(event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}})
		l.do(event.Event{Payload: read})
		if l.task.Branch.Head != "theirs" || l.task.Phase != state.PhasePROpen || l.task.PR.Conflict || len(l.bases()) > 0 {
			t.Errorf("%s: got head %s in %s, %q", result, l.task.Branch.Head, l.task.Phase, l.bases())
		}
		if again := l.updates() >= 0; again != (result != event.BaseUpdated) {
			t.Errorf("%s: compared again: %v", result, again)
		}
	}
}

// TestFailedUpdate: whoever asked for an update learns that it failed, and the task continues.
func TestFailedUpdate(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		l := openPR(t)
		if asked {
			l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbUpdate}))
		}
		l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobUpdate, Class: state.ClassGitHub, Reason: "GitHub does not answer."}}})
		if l.want(state.PhasePROpen); len(l.bases()) > 0 != asked || l.task.PR.Update != (state.UpdateRequest{}) {
			t.Errorf("asked %v: got %q, the request %+v", asked, l.bases(), l.task.PR.Update)
		}
	}
}

// TestUpdatesAreCounted: updates count until a person acts, also those that GitHub makes later and those that a push followed.
func TestUpdatesAreCounted(t *testing.T) {
	t.Parallel()
	l := openPR(t)
	for n, r := range []event.BaseRead{
		{Result: event.BaseUpdated, Head: "U1"}, {Result: event.BaseUnknown, Begun: true}, {Result: event.BaseUpdated, Head: "U2", Rebased: true},
	} {
		if l.compared(r); l.task.PR.Updates != n+1 {
			t.Errorf("got %d updates, want %d", l.task.PR.Updates, n+1)
		}
	}
	l.do(order(visitor, state.PermissionRead, state.Order{Verb: state.VerbStatus}))
	if l.task.PR.Updates != state.MaxUpdates {
		t.Errorf("got %d updates after a reader's command, want %d", l.task.PR.Updates, state.MaxUpdates)
	}
	if l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbStatus})); l.task.PR.Updates != 0 {
		t.Errorf("got %d updates after a writer's command, want none", l.task.PR.Updates)
	}
}
