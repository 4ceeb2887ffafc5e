package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

var (
	t0      = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	writer  = state.Person{ID: 2, Login: "ada"}
	visitor = state.Person{ID: 3, Login: "eve"}
)

// life drives a task through events as the store would.
type life struct {
	t    *testing.T
	task *state.Task
	now  time.Time
	jobs []state.Job
}

func newLife(t *testing.T) *life { return &life{t: t, now: t0} }

// do applies an event and returns the jobs that it made.
func (l *life) do(e event.Event) []state.Job {
	l.t.Helper()
	l.now = l.now.Add(time.Second)
	e.Task, e.Now = state.TaskKey{Repo: 7, Issue: 1}, l.now
	if e.At.IsZero() {
		e.At = l.now
	}
	ch := Next(l.task, e, DefaultPolicy())
	if ch.Task != nil {
		ch.Task.Version++
		l.task = ch.Task
	}
	l.jobs = ch.Jobs
	return ch.Jobs
}

// want fails unless the task is in the phase and the last event made jobs of these kinds.
func (l *life) want(phase state.Phase, kinds ...state.JobKind) {
	l.t.Helper()
	if l.task == nil || l.task.Phase != phase {
		l.t.Fatalf("got phase %v, want %s", l.task, phase)
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Kind == k }) {
			l.t.Fatalf("in %s: got jobs %v, want %s among them", phase, kindsOf(l.jobs), k)
		}
	}
}

func kindsOf(jobs []state.Job) (kinds []state.JobKind) {
	for _, j := range jobs {
		kinds = append(kinds, j.Kind)
	}
	return kinds
}

func (l *life) trigger() {
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}})
}

func (l *life) start() {
	s := settings.Default()
	l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true, Branch: state.Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}}})
}

func (l *life) launch() {
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm1"}, Started: l.now, FeedbackIDs: ids(l.task.Feedback)}}})
}

func ids(fs []state.Feedback) (out []string) {
	for _, f := range fs {
		out = append(out, f.ID)
	}
	return out
}

func (l *life) end(r state.RunResult) {
	if r.Class == "" {
		r.Class, r.Status = "success", "ok"
	}
	r.Ended = l.now
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.RunEnded{Result: r}})
}

func (l *life) postPlan(id int64) {
	p := l.task.NewestPlan()
	l.do(event.Event{Payload: event.Posted{Comment: state.Posted{ID: id, Node: "n", At: l.now}, Post: &state.Post{Kind: state.PostPlan, Hash: p.Hash}, BodyHash: "body"}})
}

// gathered ends the time in which comments are gathered.
func (l *life) gathered(reread ...state.Comment) {
	l.now = l.now.Add(DefaultPolicy().GatherTalk)
	l.do(event.Event{Payload: event.Due{For: state.DueComments, Reread: reread}})
}

func (l *life) approve() {
	p := l.task.NewestPlan()
	l.do(event.Event{Payload: event.Approved{Candidate: state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: l.now}}}})
}

// toPreliminary brings a task to its first posted plan.
func (l *life) toPreliminary() {
	l.trigger()
	l.start()
	l.launch()
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.postPlan(11)
}

// toPR brings it to its open pull request.
func (l *life) toPR() {
	l.toPreliminary()
	l.approve()
	l.launch()
	l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(12)
	l.approve()
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}}})
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}}})
	l.do(event.Event{Payload: event.BranchMoved{}})
	l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: "open"}}})
}

func TestWholeLife(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.want(state.PhaseQueued, state.JobReact, state.JobStart, state.JobStatus)
	l.start()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	l.launch()
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobPost)
	l.postPlan(11)
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobDue)
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "smaller, please"}}})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobReact, state.JobDue)
	l.gathered()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	l.launch()
	l.end(state.RunResult{Text: "A smaller plan.", Outcome: "build"})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobPost, state.JobMinimize)
	if p := l.task.NewestPlan(); p.Revision != 2 || len(l.task.Feedback) != 0 {
		t.Fatalf("got revision %d, feedback %v", p.Revision, l.task.Feedback)
	}
	l.postPlan(12)
	l.approve()
	l.want(state.PhasePlanning, state.JobLaunch)
	l.launch()
	l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(13)
	l.approve()
	l.want(state.PhaseImplementing, state.JobLaunch)
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	l.want(state.PhaseImplementing, state.JobCollect)
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}}})
	l.want(state.PhaseImplementing, state.JobCommit)
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}}})
	l.want(state.PhaseImplementing, state.JobMove)
	l.do(event.Event{Payload: event.BranchMoved{}})
	l.want(state.PhaseImplementing, state.JobOpenPR)
	l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: "open"}}})
	l.want(state.PhasePROpen, state.JobPost)
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 1, State: "changes_requested"}}})
	l.want(state.PhasePROpen, state.JobGather)
	l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: "thread:1", Kind: "thread"}}}})
	l.want(state.PhaseAddressingReview, state.JobLaunch)
	l.launch()
	l.end(state.RunResult{Outcome: "done", Threads: []state.ThreadAnswer{{ID: "thread:1", Answer: "Done."}}})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h2", LocalTree: "t2"}}})
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H2", Tree: "t2"}}})
	l.do(event.Event{Payload: event.BranchMoved{}})
	l.want(state.PhaseAddressingReview, state.JobAnswer)
	l.do(event.Event{Payload: event.ThreadsAnswered{Review: "PRR_1", Uncertain: &event.UncertainAnswers{Keys: []string{"a"}, Since: t0}}})
	l.want(state.PhaseAddressingReview, state.JobAnswer, state.JobDue)
	if l.task.Work.Review != "PRR_1" || l.task.Step != state.JobAnswer {
		t.Errorf("with a pending review: got step %q and work %+v", l.task.Step, l.task.Work)
	}
	l.do(event.Event{Payload: event.ThreadsAnswered{}})
	l.want(state.PhasePROpen)
	l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}})
	l.want(state.PhaseDone, state.JobRelease, state.JobPost)
}

// Next does not modify its argument.
func TestNextDoesNotModifyItsArgument(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	before := l.task.Clone()
	Next(l.task, event.Event{Task: l.task.Key, By: writer, Permission: state.PermissionWrite, Now: t0, Payload: event.Commented{Comment: &state.Comment{ID: 9, Body: "x"}}}, DefaultPolicy())
	if state.PlanHash(l.task.Plans[0]) != state.PlanHash(before.Plans[0]) || l.task.Phase != before.Phase || l.task.Plans[0].Superseded {
		t.Fatal("got a modified argument, want it unchanged")
	}
}

func TestRowsAreWellFormed(t *testing.T) {
	t.Parallel()
	for i, r := range Table() {
		if r.Doc == "" || len(r.To) == 0 || r.do == nil {
			t.Errorf("row %d (%s %s): got no doc, target or action, want all", i, r.On, r.Verb)
		}
		if r.Verb != "" && r.On != event.KindCommented {
			t.Errorf("row %d: got a verb without a comment", i)
		}
	}
}
