package state

import (
	"fmt"
	"strings"
	"testing"
)

// call lets the active run's agent say something through a tool.
func (l *life) call(c Call) {
	l.t.Helper()
	l.do(Event{Kind: EventCalled, Run: l.task.Run.ID, Call: &c})
}

func note(id string, kind NoteKind, text string) Call {
	return Call{ID: id, Tool: CallNote, Note: &Note{Kind: kind, Text: text}}
}

func propose(id string) Call {
	return Call{ID: id, Tool: CallPropose, Proposal: &Proposal{Title: "Title " + id, Body: "Body."}}
}

func ask(id, question string) Call {
	return Call{ID: id, Tool: CallAsk, Result: &Conclusion{Outcome: "question", Question: question, Options: []string{"a", "b"}}}
}

// TestCallsCountOnce: a call whose answer was lost comes again, and is one.
func TestCallsCountOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	for range 3 {
		l.call(note("one", NoteFact, "x"))
		l.call(propose("two"))
	}
	if len(l.task.Notes) != 1 || len(l.task.Proposed) != 1 || l.task.Proposed[0].N != 1 || len(l.task.Run.Calls) != 2 {
		t.Errorf("notes %v, proposals %v, calls %v", l.task.Notes, l.task.Proposed, l.task.Run.Calls)
	}
	if why := l.task.Refuses(l.task.Run.ID, note("one", NoteFact, "x")); why != "" {
		t.Errorf("a repeated call is refused: %s", why)
	}
}

// TestCallsOfOthers: what is said for another run than the active one is dropped.
func TestCallsOfOthers(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	c := note("one", NoteFact, "x")
	l.do(Event{Kind: EventCalled, Run: "7-1-99", Call: &c})
	run := l.task.Run.ID
	l.comment(VerbCancel)
	l.do(Event{Kind: EventCalled, Run: run, Call: &c})
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
	l.call(note("decided", NoteDecision, "kept"))
	for round := range 4 {
		for i := range 2 * MaxCalls {
			l.call(note(fmt.Sprintf("n%d-%d", round, i), NoteFact, "x"))
			l.call(propose(fmt.Sprintf("p%d-%d", round, i)))
		}
		if n := len(l.task.Run.Calls); n > MaxCalls {
			t.Errorf("a run made %d calls", n)
		}
		l.end(RunResult{Status: "crashed", Class: "fatal"})
		l.comment(VerbRetry)
		l.launch()
	}
	if n := len(l.task.Notes); n != MaxNotes {
		t.Errorf("%d notes", n)
	}
	if l.task.Notes[0].Text != "kept" {
		t.Error("the decision went before facts")
	}
	if n := len(l.task.Proposed); n != MaxProposals {
		t.Errorf("%d proposals", n)
	}
}

// TestQuestionHolds: a question that was asked through the tool is posted however the run ends.
func TestQuestionHolds(t *testing.T) {
	t.Parallel()
	for name, res := range map[string]RunResult{
		"well":         {Status: "ok", Class: "success", Outcome: "done", Text: "Done."},
		"out of turns": {Status: "max_turns", Class: "fatal"},
		"killed":       {Status: "killed", Class: "retryable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.call(ask("q", "Which?"))
			l.want(PhaseImplementing, JobDue)
			l.call(note("late", NoteFact, "x"))
			if len(l.task.Notes) != 0 {
				t.Error("something is taken after the question")
			}
			l.end(res)
			l.want(PhaseAwaitingAnswer, JobPost)
			if q := l.task.Question; q == nil || q.Text != "Which?" || q.Kind != AskAgent || len(q.Options) != 2 {
				t.Errorf("question %+v", q)
			}
			l.comment(VerbMessage)
			l.want(PhaseImplementing, JobLaunch)
		})
	}
}

// TestAskedAndGoesOn: a run that asked and does not end is stopped, and its question is posted once.
func TestAskedAndGoesOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	run := l.task.Run.ID
	l.do(Event{Kind: EventDue, Detail: dueAsk, Hash: run})
	l.want(PhaseImplementing)
	l.call(ask("q", "Which?"))
	l.do(Event{Kind: EventDue, Detail: dueAsk, Hash: run})
	l.want(PhaseAwaitingAnswer, JobStop, JobPost)
	l.do(Event{Kind: EventRunEnded, Run: run, Result: &RunResult{Status: "ok", Class: "success", Outcome: "question", Question: "Which?"}})
	if l.want(PhaseAwaitingAnswer); len(l.jobs) > 0 && l.jobs[0].Kind == JobPost {
		t.Error("it is posted again")
	}
	l.do(Event{Kind: EventDue, Detail: dueAsk, Hash: run})
	l.want(PhaseAwaitingAnswer)
	l.comment(VerbMessage)
	l.want(PhaseImplementing, JobLaunch)
	if l.task.Run.Attempt != 1 {
		t.Errorf("the question counts as an attempt that failed: %d", l.task.Run.Attempt)
	}
}

// TestFinishWins: what finish said comes before the run's last words, and does not make a failure a success.
func TestFinishWins(t *testing.T) {
	t.Parallel()
	said := Conclusion{Outcome: "done", Title: "From the tool", Summary: "Tool."}
	l := newLife(t)
	l.implementing()
	l.call(Call{ID: "f", Tool: CallFinish, Result: &said})
	l.end(RunResult{Status: "ok", Class: "success", Outcome: "question", Question: "?", Title: "From the block", Text: "Words."})
	l.want(PhaseImplementing, JobCollect)
	if w := l.task.Work; w.Title != "From the tool" || w.Text != "Words." {
		t.Errorf("work %+v", w)
	}

	l = newLife(t)
	l.implementing()
	l.call(Call{ID: "f", Tool: CallFinish, Result: &said})
	l.end(RunResult{Status: "crashed", Class: "fatal"})
	l.want(PhaseFailed)
}

// TestCreateProposed: a person has a proposed issue created, once; others cannot.
func TestCreateProposed(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.call(propose("p"))
	order := func(n int, may Permission) {
		l.do(Event{
			Kind: EventCommented, By: writer, Permission: may, Comment: &Comment{ID: l.now.Unix(), Body: "create issue", At: l.now, Mention: true},
			Orders: []Order{{Verb: VerbIssue, Choice: n}},
		})
	}
	order(1, PermissionRead)
	if l.task.Ignored != 1 || l.made(JobIssue) {
		t.Error("an outsider has an issue created")
	}
	order(2, PermissionWrite)
	if l.made(JobIssue) || !l.made(JobPost) {
		t.Error("a proposal that is not there is created, or not answered")
	}
	order(1, PermissionWrite)
	l.want(PhaseImplementing, JobIssue)
	l.do(Event{Kind: EventCreated, Created: &Created{N: 1, Issue: 12, URL: "u"}})
	l.want(PhaseImplementing, JobPost)
	if p := l.task.Proposed[0]; p.Issue != 12 || p.By.ID != writer.ID {
		t.Errorf("proposal %+v", p)
	}
	order(1, PermissionWrite)
	if l.made(JobIssue) {
		t.Error("it is created twice")
	}
	l.do(Event{Kind: EventCreated, Created: &Created{N: 7, Issue: 13}})
}

// made reports whether the last event made a job of a kind.
func (l *life) made(kind JobKind) bool {
	return strings.Contains(fmt.Sprint(kindsOf(l.jobs)), string(kind))
}

// TestReadsAreBounded: what an agent only reads is counted by run, apart from what it says, and keeps nothing else.
func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	for i := range 2 * MaxReads {
		l.call(Call{ID: fmt.Sprintf("r%d", i), Tool: CallContext})
	}
	if r := l.task.Run; r.Reads != MaxReads || len(r.Calls) != 0 {
		t.Errorf("%d reads, calls %v", r.Reads, r.Calls)
	}
	if why := l.task.Refuses(l.task.Run.ID, Call{ID: "one more", Tool: CallContext}); !strings.Contains(why, "50 times") {
		t.Errorf("one more is refused by %q", why)
	}
	l.call(note("kept", NoteFact, "x"))
	if len(l.task.Notes) != 1 {
		t.Errorf("notes %v", l.task.Notes)
	}
	l.end(RunResult{Status: "crashed", Class: "fatal"})
	l.comment(VerbRetry)
	l.launch()
	if n := l.task.Run.Reads; n != 0 {
		t.Errorf("the next run begins with %d reads", n)
	}
}
