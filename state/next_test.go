package state

import (
	"slices"
	"testing"
	"time"
)

var (
	t0      = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	writer  = Person{ID: 2, Login: "ada"}
	visitor = Person{ID: 3, Login: "eve"}
)

// life drives a task through events as the store would.
type life struct {
	t    *testing.T
	task *Task
	now  time.Time
	jobs []Job
}

func newLife(t *testing.T) *life { return &life{t: t, now: t0} }

// do applies an event and returns the jobs that it made.
func (l *life) do(e Event) []Job {
	l.t.Helper()
	l.now = l.now.Add(time.Second)
	e.Task, e.Now = TaskKey{Repo: 7, Issue: 1}, l.now
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
func (l *life) want(phase Phase, kinds ...JobKind) {
	l.t.Helper()
	if l.task == nil || l.task.Phase != phase {
		l.t.Fatalf("phase = %v, want %s", l.task, phase)
	}
	for _, k := range kinds {
		if !slices.ContainsFunc(l.jobs, func(j Job) bool { return j.Kind == k }) {
			l.t.Fatalf("in %s: jobs %v lack %s", phase, kindsOf(l.jobs), k)
		}
	}
}

func kindsOf(jobs []Job) (kinds []JobKind) {
	for _, j := range jobs {
		kinds = append(kinds, j.Kind)
	}
	return kinds
}

func (l *life) trigger() {
	l.do(Event{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Via: "assigned", Repo: &Repo{ID: 7, Owner: "o", Name: "r"}, Issue: &Issue{Title: "Bug", Body: "It breaks."}})
}

func (l *life) start() {
	s := DefaultSettings()
	l.do(Event{Kind: EventStarted, Start: &Start{Settings: s, Visible: true, Branch: Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}})
}

func (l *life) launch() {
	l.do(Event{Kind: EventLaunched, Run: l.task.Run.ID, Launch: &Launch{Run: l.task.Run.ID, VM: VM{Name: "vm1"}, Started: l.now, Taken: ids(l.task.Feedback)}})
}

func ids(fs []Feedback) (out []string) {
	for _, f := range fs {
		out = append(out, f.ID)
	}
	return out
}

func (l *life) end(r RunResult) {
	if r.Class == "" {
		r.Class, r.Status = "success", "ok"
	}
	r.Ended = l.now
	l.do(Event{Kind: EventRunEnded, Run: l.task.Run.ID, Result: &r})
}

func (l *life) postPlan(id int64) {
	p := l.task.NewestPlan()
	l.do(Event{Kind: EventPosted, Posted: &Posted{ID: id, Node: "n", At: l.now}, Post: &Post{Kind: PostPlan, Hash: p.Hash}, Hash: "body"})
}

func (l *life) approve() {
	p := l.task.NewestPlan()
	l.do(Event{Kind: EventApproved, Candidate: &Candidate{Approval: Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: PermissionWrite, Via: ViaReaction, Given: l.now}}})
}

// toPreliminary brings a task to its first posted plan.
func (l *life) toPreliminary() {
	l.trigger()
	l.start()
	l.launch()
	l.end(RunResult{Text: "A plan.", Outcome: "build"})
	l.postPlan(11)
}

// toPR brings it to its open pull request.
func (l *life) toPR() {
	l.toPreliminary()
	l.approve()
	l.launch()
	l.end(RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(12)
	l.approve()
	l.launch()
	l.end(RunResult{Outcome: "done"})
	l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}})
	l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}})
	l.do(Event{Kind: EventMoved})
	l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}})
}

func TestWholeLife(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.want(PhaseQueued, JobReact, JobStart, JobStatus)
	l.start()
	l.want(PhasePreliminaryPlanning, JobLaunch)
	l.launch()
	l.end(RunResult{Text: "A plan.", Outcome: "build"})
	l.want(PhaseAwaitingPreliminaryApproval, JobPost)
	l.postPlan(11)
	l.want(PhaseAwaitingPreliminaryApproval, JobDue)
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 50, Body: "smaller, please"}})
	l.want(PhasePreliminaryPlanning, JobLaunch)
	l.launch()
	l.end(RunResult{Text: "A smaller plan.", Outcome: "build"})
	l.want(PhaseAwaitingPreliminaryApproval, JobPost, JobMinimise)
	if p := l.task.NewestPlan(); p.Revision != 2 || len(l.task.Feedback) != 0 {
		t.Fatalf("revision %d, feedback %v", p.Revision, l.task.Feedback)
	}
	l.postPlan(12)
	l.approve()
	l.want(PhasePlanning, JobLaunch)
	l.launch()
	l.end(RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(13)
	l.approve()
	l.want(PhaseImplementing, JobLaunch)
	l.launch()
	l.end(RunResult{Outcome: "done"})
	l.want(PhaseImplementing, JobCollect)
	l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}})
	l.want(PhaseImplementing, JobCommit)
	l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}})
	l.want(PhaseImplementing, JobMove)
	l.do(Event{Kind: EventMoved})
	l.want(PhaseImplementing, JobOpenPR)
	l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}})
	l.want(PhasePROpen, JobPost)
	l.do(Event{Kind: EventReviewed, By: writer, Permission: PermissionWrite, Review: &Review{ID: 1, State: "changes_requested"}})
	l.want(PhasePROpen, JobGather)
	l.do(Event{Kind: EventGathered, Feedback: []Feedback{{ID: "thread:1", Kind: "thread"}}})
	l.want(PhaseAddressingReview, JobLaunch)
	l.launch()
	l.end(RunResult{Outcome: "done", Threads: []ThreadAnswer{{ID: "thread:1", Answer: "Done."}}})
	l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h2", LocalTree: "t2"}})
	l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H2", Tree: "t2"}})
	l.do(Event{Kind: EventMoved})
	l.want(PhaseAddressingReview, JobAnswer)
	l.do(Event{Kind: EventAnswered})
	l.want(PhasePROpen)
	l.do(Event{Kind: EventPRClosed, Merged: true, By: writer})
	l.want(PhaseDone, JobRelease, JobPost)
}

// TestNextLeavesTaskAlone holds Next against its promise not to modify its argument.
func TestNextLeavesTaskAlone(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	before := l.task.clone()
	Next(l.task, Event{Kind: EventCommented, Task: l.task.Key, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 9, Body: "x"}, Now: t0}, DefaultPolicy())
	if PlanHash(l.task.Plans[0]) != PlanHash(before.Plans[0]) || l.task.Phase != before.Phase || l.task.Plans[0].Superseded {
		t.Fatal("Next modified its argument")
	}
}

func TestRowsAreWellFormed(t *testing.T) {
	t.Parallel()
	for i, r := range Table() {
		if r.Doc == "" || len(r.To) == 0 || r.do == nil {
			t.Errorf("row %d (%s %s) lacks a doc, a target or an action", i, r.On, r.Verb)
		}
		if r.Verb != "" && r.On != EventCommented {
			t.Errorf("row %d: a verb belongs to a comment", i)
		}
	}
}
