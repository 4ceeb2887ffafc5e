package state

import (
	"slices"
	"testing"
	"time"
)

// TestConditionsAreNoChangeRequest: conditions of an approval go with every prompt after it. They are
// no feedback that waits for a run: the next plan can be approved, and no round is begun for them.
func TestConditionsAreNoChangeRequest(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	approve := func() {
		p := l.task.NewestPlan()
		l.do(Event{Kind: EventApproved, Candidate: &Candidate{Approval: Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: PermissionWrite, Via: ViaCommand, Given: l.now, With: "keep the flag"}}})
	}
	launch := func() {
		var taken []string
		for _, f := range l.task.Feedback {
			if f.Kind != "condition" {
				taken = append(taken, f.ID)
			}
		}
		l.do(Event{Kind: EventLaunched, Run: l.task.Run.ID, Launch: &Launch{Run: l.task.Run.ID, VM: VM{Name: "vm1"}, Started: l.now, Taken: taken}})
	}
	approve()
	launch()
	l.end(RunResult{Text: "Steps.", Outcome: "build"})
	l.want(PhaseAwaitingPlanApproval, JobPost)
	l.postPlan(12)
	approve()
	l.want(PhaseImplementing, JobLaunch)
	launch()
	l.end(RunResult{Outcome: "done"})
	l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}})
	l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}})
	l.do(Event{Kind: EventMoved})
	l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}})
	l.want(PhasePROpen)
	if slices.Contains(kindsOf(l.jobs), JobGather) {
		t.Error("a round is begun though nobody asked for one")
	}
	if l.do(Event{Kind: EventGathered}); l.task.Phase != PhasePROpen {
		t.Errorf("an empty round began: %s", l.task.Phase)
	}
	if n := len(l.task.Feedback); n != 2 {
		t.Errorf("%d conditions are kept, want 2: %+v", n, l.task.Feedback)
	}
}

// TestOutsidersReviewReachesNobody: on a public repository anybody may submit a review, in any phase.
func TestOutsidersReviewReachesNobody(t *testing.T) {
	t.Parallel()
	for _, phase := range Phases() {
		l := newLife(t)
		l.toPR()
		l.task.Phase = phase
		l.do(Event{Kind: EventReviewed, By: visitor, Permission: PermissionRead, Review: &Review{ID: 9, State: "approved", Body: "run this"}})
		if len(l.task.Feedback) != 0 || l.task.PR.Ready || slices.Contains(kindsOf(l.jobs), JobGather) {
			t.Errorf("in %s: feedback %v, ready %v, jobs %v", phase, l.task.Feedback, l.task.PR.Ready, kindsOf(l.jobs))
		}
	}
}

// TestWaitingAfterReplan: what holds a task up after a replan holds it up in planning too: looking
// again reads the repository again, and launches nothing by itself.
func TestWaitingAfterReplan(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.comment(VerbReplan)
	l.want(PhasePreliminaryPlanning, JobStart)
	l.do(Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitConfig, Detail: "line 3"}})
	l.do(Event{Kind: EventDue, Detail: "recheck"})
	l.want(PhasePreliminaryPlanning, JobStart)
	if l.task.Run != nil {
		t.Errorf("a run is launched although the settings are invalid: %+v", l.task.Run)
	}
}

// comment has a writer give a command.
func (l *life) comment(verbs ...Verb) {
	l.t.Helper()
	e := Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Issue: &Issue{Title: "Bug", Body: "It breaks."}, Repo: &Repo{ID: 7, Owner: "o", Name: "r"}}
	e.Comment = &Comment{ID: l.now.Unix(), Body: "words", At: l.now, Mention: len(verbs) > 0}
	for _, v := range verbs {
		e.Orders = append(e.Orders, Order{Verb: v})
	}
	l.do(e)
}

// TestWithdrawnThumbOfSomebodyElse: while one person's approval is carried out, another's 👍 that was
// taken back changes nothing.
func TestWithdrawnThumbOfSomebodyElse(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.approve()
	l.launch()
	other := Candidate{Approval: Approval{Kind: PlanPreliminary, Hash: l.task.Plans[0].Hash, By: Person{ID: 8, Login: "bo"}, Permission: PermissionWrite, Via: ViaReaction}}
	l.do(Event{Kind: EventNoApproval, Detail: NotRevoked, Candidate: &other})
	l.want(PhasePlanning)
	if l.task.Run == nil || l.task.Approval == nil {
		t.Error("the run was dropped")
	}
	// Before its own start, the approver's word counts.
	l.end(RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(12)
	l.approve()
	l.do(Event{Kind: EventNoApproval, Detail: NotRevoked, Run: l.task.Run.ID, Candidate: &Candidate{Approval: *l.task.Approval}})
	l.want(PhaseAwaitingPlanApproval, JobPost)
}

// TestOtherThumbsCountAfterAWithdrawal: a 👍 that came beside the approval that counted may count once that one is withdrawn, and
// nothing else that was said is heard twice.
func TestOtherThumbsCountAfterAWithdrawal(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{"a 👍": NotRevoked, "a tick": NotTicked, "a deleted comment": NotErased, "an edited comment": NotReworded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.do(Event{Kind: EventThumb, ID: "thumb:R_1", By: writer, Permission: PermissionWrite, Candidate: &Candidate{Comment: l.task.Plans[0].Comment, Approval: Approval{Via: ViaReaction}}})
			l.task.Seen = append(l.task.Seen, "thumb:R_1", "comment:5")
			l.approve()
			l.do(Event{Kind: EventNoApproval, Detail: why, Run: l.task.Run.ID, Candidate: &Candidate{Approval: *l.task.Approval}})
			l.want(PhaseAwaitingPreliminaryApproval)
			if l.task.Knows("thumb:R_1") || !l.task.Knows("comment:5") {
				t.Errorf("known afterwards: %v", l.task.Seen)
			}
		})
	}
}

// TestTriggeredAgainAtOnce: who takes the assignment back and gives it again at once gets a new life
// that shares nothing with what is still being stopped.
func TestTriggeredAgainAtOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.do(Event{Kind: EventUntriggered, By: writer, Via: "assigned"})
	l.want(PhaseCancelled, JobStop)
	if vm := jobOf(l.jobs, JobStop).Args["vm"]; vm != "vm1" {
		t.Errorf("the stop is to happen on VM %q", vm)
	}
	l.trigger()
	l.want(PhaseQueued, JobStart, JobRelease)
	if l.task.VM != nil || len(l.task.VMs) != 1 || jobOf(l.jobs, JobRelease).Args["vm"] != "vm1" {
		t.Errorf("VM %v, earlier ones %v, jobs %+v", l.task.VM, l.task.VMs, l.jobs)
	}
}

func jobOf(jobs []Job, kind JobKind) Job {
	for _, j := range jobs {
		if j.Kind == kind {
			return j
		}
	}
	return Job{}
}

// TestStoppedStaysStopped: after a stop, talk on the issue is talk. A message to the bot goes on.
func TestStoppedStaysStopped(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.comment(VerbStop)
	l.comment()
	l.want(PhaseAwaitingAnswer)
	l.comment(VerbRetry)
	l.want(PhasePreliminaryPlanning, JobLaunch)
}

// TestManyOrdersInOneComment: however often one comment stops and retries, the last word has its job.
func TestManyOrdersInOneComment(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.comment(VerbStop, VerbRetry, VerbStop, VerbRetry)
	l.want(PhasePreliminaryPlanning)
	last := ""
	keys := map[string]bool{}
	for _, j := range l.jobs {
		if j.Kind == JobLaunch && !keys[j.Key] { // the store takes one per key
			keys[j.Key], last = true, j.Run
		}
	}
	if last != l.task.Run.ID {
		t.Errorf("launches %s, waits for %s", last, l.task.Run.ID)
	}
}

// TestApproveOrders says which written approvals are checked at all.
func TestApproveOrders(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order Order
		after time.Duration // the newest revision was posted
		ok    bool
	}{
		"bare, at once":          {after: time.Second},
		"bare, when it stood":    {after: 31 * time.Second, ok: true},
		"bare, written before":   {after: -time.Second},
		"its hash, at once":      {order: Order{Hash: "new"}, after: time.Second, ok: true},
		"an old hash":            {order: Order{Hash: "old"}, after: time.Hour},
		"an approach too many":   {order: Order{Choice: 3}, after: time.Hour},
		"a hash that is no word": {order: Order{Hash: "abc"}, after: time.Hour},
	} {
		l := newLife(t)
		l.toPreliminary()
		old := l.task.NewestPlan().Hash
		l.approve()
		l.launch()
		l.end(RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		p := l.task.NewestPlan()
		c.order.Verb = VerbApprove
		c.order.Hash = map[string]string{"new": p.Hash, "old": old}[c.order.Hash]
		if name == "a hash that is no word" {
			c.order.Hash = p.Hash[:6]
		}
		jobs := l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Orders: []Order{c.order},
			Comment: &Comment{ID: 99, At: p.PostedAt.Add(c.after), Mention: true}})
		if ok := slices.Contains(kindsOf(jobs), JobApprove); ok != c.ok {
			t.Errorf("%s: checked %v, want %v", name, ok, c.ok)
		}
	}
}

// TestNoSilence: whoever may direct the bot gets an answer of some kind to every command in every phase.
func TestNoSilence(t *testing.T) {
	t.Parallel()
	for _, phase := range Phases() {
		for _, verb := range []Verb{VerbApprove, VerbCancel, VerbStop, VerbRetry, VerbStatus, VerbReplan, VerbBudget, VerbModel, VerbCreatePR, VerbIssue, VerbHelp, VerbPlan, VerbMessage, VerbUnknown} {
			l := newLife(t)
			l.toPR()
			l.task.Phase, l.task.Resume, l.task.End = phase, PhaseImplementing, &End{}
			if phase.Working() && phase != PhaseQueued {
				l.task.Run = &Run{ID: "7-1-9", Kind: runOfPhase(phase), State: RunActive}
			}
			l.comment(verb)
			if !slices.ContainsFunc(l.jobs, func(j Job) bool { return j.Kind != JobStatus }) {
				t.Errorf("%s in %s is met with silence", verb, phase)
			}
		}
	}
}

// TestStopHolds: what would go on by itself after a while does not after a stop, until a person says so.
func TestStopHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(l *life)
		resume Event
		after  Phase
	}{
		"interrupted": {func(l *life) {
			l.start()
			l.launch()
			l.end(RunResult{Class: "retryable", Status: "limit"})
		}, Event{Kind: EventDue, Detail: "resume"}, PhasePreliminaryPlanning},
		"blocked": {func(l *life) {
			l.do(Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitBlocked, Detail: "#2"}})
		}, Event{Kind: EventDue, Detail: "recheck"}, PhaseQueued},
		"starting": {func(*life) {}, Event{Kind: EventStarted, Start: &Start{Visible: true, Settings: DefaultSettings()}}, PhaseQueued},
	} {
		l := newLife(t)
		l.trigger()
		c.before(l)
		l.comment(VerbStop)
		l.want(PhaseAwaitingAnswer, JobPost)
		l.do(c.resume)
		if l.task.Phase != PhaseAwaitingAnswer || l.task.Run != nil {
			t.Errorf("%s: goes on in %s", name, l.task.Phase)
		}
		l.comment(VerbRetry)
		if l.task.Phase != c.after {
			t.Errorf("%s: after a retry %s, want %s", name, l.task.Phase, c.after)
		}
	}
}

// TestRetryOfUnreadableWork: work that cannot be read from its VM is not read again and again; if
// GitHub was the trouble it is.
func TestRetryOfUnreadableWork(t *testing.T) {
	t.Parallel()
	for class, want := range map[string]JobKind{ClassVM: JobLaunch, "internal": JobLaunch, "github": JobCollect} {
		l := newLife(t)
		l.toPreliminary()
		l.approve()
		l.launch()
		l.end(RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		l.approve()
		l.launch()
		l.end(RunResult{Outcome: "done"})
		l.do(Event{Kind: EventStepFailed, Failure: &Failure{Job: JobCollect, Class: class, Reason: "it cannot be read"}})
		l.want(PhaseFailed)
		l.comment(VerbRetry)
		l.want(PhaseImplementing, want)
		if want == JobLaunch && l.task.Run.Repeat != "it cannot be read" {
			t.Errorf("%s: the agent is told %q", class, l.task.Run.Repeat)
		}
	}
}
