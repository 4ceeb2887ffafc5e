package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// ask gives a command to update the branch, in a comment of its own.
func (l *life) ask(by state.Person, comment int64, verbs ...state.Verb) {
	var orders []state.Order
	for _, v := range verbs {
		orders = append(orders, state.Order{Verb: v})
	}
	e := order(by, state.PermissionWrite, orders[0])
	p := event.Of[event.Commented](e)
	p.Orders = orders
	p.Comment.ID = comment
	e.Payload = p
	l.do(e)
}

// answers returns whom the last event's comments about the base answer, and with which reason.
func (l *life) answers() (list []string) {
	for _, j := range l.jobs {
		if j.Post != nil && j.Post.Kind == state.PostBase {
			list = append(list, j.Post.By.Login+" "+j.Post.Reason)
		}
	}
	return list
}

// TestEveryRequestIsAnsweredOnce: several people ask while an agent works, and while the first update is carried out. Each of them gets one
// answer, in the order of the commands, however the updates end.
func TestEveryRequestIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	other := state.Person{ID: 9, Login: "hopper"}
	failure := event.StepFailed{Failure: state.Failure{Job: state.JobUpdate, Class: state.ClassGitHub, Reason: "GitHub does not answer."}}
	for name, c := range map[string]struct {
		ask  func(*life)
		want string
	}{
		"one":                    {func(l *life) { l.ask(writer, 60, state.VerbUpdate) }, "ada updated"},
		"two":                    {func(l *life) { l.ask(writer, 60, state.VerbUpdate); l.ask(other, 61, state.VerbRebase) }, "ada updated, hopper current"},
		"one, twice":             {func(l *life) { l.ask(writer, 60, state.VerbUpdate); l.ask(writer, 61, state.VerbUpdate) }, "ada updated, ada current"},
		"both in one comment":    {func(l *life) { l.ask(writer, 60, state.VerbUpdate, state.VerbRebase) }, "ada updated"},
		"the same comment again": {func(l *life) { l.ask(writer, 60, state.VerbUpdate); l.ask(writer, 60, state.VerbUpdate) }, "ada updated"},
	} {
		for _, working := range []bool{false, true} {
			l := openPR(t)
			if working {
				l.review()
			}
			c.ask(l)
			if working {
				l.endReview("H2")
			}
			var got []string
			result := event.BaseRead{Result: event.BaseUpdated, Head: "U"}
			for range 4 {
				if l.task.PR.Update != (state.UpdateRequest{}) && l.updates() != 0 {
					t.Fatalf("%s: the command %+v waits for nothing", name, l.task.PR.Update)
				}
				l.compared(result)
				got = append(got, l.answers()...)
				result = event.BaseRead{Result: event.BaseCurrent}
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%s, working %v: got %q, want %q", name, working, got, c.want)
			}
		}
	}
	l := openPR(t)
	l.ask(writer, 60, state.VerbUpdate)
	l.ask(other, 61, state.VerbUpdate)
	if l.do(event.Event{Payload: failure}); !slices.Equal(l.answers(), []string{"ada refused"}) || l.updates() != 0 {
		t.Errorf("got %q, an update after %s", l.answers(), l.updates())
	}
	if l.compared(event.BaseRead{Result: event.BaseUpdated, Head: "U"}); !slices.Equal(l.answers(), []string{"hopper updated"}) {
		t.Errorf("got %q", l.answers())
	}
}

// TestTooManyRequests: no more commands wait than errand stores, and the next one is refused.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	l := openPR(t)
	for n := range maxUpdateRequests {
		l.ask(writer, int64(60+n), state.VerbUpdate)
	}
	if l.ask(writer, 99, state.VerbUpdate); !slices.Contains(l.posted(), state.ReplyUpdatesFull) || len(updateRequests(l.task.PR)) != maxUpdateRequests {
		t.Errorf("got %q and %d commands", l.posted(), len(updateRequests(l.task.PR)))
	}
}

// TestRequestsEndWithThePullRequest: commands that are not carried out before the pull request is closed, or the task ends, are answered and
// forgotten. Nothing is updated when somebody continues, and an update that GitHub made in the same moment is not answered again.
func TestRequestsEndWithThePullRequest(t *testing.T) {
	t.Parallel()
	closed := event.Event{By: writer, Payload: event.PRClosed{}}
	for name, c := range map[string]struct {
		end  event.Event
		want string
	}{
		"closed":   {closed, state.BaseClosed},
		"merged":   {event.Event{By: writer, Payload: event.PRClosed{Merged: true}}, state.BaseMerged},
		"canceled": {order(writer, state.PermissionWrite, state.Order{Verb: state.VerbCancel}), state.BaseEnded},
		"no issue": {event.Event{Payload: event.IssueGone{Lost: "it was deleted"}}, ""},
	} {
		for _, working := range []bool{false, true} {
			l := openPR(t)
			if working {
				l.review()
			}
			l.ask(writer, 60, state.VerbUpdate)
			l.ask(state.Person{ID: 9, Login: "hopper"}, 61, state.VerbRebase)
			l.ask(writer, 62, state.VerbRebase) // one comment answers both
			known := l.task.PR.Update
			var want []string
			if c.want != "" {
				want = []string{"ada " + c.want, "hopper " + c.want}
			}
			if l.do(c.end); !slices.Equal(l.answers(), want) || len(updateRequests(l.task.PR)) > 0 {
				t.Errorf("%s, working %v: got %q, want %q; %+v wait", name, working, l.answers(), want, updateRequests(l.task.PR))
			}
			if l.task.Ended() {
				continue
			}
			l.do(event.Event{Payload: event.BaseRead{Known: "H", Head: "U", Base: "main", Result: event.BaseUpdated, Request: known}})
			if len(l.answers()) > 0 {
				t.Errorf("%s: got the second answer %q", name, l.answers())
			}
			l.do(event.Event{By: writer, Payload: event.PRReopened{}})
			if l.want(state.PhasePROpen); l.updates() == 0 {
				t.Errorf("%s: the command is carried out after the pull request was reopened", name)
			}
		}
	}
}

// TestStuckUpdatesAreTriedAgain: while the branch conflicts with its base, and after errand stopped updating it, the branch is compared again
// when somebody pushes or a person with write access acts. A plain comment is no such act.
func TestStuckUpdatesAreTriedAgain(t *testing.T) {
	t.Parallel()
	gather := DefaultPolicy().Gather
	bot := state.Person{ID: 5, Login: "format[bot]", Bot: true}
	review := func(may state.Permission) event.Event {
		return event.Event{By: writer, Permission: may, Payload: event.Reviewed{Review: state.Review{ID: 1, State: "COMMENTED", Body: "Better."}}}
	}
	plain := event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 70, Body: "Hm."}}}
	for name, c := range map[string]struct {
		act  event.Event
		want bool
	}{
		"a person's push":        {event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}}, true},
		"a bot's push":           {event.Event{By: bot, Payload: event.Pushed{Head: "theirs"}}, true},
		"a push seen by a sweep": {event.Event{Payload: event.Pushed{Head: "theirs"}}, true},
		"the known head":         {event.Event{By: writer, Payload: event.Pushed{Head: "H"}}, false},
		"a writer's review":      {review(state.PermissionWrite), true},
		"a reader's review":      {review(state.PermissionRead), false},
		"a writer's command":     {order(writer, state.PermissionWrite, state.Order{Verb: state.VerbStatus}), true},
		"a reader's command":     {order(visitor, state.PermissionRead, state.Order{Verb: state.VerbStatus}), false},
		"a plain comment":        {plain, false},
		"a hint about checks":    {event.Event{Payload: event.ChecksChanged{}}, false},
	} {
		for stuck, bring := range map[string]func(*life){
			"a conflict and a workflow": func(l *life) { l.compared(event.BaseRead{Result: event.BaseConflict, Workflow: "w"}) },
			"a conflict after the limit": func(l *life) {
				l.task.PR.Updates = state.MaxUpdates
				l.compared(event.BaseRead{Result: event.BaseConflict})
			},
			"behind after the limit": func(l *life) { l.compared(event.BaseRead{Result: event.BaseLimit}) },
			"nothing":                func(*life) {},
		} {
			l := openPR(t)
			bring(l)
			stopped := l.task.PR.Updates > state.MaxUpdates
			want := c.want && stuck != "nothing"
			if l.do(c.act); (l.updates() == gather) != want || l.task.Branch.BaseMoved != want {
				t.Errorf("%s, %s: got an update after %s, want one: %v", stuck, name, l.updates(), want)
			}
			if still := l.task.PR.Updates > state.MaxUpdates; stopped && still && want && name != "a bot's push" && name != "a push seen by a sweep" {
				t.Errorf("%s, %s: errand still does not update the branch", stuck, name)
			}
		}
	}
	l := openPR(t)
	l.compared(event.BaseRead{Result: event.BaseConflict, Workflow: "w"})
	l.review()
	l.do(event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}})
	if l.endReview("H2"); l.updates() != gather {
		t.Errorf("got an update after %s at the end of a round during which somebody pushed, want %s", l.updates(), gather)
	}
}

// TestComparisonOutsideOfRest: what was compared before a round began says nothing about its end. Nothing is posted, a command waits, and
// the branch is compared again. Only an update that GitHub made counts.
func TestComparisonOutsideOfRest(t *testing.T) {
	t.Parallel()
	for _, r := range []event.BaseRead{
		{Result: event.BaseConflict, Newest: "b"}, {Result: event.BaseConflict, Workflow: "w"}, {Result: event.BaseLimit}, {Result: event.BaseCurrent},
		{Result: event.BaseRefused, Refusal: "No."}, {Result: event.BaseUnknown, Reads: maxBaseReads}, {Result: event.BaseUpdated, Head: "U"},
	} {
		l := openPR(t)
		l.review()
		l.ask(writer, 60, state.VerbUpdate)
		l.compared(r)
		updated := r.Result == event.BaseUpdated
		if len(l.bases()) > 0 != updated || (l.task.PR.Update == state.UpdateRequest{}) != updated {
			t.Errorf("%s: got %q, the request %+v", r.Result, l.bases(), l.task.PR.Update)
		}
		if l.task.PR.Conflict || l.task.PR.Updates > 1 || l.task.Phase != state.PhaseAddressingReview || !updated && !l.task.Branch.BaseMoved {
			t.Errorf("%s: got %+v, base moved %v", r.Result, l.task.PR, l.task.Branch.BaseMoved)
		}
		if l.endReview("H2"); l.updates() < 0 != updated {
			t.Errorf("%s: got an update after %s at the end of the round", r.Result, l.updates())
		}
	}
}

// TestConflictAtTheRunLimit: the comment about a conflict that no agent resolves names the limit that was reached.
func TestConflictAtTheRunLimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs, updates int
		want          string
	}{
		"too many runs":    {maxUnattendedLaunches, 1, state.BaseRunLimit},
		"too many updates": {3, state.MaxUpdates, state.BaseConflictLeft},
		"both":             {maxUnattendedLaunches, state.MaxUpdates, state.BaseConflictLeft},
		"neither":          {3, 1, ""},
	} {
		l := openPR(t)
		l.task.UnattendedLaunches, l.task.PR.Updates = c.runs, c.updates
		l.compared(event.BaseRead{Result: event.BaseConflict, Newest: "b"})
		if got := strings.Join(l.bases(), " "); got != c.want || (l.task.Phase == state.PhaseAddressingReview) != (c.want == "") {
			t.Errorf("%s: got %q in %s, want %q", name, got, l.task.Phase, c.want)
		}
		if l.compared(event.BaseRead{Result: event.BaseConflict, Newest: "b"}); len(l.bases()) > 0 {
			t.Errorf("%s: got %q again", name, l.bases())
		}
	}
}
