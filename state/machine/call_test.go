package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// call lets the active run's agent say something through a tool.
func (l *life) call(c state.Call) {
	l.t.Helper()
	l.do(state.Event{Kind: state.EventCalled, Run: l.task.Run.ID, RunReport: state.RunReport{Call: &c}})
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

// TestCallsCountOnce: a call whose answer was lost comes again, and is one.
func TestCallsCountOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	for range 3 {
		l.call(note("one", state.NoteFact, "x"))
		l.call(propose("two"))
	}
	if len(l.task.Notes) != 1 || len(l.task.Proposed) != 1 || l.task.Proposed[0].N != 1 || len(l.task.Run.Calls) != 2 {
		t.Errorf("notes %v, proposals %v, calls %v", l.task.Notes, l.task.Proposed, l.task.Run.Calls)
	}
	if why := l.task.Refuses(l.task.Run.ID, note("one", state.NoteFact, "x")); why != "" {
		t.Errorf("a repeated call is refused: %s", why)
	}
}

// TestCallsOfOthers: what is said for another run than the active one is dropped.
func TestCallsOfOthers(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	c := note("one", state.NoteFact, "x")
	l.do(state.Event{Kind: state.EventCalled, Run: "7-1-99", RunReport: state.RunReport{Call: &c}})
	run := l.task.Run.ID
	l.comment(state.VerbCancel)
	l.do(state.Event{Kind: state.EventCalled, Run: run, RunReport: state.RunReport{Call: &c}})
	if len(l.task.Notes) != 0 {
		t.Errorf("notes %v", l.task.Notes)
	}
	if l.task.Refuses(run, c) == "" {
		t.Error("a cancelled task takes calls")
	}
}

// TestCallsAreBounded: whatever an agent floods, the task stays small, and decisions stay longest.
func TestCallsAreBounded(t *testing.T) {
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
			t.Errorf("a run made %d calls", n)
		}
		l.end(state.RunResult{Status: "crashed", Class: "fatal"})
		l.comment(state.VerbRetry)
		l.launch()
	}
	if n := len(l.task.Notes); n != state.MaxNotes {
		t.Errorf("%d notes", n)
	}
	if l.task.Notes[0].Text != "kept" {
		t.Error("the decision went before facts")
	}
	if n := len(l.task.Proposed); n != state.MaxProposals {
		t.Errorf("%d proposals", n)
	}
}

// TestQuestionHolds: a question that was asked through the tool is posted however the run ends.
func TestQuestionHolds(t *testing.T) {
	t.Parallel()
	for name, res := range map[string]state.RunResult{
		"well":         {Status: "ok", Class: "success", Outcome: "done", Text: "Done."},
		"out of turns": {Status: "max_turns", Class: "fatal"},
		"killed":       {Status: "killed", Class: "retryable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.call(ask("q", "Which?"))
			l.want(state.PhaseImplementing, state.JobDue)
			l.call(note("late", state.NoteFact, "x"))
			if len(l.task.Notes) != 0 {
				t.Error("something is taken after the question")
			}
			l.end(res)
			l.want(state.PhaseAwaitingAnswer, state.JobPost)
			if q := l.task.Question; q == nil || q.Text != "Which?" || q.Kind != state.AskAgent || len(q.Options) != 2 {
				t.Errorf("question %+v", q)
			}
			l.comment(state.VerbMessage)
			l.want(state.PhaseImplementing, state.JobLaunch)
		})
	}
}

// TestAskedAndGoesOn: a run that asked and does not end is stopped, and its question is posted once.
func TestAskedAndGoesOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	run := l.task.Run.ID
	l.do(state.Event{Kind: state.EventDue, JobReport: state.JobReport{Due: state.NewDue(state.DueAsk, run)}})
	l.want(state.PhaseImplementing)
	l.call(ask("q", "Which?"))
	l.do(state.Event{Kind: state.EventDue, JobReport: state.JobReport{Due: state.NewDue(state.DueAsk, run)}})
	l.want(state.PhaseAwaitingAnswer, state.JobStop, state.JobPost)
	l.do(state.Event{Kind: state.EventRunEnded, Run: run, RunReport: state.RunReport{Result: &state.RunResult{Status: "ok", Class: "success", Outcome: "question", Question: "Which?"}}})
	if l.want(state.PhaseAwaitingAnswer); len(l.jobs) > 0 && l.jobs[0].Kind == state.JobPost {
		t.Error("it is posted again")
	}
	l.do(state.Event{Kind: state.EventDue, JobReport: state.JobReport{Due: state.NewDue(state.DueAsk, run)}})
	l.want(state.PhaseAwaitingAnswer)
	l.comment(state.VerbMessage)
	l.want(state.PhaseImplementing, state.JobLaunch)
	if l.task.Run.Attempt != 1 {
		t.Errorf("the question counts as an attempt that failed: %d", l.task.Run.Attempt)
	}
}

// TestFinishWins: what finish said comes before the run's last words, and does not make a failure a success.
func TestFinishWins(t *testing.T) {
	t.Parallel()
	said := state.Conclusion{Outcome: "done", Title: "From the tool", Summary: "Tool."}
	l := newLife(t)
	l.implementing()
	l.call(state.Call{ID: "f", Tool: state.CallFinish, Result: &said})
	l.end(state.RunResult{Status: "ok", Class: "success", Outcome: "question", Question: "?", Title: "From the block", Text: "Words."})
	l.want(state.PhaseImplementing, state.JobCollect)
	if w := l.task.Work; w.Title != "From the tool" || w.Text != "Words." {
		t.Errorf("work %+v", w)
	}

	l = newLife(t)
	l.implementing()
	l.call(state.Call{ID: "f", Tool: state.CallFinish, Result: &said})
	l.end(state.RunResult{Status: "crashed", Class: "fatal"})
	l.want(state.PhaseFailed)
}

// TestCreateProposed: a person has a proposed issue created, once; others cannot.
func TestCreateProposed(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.call(propose("p"))
	order := func(n int, may state.Permission) {
		l.do(state.Event{
			Kind: state.EventCommented, By: writer, Permission: may, Comment: &state.Comment{ID: l.now.Unix(), Body: "create issue", At: l.now, Mention: true},
			Orders: []state.Order{{Verb: state.VerbIssue, Choice: n}},
		})
	}
	order(1, state.PermissionRead)
	if l.task.Ignored != 1 || l.made(state.JobIssue) {
		t.Error("an outsider has an issue created")
	}
	order(2, state.PermissionWrite)
	if l.made(state.JobIssue) || !l.made(state.JobPost) {
		t.Error("a proposal that is not there is created, or not answered")
	}
	order(1, state.PermissionWrite)
	l.want(state.PhaseImplementing, state.JobIssue)
	l.do(state.Event{Kind: state.EventCreated, JobReport: state.JobReport{Created: &state.Created{N: 1, Issue: 12, URL: "u"}}})
	l.want(state.PhaseImplementing, state.JobPost)
	if p := l.task.Proposed[0]; p.Issue != 12 || p.By.ID != writer.ID {
		t.Errorf("proposal %+v", p)
	}
	order(1, state.PermissionWrite)
	if l.made(state.JobIssue) {
		t.Error("it is created twice")
	}
	l.do(state.Event{Kind: state.EventCreated, JobReport: state.JobReport{Created: &state.Created{N: 7, Issue: 13}}})
}

// made reports whether the last event made a job of a kind.
func (l *life) made(kind state.JobKind) bool {
	return strings.Contains(fmt.Sprint(kindsOf(l.jobs)), string(kind))
}

// TestReadsAreBounded: what an agent only reads is counted by run, apart from what it says, and keeps nothing else.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	for i := range 2 * state.MaxReads {
		l.call(state.Call{ID: fmt.Sprintf("r%d", i), Tool: state.CallContext})
	}
	if r := l.task.Run; r.Reads != state.MaxReads || len(r.Calls) != 0 {
		t.Errorf("%d reads, calls %v", r.Reads, r.Calls)
	}
	if why := l.task.Refuses(l.task.Run.ID, state.Call{ID: "one more", Tool: state.CallContext}); !strings.Contains(why, "50 times") {
		t.Errorf("one more is refused by %q", why)
	}
	l.call(note("kept", state.NoteFact, "x"))
	if len(l.task.Notes) != 1 {
		t.Errorf("notes %v", l.task.Notes)
	}
	l.end(state.RunResult{Status: "crashed", Class: "fatal"})
	l.comment(state.VerbRetry)
	l.launch()
	if n := l.task.Run.Reads; n != 0 {
		t.Errorf("the next run begins with %d reads", n)
	}
}
