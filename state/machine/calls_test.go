package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// call lets the active run's agent call a tool.
func (l *life) call(c state.Call) {
	l.t.Helper()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.ToolCalled{Call: c}})
}

func note(id string, kind state.NoteKind, text string) state.Call {
	return state.Call{ID: id, Tool: state.CallNote, Note: &state.Note{Kind: kind, Text: text}}
}

func propose(id string) state.Call {
	return state.Call{ID: id, Tool: state.CallPropose, Proposal: &state.Proposal{Title: "Title " + id, Body: "Body."}}
}

func ask(id, question string) state.Call {
	return state.Call{ID: id, Tool: state.CallAsk, Result: &state.Conclusion{Outcome: "question", Question: question, Options: []string{"a", "b"}}}
}

// A repeated call, whose answer was lost, counts once.
func TestRepeatedCallCountsOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	for range 3 {
		l.call(note("one", state.NoteFact, "x"))
		l.call(propose("two"))
	}
	if len(l.task.Notes) != 1 || len(l.task.Proposed) != 1 || l.task.Proposed[0].N != 1 || len(l.task.Run.Calls) != 2 {
		t.Errorf("got notes %v, proposals %v, calls %v", l.task.Notes, l.task.Proposed, l.task.Run.Calls)
	}
	if reason := l.task.CallRejection(l.task.Run.ID, note("one", state.NoteFact, "x")); reason != "" {
		t.Errorf("got a rejected repetition, want it accepted: %s", reason)
	}
}

// Calls for a run other than the active one are dropped.
func TestCallsOfOtherRunsAreDropped(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	c := note("one", state.NoteFact, "x")
	l.do(event.Event{Run: "7-1-99", Payload: event.ToolCalled{Call: c}})
	run := l.task.Run.ID
	l.comment(state.VerbCancel)
	l.do(event.Event{Run: run, Payload: event.ToolCalled{Call: c}})
	if len(l.task.Notes) != 0 {
		t.Errorf("got notes %v", l.task.Notes)
	}
	if l.task.CallRejection(run, c) == "" {
		t.Error("got an accepted call of a canceled task, want it rejected")
	}
}

// However many calls an agent makes, the task stays small, and decisions are dropped last.
func TestCallsAreLimited(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.call(note("decided", state.NoteDecision, "kept"))
	for round := range 4 {
		for i := range 2 * state.MaxCalls {
			l.call(note(fmt.Sprintf("n%d-%d", round, i), state.NoteFact, "x"))
			l.call(propose(fmt.Sprintf("p%d-%d", round, i)))
		}
		if n := len(l.task.Run.Calls); n > state.MaxCalls {
			t.Errorf("got %d calls of a run", n)
		}
		l.end(state.RunResult{Status: state.StatusCrashed, Class: state.RunFatal})
		l.comment(state.VerbRetry)
		l.launch()
	}
	if n := len(l.task.Notes); n != state.MaxNotes {
		t.Errorf("got %d notes", n)
	}
	if l.task.Notes[0].Text != "kept" {
		t.Error("got a dropped decision, want facts dropped first")
	}
	if n := len(l.task.Proposed); n != state.MaxProposals {
		t.Errorf("got %d proposals", n)
	}
}

// A question that was asked with the tool is posted however the run ends.
func TestQuestionIsPostedHoweverTheRunEnds(t *testing.T) {
	t.Parallel()
	for name, res := range map[string]state.RunResult{
		"well":         {Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "done", Text: "Done."},
		"out of turns": {Status: state.StatusMaxTurns, Class: state.RunFatal},
		"killed":       {Status: "killed", Class: state.RunRetryable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.call(ask("q", "Which?"))
			l.want(state.PhaseImplementing, state.JobDue)
			l.call(note("late", state.NoteFact, "x"))
			if len(l.task.Notes) != 0 {
				t.Error("got an accepted call after the question, want it rejected")
			}
			l.end(res)
			l.want(state.PhaseAwaitingAnswer, state.JobPost)
			if q := l.task.Question; q == nil || q.Text != "Which?" || q.Kind != state.AskAgent || len(q.Options) != 2 {
				t.Errorf("got question %+v", q)
			}
			l.comment(state.VerbMessage)
			l.want(state.PhaseAwaitingAnswer, state.JobDue)
			l.gathered()
			l.want(state.PhaseImplementing, state.JobLaunch)
		})
	}
}

// A run that asked and does not end is stopped, and its question is posted once.
func TestRunThatAskedIsStopped(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	run := l.task.Run.ID
	l.do(event.Event{Payload: event.NewDue(state.DueQuestion, run)})
	l.want(state.PhaseImplementing)
	l.call(ask("q", "Which?"))
	l.do(event.Event{Payload: event.NewDue(state.DueQuestion, run)})
	l.want(state.PhaseAwaitingAnswer, state.JobStop, state.JobPost)
	l.do(event.Event{Run: run, Payload: event.RunEnded{Result: state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "question", Question: "Which?"}}})
	if l.want(state.PhaseAwaitingAnswer); len(l.jobs) > 0 && l.jobs[0].Kind == state.JobPost {
		t.Error("got a second post, want one")
	}
	l.do(event.Event{Payload: event.NewDue(state.DueQuestion, run)})
	l.want(state.PhaseAwaitingAnswer)
	l.comment(state.VerbMessage)
	l.gathered()
	l.want(state.PhaseImplementing, state.JobLaunch)
	if l.task.Run.Attempt != 1 {
		t.Errorf("got attempt %d, want the question not counted as a failure", l.task.Run.Attempt)
	}
}

// The finish tool's result overrides the run's last message, and does not turn a failure into a success.
func TestFinishOverridesLastMessage(t *testing.T) {
	t.Parallel()
	said := state.Conclusion{Outcome: "done", Title: "From the tool", Summary: "Tool."}
	l := newLife(t)
	l.implementing()
	l.call(state.Call{ID: "f", Tool: state.CallFinish, Result: &said})
	l.end(state.RunResult{Status: state.StatusOK, Class: state.RunSucceeded, Outcome: "question", Question: "?", Title: "From the block", Text: "Words."})
	l.want(state.PhaseImplementing, state.JobCollect)
	if w := l.task.Work; w.Title != "From the tool" || w.Text != "Words." {
		t.Errorf("got work %+v", w)
	}

	l = newLife(t)
	l.implementing()
	l.call(state.Call{ID: "f", Tool: state.CallFinish, Result: &said})
	l.end(state.RunResult{Status: state.StatusCrashed, Class: state.RunFatal})
	l.want(state.PhaseFailed)
}

// A person with write access can have a proposed issue created, once; others cannot.
func TestProposedIssueIsCreatedOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.call(propose("p"))
	order := func(n int, may state.Permission) {
		l.do(event.Event{
			By:         writer,
			Permission: may,
			Payload:    event.Commented{Comment: &state.Comment{ID: l.now.Unix(), Body: "create issue", At: l.now, Mention: true}, Orders: []state.Order{{Verb: state.VerbIssue, Choice: n}}},
		})
	}
	order(1, state.PermissionRead)
	if l.task.Ignored != 1 || l.enqueued(state.JobIssue) {
		t.Error("got an issue created for a user without write access, want none")
	}
	order(2, state.PermissionWrite)
	if l.enqueued(state.JobIssue) || !l.enqueued(state.JobPost) {
		t.Error("got a creation of, or no answer about, an unknown proposal; want an answer")
	}
	order(1, state.PermissionWrite)
	l.want(state.PhaseImplementing, state.JobIssue)
	l.do(event.Event{Payload: event.IssueCreated{N: 1, Issue: 12, URL: "u"}})
	l.want(state.PhaseImplementing, state.JobPost)
	if p := l.task.Proposed[0]; p.Issue != 12 || p.By.ID != writer.ID {
		t.Errorf("got proposal %+v", p)
	}
	order(1, state.PermissionWrite)
	if l.enqueued(state.JobIssue) {
		t.Error("got a second creation, want one")
	}
	l.do(event.Event{Payload: event.IssueCreated{N: 7, Issue: 13}})
}

// enqueued reports whether the last event made a job of a kind.
func (l *life) enqueued(kind state.JobKind) bool {
	return strings.Contains(fmt.Sprint(kindsOf(l.jobs)), string(kind))
}

// Context calls are counted per run, apart from other calls, and nothing else of them is stored.
func TestContextCallsAreLimited(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	for i := range 2 * state.MaxReads {
		l.call(state.Call{ID: fmt.Sprintf("r%d", i), Tool: state.CallContext})
	}
	if r := l.task.Run; r.Reads != state.MaxReads || len(r.Calls) != 0 {
		t.Errorf("got %d reads, calls %v", r.Reads, r.Calls)
	}
	if reason := l.task.CallRejection(l.task.Run.ID, state.Call{ID: "one more", Tool: state.CallContext}); !strings.Contains(reason, "50 times") {
		t.Errorf("got refusal %q for one more call", reason)
	}
	l.call(note("kept", state.NoteFact, "x"))
	if len(l.task.Notes) != 1 {
		t.Errorf("got notes %v", l.task.Notes)
	}
	l.end(state.RunResult{Status: state.StatusCrashed, Class: state.RunFatal})
	l.comment(state.VerbRetry)
	l.launch()
	if n := l.task.Run.Reads; n != 0 {
		t.Errorf("got %d reads at the start of the next run, want 0", n)
	}
}
