package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/settings"
)

// walker simulates random events around one task: people, supervisors and workers, with the real Next and the real
// store. After every step the task must not be stuck: a run, a job or a person's action must be able to advance it.
type walker struct {
	*testStore
	t      *testing.T
	random *rand.Rand
	facts  int // numbers outside things
	trail  []string
	seen   map[state.Phase]bool
	calm   bool // nothing goes wrong, people approve and review
}

func TestRandomLives(t *testing.T) {
	t.Parallel()
	const lives, steps = 20, 150
	reached := make(chan map[state.Phase]bool, lives)
	t.Run("lives", func(t *testing.T) {
		for seed := range lives {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := &walker{testStore: newTestStore(t), t: t, random: rand.New(rand.NewPCG(3, uint64(seed))), seen: map[state.Phase]bool{}}
				w.next = machine.Next
				for n := range steps {
					w.calm = seed%2 == 1 && n < steps/2
					w.step()
					w.check()
				}
				reached <- w.seen
			})
		}
	})
	close(reached)
	all := map[state.Phase]bool{}
	for seen := range reached {
		for p := range seen {
			all[p] = true
		}
	}
	for _, p := range state.Phases() {
		if !all[p] && !t.Failed() {
			t.Errorf("got no life that reached %s, want one", p)
		}
	}
}

// chance reports whether an unusual event happens.
func (w *walker) chance(percent int) bool { return !w.calm && w.random.IntN(100) < percent }

func (w *walker) pick(names ...string) string { return names[w.random.IntN(len(names))] }

func (w *walker) fact() int { w.facts++; return w.facts }

// step lets a worker, the supervisor, time or a person act.
func (w *walker) step() {
	task, err := w.Task(w.t.Context(), task1)
	if err != nil {
		w.t.Fatal(err)
	}
	switch n := w.random.IntN(100); {
	case task == nil && n < 50 || task != nil && task.Ended() && n < 20:
		w.apply(w.person(task, "trigger"), Ack{})
	case task == nil || n < 70:
		w.work(task)
	case n < 88 && task.Run != nil && task.Run.State != state.RunLaunching:
		w.apply(w.runEvent(task), Ack{})
	case n < 94:
		w.advance(time.Duration(w.random.Int64N(int64(2 * time.Hour))))
		if _, err := w.Rescue(w.t.Context(), w.time()); err != nil {
			w.t.Fatal(err)
		}
	default:
		w.apply(w.person(task, ""), Ack{})
	}
}

func (w *walker) apply(e event.Event, ack Ack) {
	e.Task = task1
	if e.At.IsZero() {
		e.At = w.time()
	}
	before, err := w.Task(w.t.Context(), task1)
	if err != nil {
		w.t.Fatal(err)
	}
	applied, err := w.Apply(w.t.Context(), e, ack)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		w.fatal("apply %s: %v", e.Kind(), err)
	}
	if applied.Changed && !listed(before, e, applied.Task.Phase) {
		w.fatal("%s%s led to %s, which no row lists (%s)", e.Kind(), verbs(event.Of[event.Commented](e).Orders), applied.Task.Phase, applied.Note)
	}
	phase := state.Phase("none")
	if applied.Task != nil {
		phase = applied.Task.Phase
		w.seen[phase] = true
	}
	w.trail = append(w.trail, fmt.Sprintf("%s %s%s %s -> %s (%s)", ack.Job, e.Kind(), verbs(event.Of[event.Commented](e).Orders), e.Via, phase, applied.Note))
}

// listed reports whether the table, and so the documentation, has a row for a change of phase.
func listed(before *state.Task, e event.Event, after state.Phase) bool {
	verb := state.Verb("")
	if len(event.Of[event.Commented](e).Orders) > 0 {
		verb = event.Of[event.Commented](e).Orders[0].Verb
	}
	return slices.ContainsFunc(machine.Table(), func(r machine.Row) bool {
		if r.On != e.Kind() || r.Verb != verb && r.Verb != "" {
			return false
		}
		if before == nil {
			return r.From == nil && slices.Contains(r.To, after)
		}
		return slices.Contains(r.From, before.Phase) && (slices.Contains(r.To, after) || after == before.Phase && slices.Contains(r.To, machine.Same))
	})
}

func verbs(orders []state.Order) string {
	text := ""
	for _, o := range orders {
		text += " " + string(o.Verb)
	}
	return text
}

func (w *walker) fatal(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(w.trail, "\n"))
}

// work claims a job, if there is one, and usually finishes it.
func (w *walker) work(task *state.Task) {
	job, err := w.Claim(w.t.Context(), w.claimReq())
	if err != nil {
		w.t.Fatal(err)
	}
	if job == nil {
		w.advance(time.Minute)
		return
	}
	switch {
	case w.chance(5): // the worker dies
		w.trail = append(w.trail, job.ID+" "+string(job.Kind)+" is abandoned")
		return
	case w.chance(5):
		w.trail = append(w.trail, job.ID+" "+string(job.Kind)+" is given back")
		if err := w.Retry(w.t.Context(), job.ID, job.Epoch, state.Failed{Error: "boom", Retry: w.time().Add(time.Minute)}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	e := w.outcome(task, job)
	if giveUp := w.chance(4) && mayGiveUp(job); giveUp {
		failure := state.Failure{Job: job.Kind, Class: state.ClassGitHub, Reason: "it broke", Hint: "mend it"}
		if w.chance(50) && job.Kind != state.JobPost {
			failure.RetryAt = w.time().Add(time.Hour)
		}
		e = event.Event{Run: job.Run, Payload: event.StepFailed{Post: job.Post, Failure: failure}}
	}
	w.apply(e, Ack{Job: job.ID, Epoch: job.Epoch})
}

// mayGiveUp reports whether the walk lets a job fail permanently: those whose failure is reported to the task.
func mayGiveUp(job *state.Job) bool {
	life := []state.JobKind{state.JobStart, state.JobLaunch, state.JobCollect, state.JobShow, state.JobCommit, state.JobMove, state.JobRebase, state.JobOpenPR, state.JobReopen, state.JobAnswer}
	return slices.Contains(life, job.Kind) || job.Post != nil && job.Post.Kind == state.PostPlan
}

// outcome returns a possible report of a step of internal/workflow.
func (w *walker) outcome(task *state.Task, job *state.Job) event.Event {
	switch job.Kind {
	case state.JobVet:
		e := storedEvent(w.t, job)
		e.Permission = state.PermissionWrite
		if w.chance(10) {
			e.Permission = state.PermissionRead
		}
		return e
	case state.JobStart:
		return w.startOutcome()
	case state.JobLaunch:
		if w.chance(10) {
			return event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitVM, Detail: "none to be had"}}}
		}
		return event.Event{Run: job.Run, Payload: event.Launched{Launch: state.Launch{Run: job.Run, VM: state.VM{Name: "vm-" + w.pick("1", "2")}, Started: w.time(), FeedbackIDs: feedbackIDs(task.Feedback), IsRepair: task.Run != nil && task.Run.Seq%2 == 0}}}
	case state.JobStop:
		return event.Event{Run: job.Run, Payload: event.WorkSaved{Work: state.SavedWork{Run: job.Run, Ref: "ref", At: w.time()}}}
	case state.JobApprove:
		if w.chance(10) {
			return event.Event{Payload: event.ApprovalRejected{Candidate: *job.Candidate, Rejection: w.pick(state.RejectedNoPermission, state.RejectedPlanEdited, state.RejectedIssueChanged)}}
		}
		return event.Event{Payload: event.Approved{Candidate: *job.Candidate}}
	case state.JobPost:
		return event.Event{Payload: event.Posted{Post: job.Post, Comment: state.Posted{Key: job.Key, ID: int64(w.fact()), At: w.time()}, BodyHash: "body"}}
	case state.JobStatus:
		return event.Event{Payload: event.StatusSent{Status: state.StatusComment{Comment: 1, Shown: task.Visible, At: w.time()}}}
	case state.JobRelease:
		return event.Event{Payload: event.Released{Reason: state.VMEndReason(job.Args.Reason)}}
	case state.JobDue:
		return event.Event{Payload: event.NewDue(job.Args.Due, job.Args.Key)}
	case state.JobGather:
		return event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: fmt.Sprintf("thread:%d", w.fact()), Kind: "thread"}}}}
	}
	return w.publishOutcome(task, job)
}

func (w *walker) startOutcome() event.Event {
	repoSettings := settings.Default()
	repoSettings.Plan = settings.PlanMode(w.pick(string(settings.PlanTwoStep), string(settings.PlanTwoStep), string(settings.PlanOneStep), string(settings.PlanNone)))
	if w.random.IntN(3) == 0 {
		repoSettings.Publish = settings.PublishAfterApproval
	}
	if w.chance(50) {
		repoSettings.Check = []settings.Command{{Run: "make test"}}
	}
	start := &event.Start{Settings: repoSettings, Visible: !w.chance(10), Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "0"}}
	switch {
	case w.chance(10):
		return event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitBlocked, Detail: "#1", Issues: []string{"o/r#1"}}}}
	case w.chance(10):
		return event.Event{Payload: event.QuestionRaised{Start: start, Question: state.Question{Kind: state.AskExisting, Text: "go on?"}}}
	}
	return event.Event{Payload: event.Started{Start: *start}}
}

func (w *walker) publishOutcome(task *state.Task, job *state.Job) event.Event {
	switch job.Kind {
	case state.JobCollect, state.JobRebase:
		switch {
		case job.Kind == state.JobRebase && w.chance(30):
			return event.Event{Payload: event.Conflict{Head: "theirs", Paths: []string{"a.go"}}}
		case w.chance(10):
			return event.Event{Run: job.Run, Payload: event.Collected{Work: &state.Work{Run: job.Run, LocalHead: "h", Paths: 1}, Refusals: []state.Refusal{{Rule: "size"}}}}
		case w.chance(10):
			return event.Event{Run: job.Run, Payload: event.Collected{}}
		}
		tree := fmt.Sprint("t", w.random.IntN(3))
		return event.Event{Run: job.Run, Payload: event.Collected{Work: &state.Work{Run: job.Run, Ref: fmt.Sprint("ref", w.fact()), LocalHead: "h", LocalTree: tree, Paths: 1, Commits: 1}}}
	case state.JobShow:
		return event.Event{Run: job.Run, Payload: event.DiffReady{Plan: state.Plan{Text: "+line", Publish: &state.Changes{Ref: task.Work.Ref, Digest: "d", Tree: task.Work.LocalTree}}}}
	case state.JobCommit:
		if k := newestApproval(task); k != nil && w.chance(10) {
			return event.Event{Payload: event.ApprovalRejected{Candidate: state.Candidate{Approval: *k}, Rejection: state.RejectedRevoked}}
		}
		return event.Event{Run: job.Run, Payload: event.Committed{Work: &state.Work{Run: job.Run, Head: "H", Tree: "T"}}}
	case state.JobMove:
		if w.chance(30) {
			return event.Event{Run: job.Run, Payload: event.BranchAhead{Head: "theirs"}}
		}
		return event.Event{Run: job.Run, Payload: event.BranchMoved{}}
	case state.JobOpenPR:
		return event.Event{Payload: event.PROpened{PR: state.PR{Number: w.fact(), State: "open"}}}
	case state.JobClosePR:
		return event.Event{Payload: event.PRReplaced{Number: job.Args.Number, Branch: job.Args.Branch, Closed: w.chance(50)}}
	case state.JobReopen:
		return event.Event{Payload: event.PRReopened{Head: "H"}}
	case state.JobAnswer:
		return event.Event{Payload: event.ThreadsAnswered{}}
	}
	return event.Event{} // reactions and the like mean nothing to the task
}

// newestApproval returns the approval of the changes that are being published, or nil if they need none.
func newestApproval(task *state.Task) *state.Approval {
	if p := task.NewestPlan(); p != nil && p.Publish != nil {
		return p.Publish.Approved
	}
	return nil
}

// runEvent returns a supervisor's report.
func (w *walker) runEvent(task *state.Task) event.Event {
	run := task.Run.ID
	if w.chance(20) {
		return event.Event{Run: run, Payload: event.Progress{LastSeq: 1, Session: "s"}}
	}
	res := state.RunResult{Class: state.RunSucceeded, Status: state.StatusOK, Text: "text", Outcome: "build", Ended: w.time(), Session: "s"}
	switch n := w.random.IntN(20); {
	case w.calm:
	case task.Run.Kind == state.RunCheck && n < 8:
		res.Checks = []state.CheckResult{{Name: "test", Code: 1}}
	case n == 0:
		res.Outcome, res.Question = "question", "which one?"
	case n == 1:
		res.Outcome = state.OutcomeReport
	case n == 2:
		res.Class, res.Status = state.RunFatal, state.RunStatus(w.pick("max_turns", "budget", "crashed"))
	case n == 3:
		res.Class, res.Status = state.RunRetryable, state.RunStatus(w.pick("overloaded", string(state.StatusVMLost)))
	case n == 4:
		res.Class, res.Status = state.RunRetryable, state.StatusNoSession
	case n == 5:
		res.Broken, res.Guess = "it ends too early", true
	}
	return event.Event{Run: run, Payload: event.RunEnded{Result: res}}
}

// person returns an action by a person; what limits it to one kind.
func (w *walker) person(task *state.Task, what string) event.Event {
	n := w.fact()
	e := event.Event{By: ada, Repo: &state.Repo{ID: 10, Owner: "o", Name: "r"}, ID: fmt.Sprintf("outside:%d", n)}
	issue := &state.Issue{Title: "Bug", Body: w.pick("It breaks.", "It breaks badly.")}
	comment := &state.Comment{ID: int64(n), Body: "words", At: w.time(), Mention: true}
	switch {
	case what != "":
	case task != nil && task.Phase == state.PhasePROpen && w.random.IntN(2) == 0:
		what = w.pick("close pull", "merge", "review")
	case task != nil && task.Phase == state.PhasePRClosed && w.random.IntN(2) == 0:
		what = w.pick("reopen pull", "order", "trigger")
	case w.calm:
		what = w.pick("thumb", "thumb", "thumb", "review", "review", "merge")
	default:
		what = w.pick("approve", "approve", "thumb", "thumb", "comment", "order", "order", "edit", "review", "review", "close", "merge", "close pull", "reopen pull",
			"push", "untrigger", "plan edited", "poke", "trigger")
	}
	switch what {
	case "trigger":
		e.Via, e.Payload = "assigned", event.Triggered{Issue: issue}
	case "untrigger":
		e.Via, e.Payload = "assigned", event.Untriggered{}
	case "approve":
		e.Payload = event.Commented{Comment: comment, Orders: []state.Order{{Verb: state.VerbApprove}}}
	case "comment":
		comment.Mention = false
		e.Payload = event.Commented{Comment: comment, Issue: issue}
	case "order":
		verb := state.Verb(w.pick("retry", "retry", "retry", "stop", "replan", "message", "message", "budget", "create pr", "cancel", "plan", "help", "restart"))
		e.Payload = event.Commented{Comment: comment, Issue: issue, Orders: []state.Order{{Verb: verb, Fresh: w.chance(30), MicroUSD: 5}}}
	case "edit":
		e.Payload = event.IssueEdited{Issue: issue}
	case "review":
		e.Payload = event.Reviewed{Review: state.Review{ID: int64(n), State: state.ReviewState(w.pick("approved", "changes_requested")), Body: w.pick("", "words")}}
	case "close":
		e.Payload = event.IssueClosed{}
	case "merge":
		e.Payload = event.PRClosed{Merged: true}
	case "close pull":
		e.Payload = event.PRClosed{}
	case "reopen pull":
		e.Payload = event.PRReopened{Head: "theirs"}
	case "push":
		e.Payload = event.Pushed{Head: "theirs"}
	case "poke":
		e.Payload = event.ConditionChanged{}
	case "thumb", "plan edited":
		e.Payload = w.aboutPlan(task, what)
	}
	return e
}

// aboutPlan returns a 👍 on the newest plan or an edit of it, or ConditionChanged if there is none.
func (w *walker) aboutPlan(task *state.Task, what string) event.Payload {
	if task == nil || task.NewestPlan() == nil || !task.NewestPlan().Posted() {
		return event.ConditionChanged{}
	}
	p := task.NewestPlan()
	if what == "thumb" {
		return event.Thumb{Candidate: &state.Candidate{Comment: p.Comment, Approval: state.Approval{Via: state.ViaReaction, Given: w.time()}}}
	}
	return event.CommentEdited{Comment: &state.Comment{ID: p.Comment}}
}

// check fails if nothing will advance the task.
func (w *walker) check() {
	w.t.Helper()
	task, err := w.Task(w.t.Context(), task1)
	if err != nil {
		w.t.Fatal(err)
	}
	jobs, err := w.Jobs(w.t.Context(), task1)
	if err != nil {
		w.t.Fatal(err)
	}
	if task == nil {
		return
	}
	for _, problem := range []string{stuck(task, jobs), unapproved(task), unshown(task, jobs)} {
		if problem == "" {
			continue
		}
		w.fatal("in phase %s, step %q, run %+v, waiting %+v, with jobs %v: %s", task.Phase, task.Step, task.Run, task.Waiting, jobKinds(jobs), problem)
	}
}
