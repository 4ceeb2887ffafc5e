package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// tell applies a mention of a writer that is a message, and returns the reactions and replies that follow at once.
func (l *life) tell(id int64, by state.Person, text string) []string {
	l.t.Helper()
	l.said(id, by, state.Comment{Body: text, Mention: true})
	return l.posted()
}

// tellAfter applies `after: text`.
func (l *life) tellAfter(id int64, by state.Person, text string) {
	m := state.Comment{ID: id, At: l.now, Node: "c", Body: "@errand after: " + text, Mention: true}
	l.do(event.Event{By: by, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &m, Orders: []state.Order{{Verb: state.VerbMessage, Text: text, After: true}}}})
}

// read applies the delayed job of the messages to the active run.
func (l *life) read(reread ...state.Comment) {
	l.do(event.Event{Payload: event.Due{For: state.DueSteer, Run: l.task.Run.ID, Reread: reread}})
}

// goesOn applies an activity update of the active run.
func (l *life) goesOn(between bool) {
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Progress{LastSeq: 1, Session: "s-1", Turns: 3, LastActivity: l.now, Between: between}})
}

// interrupted fails unless the last event stopped the run and launched its continuation.
func (l *life) interrupted(old string) {
	l.t.Helper()
	stop := jobOf(l.jobs, state.JobStop)
	last := l.task.Runs[len(l.task.Runs)-1]
	if stop.Run != old || !stop.Args.Continues || !l.enqueued(state.JobLaunch) {
		l.t.Fatalf("got jobs %v, want run %s stopped without saving its work, and another launched", kindsOf(l.jobs), old)
	}
	if last.ID != old || last.Status != state.StatusInterrupted || last.Steering != nil || l.task.Run.Kind != last.Kind || l.task.Run.Session != last.Session || l.task.Run.Attempt != last.Attempt {
		l.t.Errorf("got run %+v after %+v, want the same session, kind and attempt", l.task.Run, last)
	}
}

// steeredPhases bring a task to each phase in which an agent works.
func steeredPhases() map[string]struct {
	to   func(*life)
	kind state.FeedbackKind
} {
	return map[string]struct {
		to   func(*life)
		kind state.FeedbackKind
	}{
		"planning":     {func(l *life) { l.trigger(); l.start(); l.launch() }, state.FeedbackComment},
		"implementing": {func(l *life) { l.implementing() }, state.FeedbackCondition},
		"a review round": {func(l *life) {
			l.toPR()
			l.said(40, writer, state.Comment{Body: "Rename it.", Mention: true, OnPR: true})
			l.do(event.Event{Payload: event.Gathered{}})
			l.launch()
		}, state.FeedbackComment},
	}
}

// TestMessagesInterruptTheAgent: messages of several people are gathered, the run is interrupted when its agent executes no tool,
// and its session continues with all of them, in order.
func TestMessagesInterruptTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range steeredPhases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.to(l)
			l.goesOn(false)
			old, phase := l.task.Run.ID, l.task.Phase
			if got := l.tell(50, writer, "Use a map."); !slices.Equal(got, []string{"eyes"}) {
				t.Errorf("got %v at once, want 👀 only", got)
			}
			l.tell(51, colleague, "And no panics.")
			l.goesOn(true)
			if l.task.Run.ID != old {
				t.Fatal("the run was interrupted while messages are gathered")
			}
			l.read()
			if l.task.Run.Steering == nil || l.task.Run.Steering.Ready {
				t.Fatalf("got %+v before the end of the gathering", l.task.Run.Steering)
			}
			l.now = l.now.Add(10 * time.Second)
			l.read(state.Comment{ID: 51, Body: "And no panics, please."})
			l.tell(52, writer, "That is all.")
			l.goesOn(false)
			if l.task.Run.ID != old {
				t.Fatal("the run was interrupted while a tool is executed")
			}
			l.goesOn(true)
			l.want(phase)
			l.interrupted(old)
			var got []string
			for _, f := range l.task.Undelivered() {
				if f.Kind != c.kind || f.By.Login == "" || f.At.IsZero() {
					t.Errorf("got message %+v, want a %s with author and time", f, c.kind)
				}
				got = append(got, f.By.Login+": "+f.Body)
			}
			if want := []string{"ada: Use a map.", "grace: And no panics, please.", "ada: That is all."}; !slices.Equal(got, want) {
				t.Errorf("got messages %q, want %q", got, want)
			}
			l.launch()
			if n := len(slices.DeleteFunc(l.posted(), func(s string) bool { return s != "+1" })); n != 3 || len(l.task.Undelivered()) != 0 {
				t.Errorf("after the launch: got %d 👍 and undelivered messages %v", n, l.task.Undelivered())
			}
		})
	}
}

// TestLongToolIsInterrupted: a tool that does not end delays messages for a limited time.
func TestLongToolIsInterrupted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.goesOn(false)
	old := l.task.Run.ID
	first := l.now
	l.tell(50, writer, "Use a map.")
	for i := range int64(20) {
		l.now = l.now.Add(4 * time.Second)
		l.tell(51+i, colleague, "And more.")
		l.read()
		if l.task.Run.ID != old {
			break
		}
	}
	l.interrupted(old)
	if got := l.now.Sub(first); got > DefaultPolicy().GatherTalk+10*time.Second {
		t.Errorf("the run was interrupted after %s", got)
	}
}

// TestWithdrawnMessagesAreNotDelivered: a message that is deleted before its delivery neither reaches the agent nor interrupts it.
func TestWithdrawnMessagesAreNotDelivered(t *testing.T) {
	t.Parallel()
	gone := func(id int64) func(*life) {
		return func(l *life) {
			l.do(event.Event{By: visitor, Payload: event.CommentDeleted{Comment: &state.Comment{ID: id}}})
		}
	}
	for name, c := range map[string]struct {
		withdraw func(*life)
		reread   []state.Comment
		want     []string
	}{
		"the webhook reports it":   {gone(50), nil, []string{"And no panics."}},
		"it is found when read":    {func(*life) {}, []state.Comment{{ID: 51, Withdrawn: state.RejectedCommentDeleted}}, []string{"Use a map."}},
		"it became thanks":         {func(*life) {}, []state.Comment{{ID: 51, Remark: state.RemarkThanks}}, []string{"Use a map."}},
		"all of them":              {gone(50), []state.Comment{{ID: 51, Withdrawn: state.RejectedCommentDeleted}}, nil},
		"another comment was gone": {gone(99), nil, []string{"Use a map.", "And no panics."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.tell(50, writer, "Use a map.")
			l.tell(51, colleague, "And no panics.")
			c.withdraw(l)
			l.now = l.now.Add(10 * time.Second)
			l.read(c.reread...)
			var got []string
			for _, f := range l.task.Undelivered() {
				got = append(got, f.Body)
			}
			if !slices.Equal(got, c.want) || l.task.Run.Steering != nil != (len(c.want) > 0) {
				t.Errorf("got messages %q and %+v, want %q", got, l.task.Run.Steering, c.want)
			}
			old := l.task.Run.ID
			l.goesOn(true)
			if interrupted := l.task.Run.ID != old; interrupted != (len(c.want) > 0) {
				t.Errorf("interrupted: %v", interrupted)
			}
			if len(c.want) == 0 {
				return
			}
			l.launch()
			gone(50)(l)
			gone(51)(l)
			if n := len(l.task.Feedback); n != len(c.want) {
				t.Errorf("got %d messages after a deletion of delivered ones, want %d", n, len(c.want))
			}
		})
	}
}

// TestMessageIsNeverLost: a message that the run could not be interrupted for is delivered by the next one.
func TestMessageIsNeverLost(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(*life){
		"the run ends before":   func(l *life) { l.end(state.RunResult{Outcome: "done", Text: "Done."}); l.want(state.PhaseImplementing) },
		"with an illegible end": func(l *life) { l.end(state.RunResult{Outcome: "done", Broken: "no JSON", Guess: true}) },
		"it asks instead": func(l *life) {
			l.end(state.RunResult{Outcome: "question", Question: "Which?"})
			l.want(state.PhaseImplementing)
		},
		"its VM is lost": func(l *life) { l.end(state.RunResult{Class: "retryable", Status: "vm_lost"}); l.resume() },
		"its session is unknown": func(l *life) {
			l.task.Run.Session = "s"
			l.end(state.RunResult{Class: "retryable", Status: "no_session"})
		},
		"it fails":          func(l *life) { l.end(state.RunResult{Class: "fatal", Status: "refused"}); l.retryNow() },
		"somebody stops it": func(l *life) { l.comment(state.VerbStop); l.retryNow() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.tell(50, writer, "Use a map.")
			l.tell(51, colleague, "And no panics.")
			happens(l)
			if r := l.task.Run; r == nil || r.State != state.RunLaunching || r.Kind != state.RunImplement || len(l.task.Undelivered()) != 2 {
				t.Fatalf("got run %+v with messages %v, want one that delivers both", l.task.Run, l.task.Undelivered())
			}
			l.launch()
			if len(l.task.Undelivered()) != 0 || l.task.Run.Steering != nil {
				t.Errorf("undelivered after the launch: %v", l.task.Undelivered())
			}
		})
	}
}

func (l *life) resume() { l.do(event.Event{Payload: event.Due{For: state.DueResume}}) }

func (l *life) retryNow() { l.comment(state.VerbRetry) }

// TestMessageDuringLaunch: a message that comes before the prompt is written is in it; a later one interrupts the run.
func TestMessageDuringLaunch(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toApproved()
	l.tell(50, writer, "Use a map.")
	l.tell(51, colleague, "And no panics.")
	if l.task.Run.Steering != nil {
		t.Error("a run that is being launched is to be interrupted")
	}
	run := l.task.Run.ID
	l.do(event.Event{Run: run, Payload: event.Launched{Launch: state.Launch{Run: run, VM: state.VM{Name: "vm1"}, Started: l.now, FeedbackIDs: []string{"comment:50"}}}})
	if got := l.task.Undelivered(); len(got) != 1 || got[0].By != colleague || l.task.Run.Steering == nil || !slices.Contains(l.posted(), "+1") {
		t.Errorf("got undelivered messages %v, steering %+v, posts %v", got, l.task.Run.Steering, l.posted())
	}
}

// toApproved brings a task to the launch of the run that implements an approved plan.
func (l *life) toApproved() {
	l.toPreliminary()
	l.approve()
	l.launch()
	l.end(state.RunResult{Outcome: "build", Text: "P"})
	l.postPlan(101)
	l.approve()
	l.want(state.PhaseImplementing, state.JobLaunch)
}

// TestInterruptionIsNoFailure: it costs no attempt, and turns and the agent's time count on.
func TestInterruptionIsNoFailure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit, answers, turns, want int
	}{
		"no limit":          {0, 7, 3, 0},
		"the gateway's":     {20, 7, 3, 13},
		"the agent's":       {20, 0, 3, 17},
		"almost used up":    {20, 19, 0, leastTurns},
		"more than allowed": {20, 40, 0, leastTurns},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.task.Run.TurnLimit, l.task.Run.Answers, l.task.Run.Attempt, l.task.Run.Repeat = c.limit, c.answers, 3, repeatChecks
			l.tell(50, writer, "Use a map.")
			l.now = l.now.Add(time.Minute)
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.Progress{LastSeq: 1, Session: "s-1", Turns: c.turns, LastActivity: l.now}})
			old, active := l.task.Run.ID, l.task.Active
			l.read()
			l.interrupted(old)
			if r := l.task.Run; r.Attempt != 3 || r.Repeat != repeatChecks || l.task.Turns != c.want || l.task.Active-active < time.Minute || len(l.posted()) != 0 {
				t.Errorf("got attempt %d (%s), %d turns, %s more active, posts %v", r.Attempt, r.Repeat, l.task.Turns, l.task.Active-active, l.posted())
			}
			l.do(event.Event{Run: old, Payload: event.RunEnded{Result: state.RunResult{Class: "retryable", Status: "interrupted", Turns: 9}}})
			l.want(state.PhaseImplementing)
			if l.task.Runs[len(l.task.Runs)-1].Turns != 9 || l.task.Run == nil {
				t.Error("the late result of the interrupted run is not stored, or had an effect")
			}
		})
	}
}

// TestOthersDoNotInterrupt: only messages of writers to a working agent interrupt it.
func TestOthersDoNotInterrupt(t *testing.T) {
	t.Parallel()
	message := []state.Order{{Verb: state.VerbMessage, Text: "Use a map."}}
	for name, e := range map[string]event.Event{
		"a visitor's message":     {By: visitor, Permission: state.PermissionRead, Payload: event.Commented{Comment: &state.Comment{ID: 50, Mention: true}, Orders: message}},
		"a writer's plain words":  {By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "Use a map."}}},
		"a colleague's thanks":    {By: colleague, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Mention: true, Remark: state.RemarkThanks}, Orders: message}},
		"a colleague's status":    {By: colleague, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Mention: true}, Orders: []state.Order{{Verb: state.VerbStatus}}}},
		"a deleted message":       {By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Mention: true, Withdrawn: state.RejectedCommentDeleted}, Orders: message}},
		"a message for the end":   {By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Mention: true}, Orders: []state.Order{{Verb: state.VerbMessage, Text: "x", After: true}}}},
		"a plain +1 by a visitor": {By: visitor, Permission: state.PermissionRead, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "+1", Remark: state.RemarkReaction}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.do(e)
			if l.task.Run.Steering != nil || len(l.task.Undelivered()) != 0 {
				t.Errorf("got %+v with messages %v", l.task.Run.Steering, l.task.Undelivered())
			}
		})
	}
	t.Run("checks", func(t *testing.T) {
		t.Parallel()
		l := newLife(t)
		l.implementing()
		l.task.Run.Kind = state.RunCheck
		if got := l.tell(50, writer, "Use a map."); !slices.Contains(got, state.ReplyMessageKept) || l.task.Run.Steering != nil {
			t.Errorf("during checks: got posts %v, steering %+v", got, l.task.Run.Steering)
		}
	})
}

// TestAfterWaitsForTheEnd: such a message reaches no run before one has ended by itself.
func TestAfterWaitsForTheEnd(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.tellAfter(50, writer, "Add a changelog.")
	if got := l.posted(); !slices.Equal(got, []string{"eyes", state.ReplyMessageKept}) {
		t.Errorf("got posts %v", got)
	}
	l.tell(51, colleague, "Use a map.")
	l.now = l.now.Add(time.Minute)
	l.read()
	waits := func() bool { return l.task.Feedback[0].After && l.task.Feedback[0].TakenBy == "" }
	if !waits() {
		t.Error("an interruption ends the wait")
	}
	l.launchWithout("comment:50")
	l.end(state.RunResult{Class: "retryable", Status: "overloaded"})
	l.resume()
	if !waits() {
		t.Error("a retry ends the wait")
	}
	l.launchWithout("comment:50")
	l.end(state.RunResult{Outcome: "done", Text: "Done."})
	l.want(state.PhaseImplementing, state.JobCollect)
	if f := l.task.Feedback[0]; f.After || f.Kind != state.FeedbackComment || f.TakenBy != "" {
		t.Errorf("after the end: got %+v", f)
	}
}

// launchWithout launches the run with all feedback but one.
func (l *life) launchWithout(id string) {
	list := slices.DeleteFunc(ids(l.task.Feedback), func(s string) bool { return s == id })
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm1"}, Started: l.now, FeedbackIDs: list}}})
}

// TestEndSavesInterruptedWork: a task that people cancel before its interrupted agent has stopped keeps its VM until the work is
// saved, in whichever order the two jobs end.
func TestEndSavesInterruptedWork(t *testing.T) {
	t.Parallel()
	for _, by := range []state.Person{writer, colleague} {
		l := newLife(t)
		l.implementing()
		old := l.task.Run.ID
		l.tell(70, by, "use a map")
		l.now = l.now.Add(time.Hour)
		l.read()
		interrupting := jobOf(l.jobs, state.JobStop)
		l.comment(state.VerbCancel)
		l.want(state.PhaseCancelled, state.JobStop)
		saving := jobOf(l.jobs, state.JobStop)
		if saving.Run != old || saving.Key == interrupting.Key || saving.Args.Continues {
			t.Fatalf("%s: got job %+v, want the work of run %s saved by a job of its own, not %s", by.Login, saving, old, interrupting.Key)
		}
		l.do(event.Event{Run: old, Payload: event.WorkSaved{Continues: true}})
		if l.enqueued(state.JobRelease) || !l.task.End.Saving {
			t.Errorf("%s: the VM is released before its work is saved", by.Login)
		}
		l.do(event.Event{Run: old, Payload: event.WorkSaved{Archive: &state.SuspendedWork{Ref: "a", VM: l.task.VM.Name, Mode: settings.SleepArchive}}})
		if l.task.End.Saving || l.task.Suspended == nil || !l.enqueued(state.JobRelease) && l.task.VM != nil {
			t.Errorf("%s: got jobs %v, end %+v, want the work kept and the VM released", by.Login, kindsOf(l.jobs), l.task.End)
		}
	}
}
