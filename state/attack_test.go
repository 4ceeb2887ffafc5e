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

// unaided lets everything but people act until the task comes to rest, and counts the launches.
func unaided(l *life, result func(*Run) RunResult) (launches int) {
	l.t.Helper()
	for range 2000 {
		switch {
		case l.task.Run != nil && l.task.Run.State == RunLaunching:
			launches++
			l.launch()
		case l.task.Run != nil:
			l.end(result(l.task.Run))
		case l.task.Phase == PhaseInterrupted:
			l.now = l.now.Add(time.Hour)
			l.do(Event{Kind: EventDue, Detail: "resume"})
		case l.task.Step == JobCollect:
			l.do(Event{Kind: EventCollected, Work: &Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}})
		case l.task.Step == JobCommit:
			l.do(Event{Kind: EventCommitted, Work: &Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}})
		case l.task.Step == JobMove:
			l.do(Event{Kind: EventMoved})
		case l.task.Step == JobOpenPR:
			l.do(Event{Kind: EventPROpened, PR: &PR{Number: 5, State: "open"}})
		default:
			return launches
		}
	}
	l.t.Fatalf("no rest in %s after %d launches", l.task.Phase, launches)
	return launches
}

// TestLaunchesAreBounded: agents cost money, so that without a person's word they are launched a
// bounded number of times, whatever goes wrong with them.
func TestLaunchesAreBounded(t *testing.T) {
	t.Parallel()
	lost := RunResult{Status: StatusVMLost, Class: "retryable"}
	flips := 0
	for name, result := range map[string]func(*Run) RunResult{
		"the checks lose the VM": func(r *Run) RunResult {
			if r.Kind == RunCheck {
				return lost
			}
			return RunResult{Outcome: "done"}
		},
		"the agent is lost every other time, the checks fail": func(r *Run) RunResult {
			if r.Kind == RunCheck {
				return RunResult{Checks: []CheckResult{{Name: "test", Code: 1}}}
			}
			if flips++; flips%2 == 0 {
				return lost
			}
			return RunResult{Outcome: "done"}
		},
		"the agent is always lost": func(*Run) RunResult { return lost },
	} {
		l := newLife(t)
		l.toPreliminary()
		l.task.Settings.Check = []Command{{Run: "make test"}}
		l.approve()
		l.launch()
		l.end(RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		l.approve()
		if n := unaided(l, result); n > maxUnasked {
			t.Errorf("%s: %d launches, then %s", name, n, l.task.Phase)
		}
		if p := l.task.Phase; p != PhaseFailed && p != PhasePROpen {
			t.Errorf("%s: ends in %s", name, p)
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

// TestPokesMakeOneLook: whoever closes issues on a public repository pokes what is blocked; however
// often, one look at a time waits for its turn.
func TestPokesMakeOneLook(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	keys := map[string]bool{}
	for range 5 {
		for _, j := range l.do(Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitBlocked, Detail: "#2"}}) {
			if j.Kind == JobDue {
				keys[j.Key] = true
			}
		}
		l.do(Event{Kind: EventPoked})
	}
	if len(keys) != 1 {
		t.Errorf("%d looks wait side by side: %v", len(keys), keys)
	}
}

// TestStoppedRunsCost: a run that was stopped has cost what it has cost, once.
func TestStoppedRunsCost(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	run := l.task.Run.ID
	l.now = l.now.Add(10 * time.Minute)
	l.comment(VerbStop)
	l.want(PhaseAwaitingAnswer, JobStop)
	res := &RunResult{Status: "interrupted", Class: "retryable", Ended: l.now, Money: Money{InputTokens: 10, OutputTokens: 5, MicroUSD: 7}}
	l.do(Event{Kind: EventRunEnded, Run: run, Result: res})
	l.do(Event{Kind: EventRunEnded, Run: run, Result: res})
	if m := l.task.Money; m.MicroUSD != 7 || m.InputTokens != 10 || m.OutputTokens != 5 || l.task.Active < 10*time.Minute {
		t.Errorf("money %+v, active %s", m, l.task.Active)
	}
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

// TestBudgetGoesOn: a task that stopped at its cap goes on when the cap is raised.
func TestBudgetGoesOn(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.do(Event{Kind: EventStepFailed, Failure: &Failure{Job: JobLaunch, Class: ClassBudget, Reason: "the cap is reached"}})
	l.want(PhaseFailed, JobPost)
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 60, Mention: true}, Orders: []Order{{Verb: VerbBudget, MicroUSD: 5_000_000}}})
	l.want(PhasePreliminaryPlanning, JobLaunch)
	if l.task.Money.CapMicroUSD != 15_000_000 {
		t.Errorf("the cap is %d", l.task.Money.CapMicroUSD)
	}
}

// TestIdleVM: plans may wait for weeks, and VMs are few. A VM that nobody needs is given back, never
// one at work.
func TestIdleVM(t *testing.T) {
	t.Parallel()
	idle := Event{Kind: EventDue, Detail: "idle", Hash: "vm1"}
	l := newLife(t)
	l.toPreliminary()
	l.do(idle)
	if j := jobOf(l.jobs, JobDue); l.task.VM == nil || !j.NotBefore.Equal(l.task.Since.Add(DefaultPolicy().IdleVM)) {
		t.Errorf("too early: VM %v, looks again at %s", l.task.VM, j.NotBefore)
	}
	l.comment(VerbMessage)
	l.now = l.now.Add(time.Hour)
	l.do(idle)
	l.launch()
	l.do(idle)
	if l.task.VM == nil {
		t.Fatal("the VM was taken from a run")
	}
	l.end(RunResult{Text: "A plan.", Outcome: "build"})
	l.now = l.now.Add(time.Hour)
	l.do(idle)
	if l.task.VM != nil || len(l.task.VMs) != 1 || jobOf(l.jobs, JobRelease).Args["vm"] != "vm1" {
		t.Errorf("VM %v, earlier ones %v, jobs %v", l.task.VM, l.task.VMs, kindsOf(l.jobs))
	}
	l.do(Event{Kind: EventReleased, VM: "vm1", Detail: "asleep"})
	if len(l.task.VMs) != 1 {
		t.Errorf("its end is noted %d times", len(l.task.VMs))
	}
}

// TestClocksOfVMs: what a VM says of times moves neither the limit on agent activity nor the end of a
// wait out of bounds.
func TestClocksOfVMs(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"right": 0, "slow": -100 * 24 * time.Hour, "fast": 100 * 24 * time.Hour} {
		l := newLife(t)
		l.trigger()
		l.start()
		l.launch()
		l.now = l.now.Add(10 * time.Minute)
		l.do(Event{Kind: EventRunEnded, Run: l.task.Run.ID, Result: &RunResult{Class: "retryable", Status: "limit", Ended: l.now.Add(off), RetryAt: l.now.AddDate(100, 0, 0)}})
		l.want(PhaseInterrupted, JobDue)
		if a := l.task.Active; a < 10*time.Minute || a > 11*time.Minute {
			t.Errorf("%s: active for %s", name, a)
		}
		if d := l.task.Waiting.Until.Sub(l.now); d > maxWait {
			t.Errorf("%s: waits for %s", name, d)
		}
	}
}

// TestStatusIsNoStorm: signs of life and strangers' talk do not use up what GitHub lets an App write.
func TestStatusIsNoStorm(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	edits, gap := 0, DefaultPolicy().StatusGap
	begun := l.now
	for l.now.Sub(begun) < time.Hour {
		l.now = l.now.Add(4 * time.Second)
		l.do(Event{Kind: EventProgress, Run: l.task.Run.ID, Progress: &Progress{LastSeq: 1}})
		l.do(Event{Kind: EventCommented, By: visitor, Permission: PermissionRead, Comment: &Comment{ID: l.now.Unix()}})
		if l.task.Status.Shown < l.task.Visible && !l.now.Before(l.task.Status.At.Add(gap)) {
			edits++
			l.do(Event{Kind: EventStatusSent, Status: &StatusComment{Comment: 1, Shown: l.task.Visible, At: l.now}})
		}
	}
	if edits < 30 || edits > 61 {
		t.Errorf("%d edits in an hour", edits)
	}
}

// TestNoSilence: whoever may direct the bot gets an answer of some kind to every command in every phase.
func TestNoSilence(t *testing.T) {
	t.Parallel()
	for _, phase := range Phases() {
		for _, verb := range []Verb{VerbApprove, VerbCancel, VerbStop, VerbRetry, VerbStatus, VerbReplan, VerbBudget, VerbModel, VerbCreatePR, VerbHelp, VerbPlan, VerbMessage, VerbUnknown} {
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
