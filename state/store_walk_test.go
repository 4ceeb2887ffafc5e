package state

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// walker plays a random world around one task: people, supervisors and workers, over the real Next
// and the real store. After every step the task must not be stuck: whatever it says it is doing, a
// run, a job or a person's word can bring it on.
type walker struct {
	*testStore
	t      *testing.T
	random *rand.Rand
	facts  int // numbers outside things
	trail  []string
	seen   map[Phase]bool
	calm   bool // nothing goes wrong, people approve and review
}

func TestRandomLives(t *testing.T) {
	t.Parallel()
	const lives, steps = 20, 150
	reached := make(chan map[Phase]bool, lives)
	t.Run("lives", func(t *testing.T) {
		for seed := range lives {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				w := &walker{testStore: newTestStore(t), t: t, random: rand.New(rand.NewPCG(3, uint64(seed))), seen: map[Phase]bool{}}
				w.next = Next
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
	all := map[Phase]bool{}
	for seen := range reached {
		for p := range seen {
			all[p] = true
		}
	}
	for _, p := range Phases() {
		if !all[p] && !t.Failed() {
			t.Errorf("no life came to %s: the walk proves too little", p)
		}
	}
}

// chance reports whether something unusual happens.
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
	case n < 88 && task.Run != nil && task.Run.State != RunLaunching:
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

func (w *walker) apply(e Event, ack Ack) {
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
		w.fatal("apply %s: %v", e.Kind, err)
	}
	if applied.Changed && !listed(before, e, applied.Task.Phase) {
		w.fatal("%s%s led to %s, which no row lists (%s)", e.Kind, verbs(e.Orders), applied.Task.Phase, applied.Note)
	}
	phase := Phase("none")
	if applied.Task != nil {
		phase = applied.Task.Phase
		w.seen[phase] = true
	}
	w.trail = append(w.trail, fmt.Sprintf("%s %s%s %s -> %s (%s)", ack.Job, e.Kind, verbs(e.Orders), e.Detail, phase, applied.Note))
}

// listed reports whether the table, and so the documentation, has a row for a change of phase.
func listed(before *Task, e Event, after Phase) bool {
	verb := Verb("")
	if len(e.Orders) > 0 {
		verb = e.Orders[0].Verb
	}
	return slices.ContainsFunc(Table(), func(r Row) bool {
		if r.On != e.Kind || r.Verb != verb && r.Verb != "" {
			return false
		}
		if before == nil {
			return r.From == nil && slices.Contains(r.To, after)
		}
		return slices.Contains(r.From, before.Phase) && (slices.Contains(r.To, after) || after == before.Phase && slices.Contains(r.To, Same))
	})
}

func verbs(orders []Order) string {
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

// work claims a job, if there is one, and mostly finishes it.
func (w *walker) work(task *Task) {
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
		if err := w.Retry(w.t.Context(), job.ID, job.Epoch, Failed{Error: "boom", Retry: w.time().Add(time.Minute)}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	e := w.outcome(task, job)
	if giveUp := w.chance(4) && mayGiveUp(job); giveUp {
		e = Event{Kind: EventStepFailed, Run: job.Run, Post: job.Post, Failure: &Failure{Job: job.Kind, Class: "github", Reason: "it broke", Hint: "mend it"}}
		if w.chance(50) && job.Kind != JobPost {
			e.Failure.RetryAt = w.time().Add(time.Hour)
		}
	}
	w.apply(e, Ack{Job: job.ID, Epoch: job.Epoch})
}

// mayGiveUp reports whether the walk lets a job fail for good: those whose failure the task is told.
func mayGiveUp(job *Job) bool {
	life := []JobKind{JobStart, JobLaunch, JobCollect, JobShow, JobCommit, JobMove, JobRebase, JobOpenPR, JobAnswer}
	return slices.Contains(life, job.Kind) || job.Post != nil && job.Post.Kind == PostPlan
}

// outcome is what a step of internal/workflow would report.
func (w *walker) outcome(task *Task, job *Job) Event {
	switch job.Kind {
	case JobVet:
		e := *job.Event
		e.Permission = PermissionWrite
		if w.chance(10) {
			e.Permission = PermissionRead
		}
		return e
	case JobStart:
		return w.startOutcome()
	case JobLaunch:
		if w.chance(10) {
			return Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitVM, Detail: "none to be had"}}
		}
		return Event{Kind: EventLaunched, Run: job.Run, Launch: &Launch{Run: job.Run, VM: VM{Name: "vm-" + w.pick("1", "2")}, Started: w.time(), Taken: ids(task.Feedback), Repairs: task.Run != nil && task.Run.Seq%2 == 0}}
	case JobStop:
		return Event{Kind: EventSaved, Run: job.Run, Saved: &SavedWork{Run: job.Run, Ref: "ref", At: w.time()}}
	case JobApprove:
		if w.chance(10) {
			return Event{Kind: EventNoApproval, Candidate: job.Candidate, Detail: w.pick(NotNoPermission, NotEdited, NotIssueChanged)}
		}
		return Event{Kind: EventApproved, Candidate: job.Candidate}
	case JobPost:
		return Event{Kind: EventPosted, Post: job.Post, Posted: &Posted{Key: job.Key, ID: int64(w.fact()), At: w.time()}, Hash: "body"}
	case JobStatus:
		return Event{Kind: EventStatusSent, Status: &StatusComment{Comment: 1, Shown: task.Visible, At: w.time()}}
	case JobRelease:
		return Event{Kind: EventReleased, Detail: job.Args["why"]}
	case JobDue:
		return Event{Kind: EventDue, Detail: job.Args["what"], Hash: job.Args["key"]}
	case JobGather:
		return Event{Kind: EventGathered, Feedback: []Feedback{{ID: fmt.Sprintf("thread:%d", w.fact()), Kind: "thread"}}}
	}
	return w.publishOutcome(task, job)
}

func (w *walker) startOutcome() Event {
	settings := DefaultSettings()
	settings.Plan = PlanMode(w.pick(string(PlanTwoStep), string(PlanTwoStep), string(PlanOneStep), string(PlanNone)))
	if w.random.IntN(3) == 0 {
		settings.Publish = PublishAfterApproval
	}
	if w.chance(50) {
		settings.Check = []Command{{Run: "make test"}}
	}
	start := &Start{Settings: settings, Visible: !w.chance(10), Branch: Branch{Name: "b", Base: "main", BaseSHA: "0"}}
	switch {
	case w.chance(10):
		return Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitBlocked, Detail: "#1", Issues: []string{"o/r#1"}}}
	case w.chance(10):
		return Event{Kind: EventAsked, Start: start, Question: &Question{Kind: AskExisting, Text: "go on?"}}
	}
	return Event{Kind: EventStarted, Start: start}
}

func (w *walker) publishOutcome(task *Task, job *Job) Event {
	switch job.Kind {
	case JobCollect, JobRebase:
		switch {
		case job.Kind == JobRebase && w.chance(30):
			return Event{Kind: EventConflict, Head: "theirs", Paths: []string{"a.go"}}
		case w.chance(10):
			return Event{Kind: EventCollected, Run: job.Run, Work: &Work{Run: job.Run, LocalHead: "h", Paths: 1}, Refusals: []Refusal{{Rule: "size"}}}
		case w.chance(10):
			return Event{Kind: EventCollected, Run: job.Run}
		}
		tree := fmt.Sprint("t", w.random.IntN(3))
		return Event{Kind: EventCollected, Run: job.Run, Work: &Work{Run: job.Run, Ref: fmt.Sprint("ref", w.fact()), LocalHead: "h", LocalTree: tree, Paths: 1, Commits: 1}}
	case JobShow:
		return Event{Kind: EventShown, Run: job.Run, Plan: &Plan{Text: "+line", Publish: &Changes{Ref: task.Work.Ref, Digest: "d", Tree: task.Work.LocalTree}}}
	case JobCommit:
		if k := newestApproval(task); k != nil && w.chance(10) {
			return Event{Kind: EventNoApproval, Candidate: &Candidate{Approval: *k}, Detail: NotRevoked}
		}
		return Event{Kind: EventCommitted, Run: job.Run, Work: &Work{Run: job.Run, Head: "H", Tree: "T"}}
	case JobMove:
		if w.chance(30) {
			return Event{Kind: EventOvertaken, Run: job.Run, Head: "theirs"}
		}
		return Event{Kind: EventMoved, Run: job.Run}
	case JobOpenPR:
		return Event{Kind: EventPROpened, PR: &PR{Number: w.fact(), State: "open"}}
	case JobAnswer:
		return Event{Kind: EventAnswered}
	}
	return Event{} // reactions and the like mean nothing to the task
}

// newestApproval is that of the changes that are being published, nil if they need none.
func newestApproval(task *Task) *Approval {
	if p := task.NewestPlan(); p != nil && p.Publish != nil {
		return p.Publish.Approved
	}
	return nil
}

// runEvent is what a supervisor reports.
func (w *walker) runEvent(task *Task) Event {
	run := task.Run.ID
	if w.chance(20) {
		return Event{Kind: EventProgress, Run: run, Progress: &Progress{LastSeq: 1, Session: "s"}}
	}
	res := &RunResult{Class: "success", Status: "ok", Text: "text", Outcome: "build", Ended: w.time(), Session: "s"}
	switch n := w.random.IntN(20); {
	case w.calm:
	case task.Run.Kind == RunCheck && n < 8:
		res.Checks = []CheckResult{{Name: "test", Code: 1}}
	case n == 0:
		res.Outcome, res.Question = "question", "which one?"
	case n == 1:
		res.Outcome = string(OutcomeReport)
	case n == 2:
		res.Class, res.Status = "fatal", w.pick("max_turns", "budget", "crashed")
	case n == 3:
		res.Class, res.Status = "retryable", w.pick("limit", StatusVMLost)
	case n == 4:
		res.Class, res.Status = "retryable", StatusNoSession
	case n == 5:
		res.Broken, res.Guess = "it ends too early", true
	}
	return Event{Kind: EventRunEnded, Run: run, Result: res}
}

// person is what somebody did; what limits it to one kind.
func (w *walker) person(task *Task, what string) Event {
	n := w.fact()
	e := Event{By: writer, Repo: &Repo{ID: 10, Owner: "o", Name: "r"}, ID: fmt.Sprintf("outside:%d", n)}
	issue := &Issue{Title: "Bug", Body: w.pick("It breaks.", "It breaks badly.")}
	comment := &Comment{ID: int64(n), Body: "words", At: w.time(), Mention: true}
	switch {
	case what != "":
	case w.calm:
		what = w.pick("thumb", "thumb", "thumb", "review", "review", "merge")
	default:
		what = w.pick("approve", "approve", "thumb", "thumb", "comment", "order", "order", "edit", "review", "review", "close", "merge",
			"push", "untrigger", "plan edited", "poke", "trigger")
	}
	switch what {
	case "trigger":
		e.Kind, e.Via, e.Issue = EventTriggered, "assigned", issue
	case "untrigger":
		e.Kind, e.Via = EventUntriggered, "assigned"
	case "approve":
		e.Kind, e.Comment, e.Orders = EventCommented, comment, []Order{{Verb: VerbApprove}}
	case "comment":
		e.Kind, e.Comment = EventCommented, comment
		e.Issue, comment.Mention = issue, false
	case "order":
		verb := Verb(w.pick("retry", "retry", "retry", "stop", "replan", "message", "message", "budget", "create pr", "cancel", "plan", "help"))
		e.Kind, e.Comment, e.Issue = EventCommented, comment, issue
		e.Orders = []Order{{Verb: verb, Fresh: w.chance(30), MicroUSD: 5}}
	case "edit":
		e.Kind, e.Issue = EventIssueEdited, issue
	case "review":
		e.Kind, e.Review = EventReviewed, &Review{ID: int64(n), State: w.pick("approved", "changes_requested"), Body: w.pick("", "words")}
	case "close":
		e.Kind = EventIssueClosed
	case "merge":
		e.Kind, e.Merged = EventPRClosed, true
	case "push":
		e.Kind, e.Head = EventPushed, "theirs"
	case "poke":
		e.Kind = EventPoked
	case "thumb", "plan edited":
		w.aboutPlan(task, &e, what)
	}
	return e
}

func (w *walker) aboutPlan(task *Task, e *Event, what string) {
	e.Kind = EventPoked
	if task == nil || task.NewestPlan() == nil || !task.NewestPlan().Posted() {
		return
	}
	p := task.NewestPlan()
	if what == "thumb" {
		e.Kind = EventThumb
		e.Candidate = &Candidate{Comment: p.Comment, Approval: Approval{Via: ViaReaction, Given: w.time()}}
		return
	}
	e.Kind, e.Comment = EventPlanEdited, &Comment{ID: p.Comment}
}

// check looks for a task that nothing will bring on.
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
		w.fatal("in phase %s, step %q, run %+v, waiting %+v, with jobs %v: %s", task.Phase, task.Step, task.Run, task.Waiting, kindsOf(jobs), problem)
	}
}
