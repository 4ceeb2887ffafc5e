package machine

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Conditions of an approval are in every later prompt. They are not feedback that waits for a run: the next plan can be
// approved, and no round begins because of them.
func TestApprovalConditionIsNotAChangeRequest(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	approve := func() {
		p := l.task.NewestPlan()
		l.do(event.Event{Payload: event.Approved{Candidate: state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaCommand, Given: l.now, With: "keep the flag"}}}})
	}
	launch := func() {
		var taken []string
		for _, f := range l.task.Feedback {
			if f.Kind != "condition" {
				taken = append(taken, f.ID)
			}
		}
		l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm1"}, Started: l.now, FeedbackIDs: taken}}})
	}
	approve()
	launch()
	l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
	l.want(state.PhaseAwaitingPlanApproval, state.JobPost)
	l.postPlan(12)
	approve()
	l.want(state.PhaseImplementing, state.JobLaunch)
	launch()
	l.end(state.RunResult{Outcome: "done"})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "h", LocalTree: "t"}}})
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}}})
	l.do(event.Event{Payload: event.BranchMoved{}})
	l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: "open"}}})
	l.want(state.PhasePROpen)
	if slices.Contains(kindsOf(l.jobs), state.JobGather) {
		t.Error("got a new round without a request, want none")
	}
	if l.do(event.Event{Payload: event.Gathered{}}); l.task.Phase != state.PhasePROpen {
		t.Errorf("got phase %s after an empty round, want none", l.task.Phase)
	}
	if n := len(l.task.Feedback); n != 2 {
		t.Errorf("got %d conditions, want 2: %+v", n, l.task.Feedback)
	}
}

// On a public repository anybody may submit a review, in any phase.
func TestReviewWithoutWriteAccessIsIgnored(t *testing.T) {
	t.Parallel()
	for _, phase := range state.Phases() {
		l := newLife(t)
		l.toPR()
		l.task.Phase = phase
		l.do(event.Event{By: visitor, Permission: state.PermissionRead, Payload: event.Reviewed{Review: state.Review{ID: 9, State: "approved", Body: "run this"}}})
		if len(l.task.Feedback) != 0 || l.task.PR.Ready || slices.Contains(kindsOf(l.jobs), state.JobGather) {
			t.Errorf("in %s: got feedback %v, ready %v, jobs %v; want none", phase, l.task.Feedback, l.task.PR.Ready, kindsOf(l.jobs))
		}
	}
}

// The cause of a wait after a replan also holds in planning: checking again reads the repository again, and launches
// nothing.
func TestWaitingAfterReplan(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.comment(state.VerbReplan)
	l.want(state.PhasePreliminaryPlanning, state.JobStart)
	l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitConfig, Detail: "line 3"}}})
	l.do(event.Event{Payload: event.NewDue("recheck", "")})
	l.want(state.PhasePreliminaryPlanning, state.JobStart)
	if l.task.Run != nil {
		t.Errorf("got a run with invalid settings, want none: %+v", l.task.Run)
	}
}

// comment lets a writer give a command.
func (l *life) comment(verbs ...state.Verb) {
	l.t.Helper()
	p := event.Commented{
		Issue:   &state.Issue{Title: "Bug", Body: "It breaks."},
		Comment: &state.Comment{ID: l.now.Unix(), Body: "words", At: l.now, Mention: len(verbs) > 0},
	}
	for _, v := range verbs {
		p.Orders = append(p.Orders, state.Order{Verb: v})
	}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: p})
}

// While one person's approval is being executed, another person's withdrawn 👍 has no effect.
func TestOtherPersonsWithdrawnThumbHasNoEffect(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.approve()
	l.launch()
	other := state.Candidate{Approval: state.Approval{Kind: state.PlanPreliminary, Hash: l.task.Plans[0].Hash, By: state.Person{ID: 8, Login: "bo"}, Permission: state.PermissionWrite, Via: state.ViaReaction}}
	l.do(event.Event{Payload: event.ApprovalRejected{Rejection: state.RejectedRevoked, Candidate: other}})
	l.want(state.PhasePlanning)
	if l.task.Run == nil || l.task.Approval == nil {
		t.Error("got a dropped run, want it to continue")
	}
	// Before its own start, the approver's word counts.
	l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
	l.postPlan(12)
	l.approve()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.ApprovalRejected{Rejection: state.RejectedRevoked, Candidate: state.Candidate{Approval: *l.task.Approval}}})
	l.want(state.PhaseAwaitingPlanApproval, state.JobPost)
}

// A 👍 that did not count besides a counted approval may count after that is withdrawn; no other event is applied twice.
func TestOtherThumbsCountAfterWithdrawal(t *testing.T) {
	t.Parallel()
	for name, reason := range map[string]string{"a 👍": state.RejectedRevoked, "a tick": state.RejectedUnticked, "a deleted comment": state.RejectedCommentDeleted, "an edited comment": state.RejectedCommentEdited} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.do(event.Event{ID: "thumb:R_1", By: writer, Permission: state.PermissionWrite, Payload: event.Thumb{Candidate: &state.Candidate{Comment: l.task.Plans[0].Comment, Approval: state.Approval{Via: state.ViaReaction}}}})
			l.task.SeenIDs = append(l.task.SeenIDs, "thumb:R_1", "comment:5")
			l.task.SeenUntrustedIDs = append(l.task.SeenUntrustedIDs, "thumb:R_2") // whose permission was not known yet
			l.approve()
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.ApprovalRejected{Rejection: reason, Candidate: state.Candidate{Approval: *l.task.Approval}}})
			l.want(state.PhaseAwaitingPreliminaryApproval)
			if l.task.HasSeen("thumb:R_1") || l.task.HasSeen("thumb:R_2") || !l.task.HasSeen("comment:5") {
				t.Errorf("got known events %v", l.task.SeenIDs)
			}
		})
	}
}

// Removing the assignment and assigning again immediately starts a new life, which shares nothing with the one that is
// being stopped.
func TestImmediateRetriggerStartsNewLife(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.do(event.Event{By: writer, Via: "assigned", Payload: event.Untriggered{}})
	l.want(state.PhaseCancelled, state.JobStop)
	if vm := jobOf(l.jobs, state.JobStop).Args.VM; vm != "vm1" {
		t.Errorf("got a stop on VM %q", vm)
	}
	l.trigger()
	l.want(state.PhaseQueued, state.JobStart, state.JobRelease)
	if l.task.VM != nil || len(l.task.VMs) != 1 || jobOf(l.jobs, state.JobRelease).Args.VM != "vm1" {
		t.Errorf("got VM %v, earlier VMs %v, jobs %+v", l.task.VM, l.task.VMs, l.jobs)
	}
}

func jobOf(jobs []state.Job, kind state.JobKind) state.Job {
	for _, j := range jobs {
		if j.Kind == kind {
			return j
		}
	}
	return state.Job{}
}

// After a stop, comments on the issue are discussion. A message to errand continues the task.
func TestStoppedTaskIgnoresDiscussion(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.comment(state.VerbStop)
	l.comment()
	l.want(state.PhaseAwaitingAnswer)
	l.comment(state.VerbRetry)
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
}

// However often one comment stops and retries, the last command has its job.
func TestLastOfManyCommandsHasAJob(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.comment(state.VerbStop, state.VerbRetry, state.VerbStop, state.VerbRetry)
	l.want(state.PhasePreliminaryPlanning)
	last := ""
	keys := map[string]bool{}
	for _, j := range l.jobs {
		if j.Kind == state.JobLaunch && !keys[j.Key] { // the store takes one per key
			keys[j.Key], last = true, j.Run
		}
	}
	if last != l.task.Run.ID {
		t.Errorf("got a launch of run %s, want run %s", last, l.task.Run.ID)
	}
}

// Which written approvals are checked against GitHub.
func TestApproveCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		order state.Order
		after time.Duration // the newest revision was posted
		ok    bool
	}{
		"bare, at once":          {after: time.Second},
		"bare, when it stood":    {after: 31 * time.Second, ok: true},
		"bare, written before":   {after: -time.Second},
		"its hash, at once":      {order: state.Order{Hash: "new"}, after: time.Second, ok: true},
		"an old hash":            {order: state.Order{Hash: "old"}, after: time.Hour},
		"an approach too many":   {order: state.Order{Choice: 3}, after: time.Hour},
		"a hash that is no word": {order: state.Order{Hash: "abc"}, after: time.Hour},
	} {
		l := newLife(t)
		l.toPreliminary()
		old := l.task.NewestPlan().Hash
		l.approve()
		l.launch()
		l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		p := l.task.NewestPlan()
		c.order.Verb = state.VerbApprove
		c.order.Hash = map[string]string{"new": p.Hash, "old": old}[c.order.Hash]
		if name == "a hash that is no word" {
			c.order.Hash = p.Hash[:6]
		}
		jobs := l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Orders: []state.Order{c.order}, Comment: &state.Comment{ID: 99, At: p.PostedAt.Add(c.after), Mention: true}}})
		if ok := slices.Contains(kindsOf(jobs), state.JobApprove); ok != c.ok {
			t.Errorf("%s: got checked %v, want %v", name, ok, c.ok)
		}
	}
}

// verbs returns all verbs, as state/order.go declares them.
func verbs(t *testing.T) (list []state.Verb) {
	t.Helper()
	source, err := os.ReadFile("../order.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\tVerb\w+ +Verb = "([^"]+)"`).FindAllStringSubmatch(string(source), -1) {
		list = append(list, state.Verb(m[1]))
	}
	if !slices.Contains(list, state.VerbApprove) || !slices.Contains(list, state.VerbUnknown) {
		t.Fatalf("got verbs %q", list)
	}
	return list
}

// Every command by a user with write access gets some answer in every phase.
func TestEveryCommandIsAnswered(t *testing.T) {
	t.Parallel()
	for _, phase := range state.Phases() {
		for _, verb := range verbs(t) {
			l := newLife(t)
			l.toPR()
			l.task.Phase, l.task.Resume, l.task.End = phase, state.PhaseImplementing, &state.End{}
			if phase.Working() && phase != state.PhaseQueued {
				l.task.Run = &state.Run{ID: "7-1-9", Kind: runOfPhase(phase), State: state.RunActive}
			}
			l.comment(verb)
			if !slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Kind != state.JobStatus }) {
				t.Errorf("%s in %s: got no answer, want one", verb, phase)
			}
		}
	}
}

// A task that would continue automatically does not after a stop, until a person continues it.
func TestStoppedTaskDoesNotContinueByItself(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(l *life)
		resume event.Event
		after  state.Phase
	}{
		"interrupted": {func(l *life) {
			l.start()
			l.launch()
			l.end(state.RunResult{Class: state.RunRetryable, Status: "limit"})
		}, event.Event{Payload: event.NewDue("resume", "")}, state.PhasePreliminaryPlanning},
		"blocked": {func(l *life) {
			l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitBlocked, Detail: "#2"}}})
		}, event.Event{Payload: event.NewDue("recheck", "")}, state.PhaseQueued},
		"starting": {func(*life) {}, event.Event{Payload: event.Started{Start: event.Start{Visible: true, Settings: settings.Default()}}}, state.PhaseQueued},
	} {
		l := newLife(t)
		l.trigger()
		c.before(l)
		l.comment(state.VerbStop)
		l.want(state.PhaseAwaitingAnswer, state.JobPost)
		l.do(c.resume)
		if l.task.Phase != state.PhaseAwaitingAnswer || l.task.Run != nil {
			t.Errorf("%s: got phase %s, want the task stopped", name, l.task.Phase)
		}
		l.comment(state.VerbRetry)
		if l.task.Phase != c.after {
			t.Errorf("%s: after a retry: got phase %s, want %s", name, l.task.Phase, c.after)
		}
	}
}

// Work that cannot be read from its VM is not read again and again, unless GitHub caused the failure.
func TestRetryOfUnreadableWork(t *testing.T) {
	t.Parallel()
	for class, want := range map[state.FailureClass]state.JobKind{state.ClassVM: state.JobLaunch, state.ClassInternal: state.JobLaunch, state.ClassGitHub: state.JobCollect} {
		l := newLife(t)
		l.toPreliminary()
		l.approve()
		l.launch()
		l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
		l.postPlan(12)
		l.approve()
		l.launch()
		l.end(state.RunResult{Outcome: "done"})
		l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobCollect, Class: class, Reason: "it cannot be read"}}})
		l.want(state.PhaseFailed)
		l.comment(state.VerbRetry)
		l.want(state.PhaseImplementing, want)
		if want == state.JobLaunch && l.task.Run.Repeat != "it cannot be read" {
			t.Errorf("%s: got reason %q for the agent", class, l.task.Run.Repeat)
		}
	}
}
