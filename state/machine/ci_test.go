package machine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// checksFail reports failing checks of the head, and returns whether errand examines them.
func (l *life) checksFail() bool {
	head := l.task.Branch.Head
	l.do(event.Event{Payload: event.ChecksRead{Checks: "failure", Reason: "1 of 1 check failed: build", Head: head, Settled: true}})
	return has(l.jobs, state.JobExamine)
}

// examined reports why they fail.
func (l *life) examined(change ...func(*event.ChecksExamined)) {
	e := event.ChecksExamined{
		Head:     l.task.Branch.Head,
		Failures: []state.Feedback{{ID: "ci:" + l.task.Branch.Head, Kind: state.FeedbackCI, Body: "undefined: Div"}},
		Notes:    []state.CheckNote{{Name: "build", Fault: state.CheckFails}},
	}
	for _, f := range change {
		f(&e)
	}
	l.do(event.Event{Payload: e})
}

// round brings a review round to its end; it publishes a commit with that ID, or nothing.
func (l *life) round(head string) {
	l.t.Helper()
	l.want(state.PhaseAddressingReview)
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	run := l.task.Work.Run
	if head == "" {
		l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: run, Base: l.task.Branch.Head}}})
	} else {
		l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: run, Paths: 1, LocalHead: "l" + head, LocalTree: "t"}}})
		l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: run, Head: head, Tree: "t"}}})
		l.do(event.Event{Payload: event.BranchMoved{}})
	}
	l.do(event.Event{Payload: event.ThreadsAnswered{}})
	l.want(state.PhasePROpen)
}

func (l *life) handedOver() bool {
	return slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Post != nil && j.Post.Kind == state.PostChecks })
}

// toHandover lets three rounds fail to repair the checks.
func (l *life) toHandover() {
	l.t.Helper()
	l.toPR()
	for n := range 3 {
		if !l.checksFail() {
			l.t.Fatalf("failing checks are not examined, try %d", n)
		}
		l.examined()
		l.round(fmt.Sprint("H", n))
	}
	if !l.checksFail() {
		l.t.Fatal("failing checks are not examined after the last try")
	}
	l.examined()
	if l.want(state.PhasePROpen); !l.handedOver() {
		l.t.Fatalf("nobody is asked to take over: %v", kindsOf(l.jobs))
	}
}

// command is a command on the pull request.
func command(verb state.Verb) event.Commented {
	c := &state.Comment{ID: 9, Body: "@errand " + string(verb), Mention: true, OnPR: true}
	return event.Commented{Comment: c, Orders: []state.Order{{Verb: verb}}}
}

// mention is a comment on the pull request that mentions errand.
func mention() event.Commented { return command(state.VerbMessage) }

// Failing checks are repaired three times in a row, then handed over once, until a person does something.
func TestFailingChecks(t *testing.T) {
	t.Parallel()
	review := event.Reviewed{Review: state.Review{ID: 1, State: state.ReviewChangesRequested, Body: "Please look at Windows."}}
	stranger := state.Person{ID: 77, Login: "passer-by"}
	for name, c := range map[string]struct {
		e      event.Event
		again  bool
		rounds bool // the event begins a round first
		bot    bool // it begins a round for a bot
	}{
		"nobody":            {e: event.Event{Payload: event.ChecksChanged{}}},
		"a writer pushes":   {e: event.Event{By: writer, Payload: event.Pushed{Head: "P"}}, again: true},
		"a writer reviews":  {e: event.Event{By: writer, Permission: state.PermissionWrite, Payload: review}, again: true, rounds: true},
		"a writer comments": {e: event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()}, again: true, rounds: true},
		"a writer approves": {e: event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 2, State: state.ReviewApproved}}}, again: true},
		"a writer updates":  {e: event.Event{By: writer, Permission: state.PermissionWrite, Payload: command(state.VerbUpdate)}, again: true},
		"a bot's thread":    {e: event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: "thread:1", By: state.Person{ID: 8, Bot: true}}}}}, bot: true},
		"a reader comments": {e: event.Event{By: stranger, Permission: state.PermissionRead, Payload: mention()}},
		"a reader reviews":  {e: event.Event{By: stranger, Permission: state.PermissionRead, Payload: review}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toHandover()
			if l.checksFail() {
				t.Fatal("handed over, but examined again")
			}
			l.do(c.e)
			if c.rounds {
				l.do(event.Event{Payload: event.Gathered{}})
				l.round("")
			}
			if c.bot {
				l.round("")
			}
			if got := l.checksFail(); got != c.again {
				t.Fatalf("examined again: %t", got)
			}
			if !c.again {
				return
			}
			l.examined()
			if l.want(state.PhaseAddressingReview); l.task.PR.Repair.Runs != 1 {
				t.Errorf("got %+v", l.task.PR.Repair)
			}
		})
	}
}

func TestChecksAreExamined(t *testing.T) {
	t.Parallel()
	type changes []func(*event.ChecksExamined)
	none := func(e *event.ChecksExamined) { e.Failures = nil }
	noNotes := func(e *event.ChecksExamined) { e.Notes = nil }
	old := func(e *event.ChecksExamined) { e.Head = "old" }
	rerun := func(e *event.ChecksExamined) {
		e.Reran, e.Again = []state.Rerun{{Check: "k", Head: "H", ID: 3}}, t0.Add(time.Hour)
	}
	repaired := func(limit int, r state.CIRepair) func(*state.Task) {
		return func(t *state.Task) { t.Settings.Limits.Checks, t.PR.Repair = limit, &r }
	}
	for name, c := range map[string]struct {
		task     func(*state.Task)
		examined changes
		phase    state.Phase
		over     bool
		read     time.Duration // when the checks are read again
	}{
		"an agent may repair them":                {phase: state.PhaseAddressingReview},
		"nothing for an agent":                    {examined: changes{none}, phase: state.PhasePROpen, over: true},
		"of an older head":                        {examined: changes{old}, phase: state.PhasePROpen},
		"all succeed by now":                      {examined: changes{none, noNotes}, phase: state.PhasePROpen},
		"they run again by now":                   {task: func(t *state.Task) { t.PR.Checks = "pending" }, phase: state.PhasePROpen},
		"they succeed after a re-run by a person": {task: func(t *state.Task) { t.PR.Checks = "success" }, examined: changes{none}, phase: state.PhasePROpen},
		"the agent changed nothing":               {task: repaired(3, state.CIRepair{Runs: 1, Tried: "H"}), phase: state.PhasePROpen, over: true},
		"one runs again":                          {examined: changes{rerun}, phase: state.PhasePROpen, read: time.Hour},
		"closed meanwhile":                        {task: func(t *state.Task) { t.PR.State = state.PRClosed }, phase: state.PhasePROpen},
		"no more agent runs":                      {task: func(t *state.Task) { t.UnattendedLaunches = maxUnattendedLaunches }, phase: state.PhasePROpen, over: true},
		"a limit of one":                          {task: repaired(1, state.CIRepair{Runs: 1}), phase: state.PhasePROpen, over: true},
		"a limit of ten":                          {task: repaired(10, state.CIRepair{Runs: 3}), phase: state.PhasePROpen, over: true},
		"never":                                   {task: func(t *state.Task) { t.Settings.Limits.Checks = 0 }, phase: state.PhasePROpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.task.PR.Checks = checksFailed
			if c.task != nil {
				c.task(l.task)
			}
			l.examined(c.examined...)
			l.want(c.phase)
			if l.handedOver() != c.over {
				t.Errorf("handed over: %t, jobs %v", !c.over, kindsOf(l.jobs))
			}
			i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobChecks })
			if (i >= 0) != (c.read > 0) || i >= 0 && !l.jobs[i].NotBefore.Equal(t0.Add(c.read)) {
				t.Errorf("got jobs %v", l.jobs)
			}
		})
	}
}

// What ran again belongs to a head; whatever people do does not make it run twice there.
func TestRerunsBelongToTheHead(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.examined(func(e *event.ChecksExamined) {
		e.Reran, e.Again = []state.Rerun{{Check: "k", Name: "build", Head: "H", ID: 3}}, t0.Add(time.Hour)
	})
	read := event.ChecksRead{Checks: "success", Head: "H", Flaky: []string{"build"}}
	l.do(event.Event{Payload: read})
	if got := l.task.PR.Repair.Flaky; len(got) != 1 || got[0] != "build" {
		t.Fatalf("got flaky checks %v", got)
	}
	visible := l.task.Visible
	if l.do(event.Event{Payload: read}); l.task.Visible != visible {
		t.Error("the status comment is edited although nothing changed")
	}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()})
	l.do(event.Event{Payload: event.Gathered{}})
	if l.task.PR.Repair.RerunOf("k", "H") == nil {
		t.Error("the re-run of this head is forgotten")
	}
	l.round("")
	l.do(event.Event{By: writer, Payload: event.Pushed{Head: "P"}})
	if r := l.task.PR.Repair; len(r.Reran)+len(r.Flaky) != 0 {
		t.Errorf("after a push: %+v", r)
	}
}

// A re-run is stored before GitHub is asked for it, and once more when GitHub has agreed.
func TestRerunsAreStoredFirst(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	record := state.Rerun{Check: "k", Name: "build", Head: "H", ID: 3, Intended: true}
	l.examined(func(e *event.ChecksExamined) { e.Reran, e.Failures, e.Notes = []state.Rerun{record}, nil, nil })
	if l.want(state.PhasePROpen, state.JobExamine); l.handedOver() || !l.task.PR.Repair.RerunOf("k", "H").Intended || l.task.PR.Repair.Waits != 0 {
		t.Errorf("got %+v", l.task.PR.Repair)
	}
	record.Intended = false
	l.examined(func(e *event.ChecksExamined) { e.Reran, e.Again = []state.Rerun{record}, t0.Add(time.Hour) })
	if l.want(state.PhasePROpen, state.JobChecks); len(l.task.PR.Repair.Reran) != 1 || l.task.PR.Repair.Reran[0].Intended || has(l.jobs, state.JobExamine) {
		t.Errorf("got %+v", l.task.PR.Repair)
	}
}

// If the causes cannot be read, people are told.
func TestChecksCannotBeExamined(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.checksFail()
	failure := state.Failure{Job: state.JobExamine, Class: state.ClassGitHub, Reason: "GitHub refuses it."}
	l.do(event.Event{Payload: event.StepFailed{Failure: failure}})
	l.want(state.PhasePROpen, state.JobPost)
	if i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Post != nil }); !strings.Contains(l.jobs[i].Post.Text, "refuses") {
		t.Errorf("got %+v", l.jobs[i].Post)
	}
}

// Checks that failed, were handed over and succeeded by now are forgotten: what fails later is new, but no agent runs are left.
func TestLaterFailureIsHandedOver(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toHandover()
	l.do(event.Event{Payload: event.ChecksRead{Checks: "success", Head: l.task.Branch.Head}})
	if !l.checksFail() {
		t.Fatal("not examined")
	}
	l.examined()
	if l.want(state.PhasePROpen); !l.handedOver() {
		t.Errorf("got %v", kindsOf(l.jobs))
	}
}

// People are asked to take over at most once per head until one of them acts: the comment's key has no number that a restoration from an older
// backup changes.
func TestHandoverIsPostedOnce(t *testing.T) {
	t.Parallel()
	key := func(older bool) string {
		l := newLife(t)
		l.toPR()
		none := func(e *event.ChecksExamined) { e.Failures = nil }
		l.checksFail()
		if older {
			l.task.Version -= 7
		}
		l.examined(none)
		first := l.handoverKey()
		l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: command(state.VerbUpdate)})
		l.checksFail()
		if l.examined(none); l.handoverKey() == first || l.handoverKey() == "" {
			t.Errorf("after a command the key is %q, before it was %q", l.handoverKey(), first)
		}
		return first
	}
	if now, older := key(false), key(true); now != older || now == "" {
		t.Errorf("got the keys %q and, from an older backup, %q", now, older)
	}
}

func (l *life) handoverKey() string {
	i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Post != nil && j.Post.Kind == state.PostChecks })
	if i < 0 {
		return ""
	}
	return l.jobs[i].Key
}

// Checks that failed while the task waited for something else are read when it rests again.
func TestChecksAreReadAfterOtherWork(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()})
	l.do(event.Event{Payload: event.Gathered{}})
	if l.checksFail() {
		t.Fatal("examined during a round")
	}
	l.round("")
	if !has(l.jobs, state.JobChecks) {
		t.Errorf("got %v", kindsOf(l.jobs))
	}
}

// Checks that are not complete or not reported are noticed once, and forgotten with the head, or when somebody may have had them run again.
func TestPendingChecksAreTimed(t *testing.T) {
	t.Parallel()
	pending := event.ChecksRead{Checks: "pending", Head: "H", Pending: true}
	for name, c := range map[string]struct {
		e    event.Event
		kept bool
	}{
		"nothing new":      {event.Event{Payload: pending}, true},
		"could not read":   {event.Event{Payload: event.ChecksRead{Stale: true, Head: "H"}}, true},
		"one has failed":   {event.Event{Payload: event.ChecksRead{Checks: "failure", Head: "H", Pending: true}}, true},
		"a reader's words": {event.Event{By: visitor, Permission: state.PermissionRead, Payload: mention()}, true},
		"all have ended":   {event.Event{Payload: event.ChecksRead{Checks: "failure", Head: "H"}}, false},
		"a push":           {event.Event{By: writer, Payload: event.Pushed{Head: "P"}}, false},
		"a bot's push":     {event.Event{By: state.Person{ID: 5, Login: "x[bot]", Bot: true}, Payload: event.Pushed{Head: "P"}}, false},
		"a command":        {event.Event{By: writer, Permission: state.PermissionWrite, Payload: command(state.VerbUpdate)}, false},
	} {
		l := openPR(t)
		l.do(event.Event{Payload: pending})
		since := l.now
		if l.do(c.e); l.task.PR.Undecided.Equal(since) != c.kept || l.task.PR.Undecided.IsZero() == c.kept {
			t.Errorf("%s: undecided since %s, noticed at %s", name, l.task.PR.Undecided, since)
		}
	}
}

// A pull request that was closed for a while, and is open again, has not waited for its checks meanwhile, whoever closed it and says so.
func TestPendingChecksOfReopened(t *testing.T) {
	t.Parallel()
	reopened := func(by state.Person) event.Event { return event.Event{By: by, Payload: event.PRReopened{}} }
	for name, c := range map[string]struct{ closed, opened event.Event }{
		"a writer":       {event.Event{By: writer, Payload: event.PRClosed{}}, reopened(writer)},
		"a stranger":     {event.Event{By: visitor, Payload: event.PRClosed{}}, reopened(visitor)},
		"a sweep":        {event.Event{Payload: event.PRClosed{}}, reopened(state.Person{})},
		"a late closing": {event.Event{Payload: event.ChecksChanged{}}, reopened(writer)},
	} {
		l := openPR(t)
		l.do(event.Event{Payload: event.ChecksRead{Checks: "pending", Head: "H", Pending: true}})
		l.do(c.closed)
		l.now = l.now.Add(24 * time.Hour)
		if l.do(c.opened); !l.task.PR.Undecided.IsZero() || l.task.PR.State != state.PROpen {
			t.Errorf("%s: undecided since %s, the pull request is %s", name, l.task.PR.Undecided, l.task.PR.State)
		}
	}
}

// People are asked once per head to look at checks that do not end; one that fails later is repaired as usual.
func TestPendingChecksAreNamedOnce(t *testing.T) {
	t.Parallel()
	l := openPR(t)
	name := func() (examined bool, posted bool) {
		l.do(event.Event{Payload: event.ChecksRead{Checks: "pending", Head: l.task.Branch.Head, Pending: true, Settled: true}})
		examined = has(l.jobs, state.JobExamine)
		l.examined(func(e *event.ChecksExamined) {
			e.Failures, e.Notes = nil, []state.CheckNote{{Name: "deploy", Fault: state.CheckPending}}
		})
		return examined, l.handedOver()
	}
	if examined, posted := name(); !examined || !posted {
		t.Fatalf("examined: %t, posted: %t", examined, posted)
	}
	if examined, posted := name(); examined || posted {
		t.Errorf("again on the same head: examined: %t, posted: %t", examined, posted)
	}
	if !l.checksFail() {
		t.Fatal("a check that failed later is not examined")
	}
	l.examined()
	l.round("H2")
	if examined, posted := name(); !examined || !posted {
		t.Errorf("on the next head: examined: %t, posted: %t", examined, posted)
	}
}
