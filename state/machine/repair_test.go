package machine

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// broken is the end of a run whose closing block cannot be parsed.
func broken(outcome state.Outcome, guess bool) state.RunResult {
	return state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Words.", Outcome: outcome, Guess: guess, Broken: "line 1: it ends too early", Block: "{"}
}

// repairing returns a task whose agent is asked for its closing block again.
func repairing(t *testing.T) *life {
	t.Helper()
	l := newLife(t)
	l.implementing()
	l.task.Feedback = []state.Feedback{{ID: "comment:1", Kind: "comment", TakenBy: l.task.Run.ID}, {ID: "comment:2", Kind: "comment"}}
	l.task.Run.Repeat, l.task.Run.Attempt = repeatChecks, 2
	l.end(broken("done", false))
	l.want(state.PhaseImplementing, state.JobLaunch)
	r := l.task.Run
	if r.Repair == nil || *r.Repair != (state.Repair{Problem: "line 1: it ends too early", Block: "{", Text: "Words."}) || r.Repeat != repeatChecks || r.Attempt != 2 {
		t.Fatalf("got run %+v", r)
	}
	if f := l.task.Feedback; f[0].TakenBy != r.ID || f[1].TakenBy != "" {
		t.Errorf("got feedback %+v", f)
	}
	l.do(event.Event{Run: r.ID, Payload: event.Launched{Launch: state.Launch{Run: r.ID, VM: *l.task.VM, IsRepair: true, Started: l.now}}})
	if l.task.Run.Repair == nil {
		t.Fatal("got no answer to repair, want it kept")
	}
	return l
}

// An unreadable block is requested once more, and the new one counts; if that is unreadable, too, a note is added where
// people read the result.
func TestClosingBlockIsRequestedOnce(t *testing.T) {
	t.Parallel()
	l := repairing(t)
	l.end(state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Text: "Words.", Outcome: "question", Question: "Which?"})
	l.want(state.PhaseAwaitingAnswer, state.JobPost)
	if q := l.task.Question; q.Text != "Which?" || l.task.Runs[len(l.task.Runs)-1].Repair != nil {
		t.Errorf("got question %+v", q)
	}

	l = repairing(t)
	l.end(broken("done", true))
	l.want(state.PhaseImplementing, state.JobCollect)
	if text := l.task.Work.Text; !strings.HasPrefix(text, "Words.\n\n> **Note:** ") || !strings.Contains(text, "asked for it again. errand treats the work as finished.") {
		t.Errorf("got text %q", text)
	}
	if said := l.task.Runs; said[len(said)-2].LastMessage != "" || !strings.HasPrefix(said[len(said)-1].LastMessage, "Words.") {
		t.Errorf("got last messages %q, %q", said[len(said)-2].LastMessage, said[len(said)-1].LastMessage)
	}

	l = repairing(t)
	l.end(broken("blocked", false))
	l.want(state.PhaseAwaitingAnswer, state.JobPost)
	if q := l.task.Question.Text; !strings.HasPrefix(q, "Words.\n\n> **Note:** ") {
		t.Errorf("got question %q", q)
	}
}

// It is not requested if a tool reported the conclusion, after too many runs, or on another VM.
func TestClosingBlockIsNotRequested(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.call(state.Call{ID: "f", Tool: state.CallFinish, Result: &state.Conclusion{Outcome: "done", Title: "From the tool"}})
	l.end(broken("done", true))
	l.want(state.PhaseImplementing, state.JobCollect)
	if w := l.task.Work; w.Title != "From the tool" || strings.Contains(w.Text, "**Note:**") {
		t.Errorf("got work %+v", w)
	}

	l = newLife(t)
	l.implementing()
	l.task.UnattendedLaunches = maxUnattendedLaunches
	l.end(broken("done", true))
	l.want(state.PhaseImplementing, state.JobCollect)
	if text := l.task.Work.Text; !strings.Contains(text, "could not be read. errand treats the work") {
		t.Errorf("got text %q", text)
	}

	l = newLife(t)
	l.implementing()
	l.end(broken("done", true))
	l.launch()
	if l.task.Run.Repair != nil {
		t.Error("got a repair, want a run that repeats the work")
	}
}

// An interrupted repair is replaced by a complete run, as any other attempt.
func TestInterruptedRepairIsReplaced(t *testing.T) {
	t.Parallel()
	l := repairing(t)
	l.end(state.RunResult{Status: state.StatusOverloaded, Class: state.RunRetryable})
	l.want(state.PhaseInterrupted)
	l.do(event.Event{Payload: event.NewDue("resume", "")})
	l.want(state.PhaseImplementing, state.JobLaunch)
	if r := l.task.Run; r.Repair != nil || r.Attempt != 3 {
		t.Errorf("got run %+v", r)
	}
}
