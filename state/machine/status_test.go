package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A status comment that cannot be written (a locked issue, an error of GitHub's) must not be tried
// again at once, for ever.
func TestFailedStatusIsRetriedLater(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := DefaultPolicy()
	task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPlanApproval}, Visible: 7}
	e := event.Event{Task: task.Key, Now: now, Payload: event.StepFailed{Failure: state.Failure{Job: state.JobStatus, Class: state.ClassGitHub, Reason: "no"}}}
	c := Next(task, e, p)
	if c.Task == nil || c.Task.Visible != task.Visible {
		t.Fatalf("got a visible change by a failed status, want none: %+v", c.Task)
	}
	if len(c.Jobs) != 1 || c.Jobs[0].Kind != state.JobStatus {
		t.Fatalf("got jobs %+v, want the status comment", c.Jobs)
	}
	if at := c.Jobs[0].NotBefore; at.Before(now.Add(p.Backoff)) {
		t.Fatalf("got a retry at %s, want a delay", at)
	}
	// The next thing that happens brings it forward.
	e = event.Event{Task: task.Key, Now: now, Payload: event.ChecksRead{Checks: "success"}}
	task.PR = &state.PR{Number: 3}
	if c = Next(task, e, p); len(c.Jobs) != 1 || c.Jobs[0].NotBefore.After(now) {
		t.Fatalf("got jobs %+v, want the status comment at once", c.Jobs)
	}
}

// The result of the checks changes the task only if it is about the present head and differs from the stored one, a failing check for
// sign-offs included. They are read again if they only have to stay as they are, a limited number of times.
func TestChecksRead(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const why = "1 of 2 checks failed: dco"
	failed, later := state.PR{Checks: "failure", ChecksReason: why}, now.Add(time.Minute)
	closed := failed
	closed.State = state.PRClosed
	for name, c := range map[string]struct {
		before  state.PR
		read    event.ChecksRead
		changes bool
		again   int // JobArgs.Reads of the next read; 0 for none
	}{
		"the same":                {failed, event.ChecksRead{Checks: "failure", Reason: why}, false, 0},
		"the same, DCO too":       {state.PR{Checks: "failure", DCO: true}, event.ChecksRead{Checks: "failure", DCO: true}, false, 0},
		"DCO fails, too":          {failed, event.ChecksRead{Checks: "failure", Reason: why, DCO: true}, true, 0},
		"DCO succeeds":            {state.PR{Checks: "failure", DCO: true}, event.ChecksRead{Checks: "failure"}, true, 0},
		"all succeed":             {state.PR{Checks: "failure", DCO: true}, event.ChecksRead{Checks: "success"}, true, 0},
		"another reason":          {failed, event.ChecksRead{Checks: "failure", Reason: "1 of 1 check failed: dco"}, true, 0},
		"an optional one":         {failed, event.ChecksRead{Checks: "failure", Reason: why, Optional: "lint"}, true, 0},
		"of an old head":          {failed, event.ChecksRead{Checks: "success", Head: "old", Again: later}, false, 0},
		"of this head":            {failed, event.ChecksRead{Checks: "success", Head: "new"}, true, 0},
		"again":                   {failed, event.ChecksRead{Checks: "pending", Head: "new", Again: later}, true, 1},
		"again, the same":         {failed, event.ChecksRead{Checks: "failure", Reason: why, Again: later, Reads: 4}, false, 5},
		"again, often enough":     {failed, event.ChecksRead{Checks: "failure", Reason: why, Again: later, Reads: maxChecksReads}, false, 0},
		"again, but it is closed": {closed, event.ChecksRead{Checks: "pending", Again: later}, true, 0},
		"again, with a change":    {failed, event.ChecksRead{Checks: "pending", Again: later, Reads: maxChecksReads}, true, 1},
		"GitHub lags":             {failed, event.ChecksRead{Head: "new", Stale: true, Again: later, Reads: 4}, false, 5},
		"GitHub lags for long":    {failed, event.ChecksRead{Head: "new", Stale: true, Again: later, Reads: maxChecksReads}, false, 0},
		"it lags after the next":  {failed, event.ChecksRead{Head: "old", Stale: true, Again: later}, false, 0},
	} {
		task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}}
		task.PR, task.Branch.Head = &c.before, "new"
		if c.before.State == "" {
			task.PR.State = state.PROpen
		}
		got := Next(task, event.Event{Task: task.Key, Now: now, Payload: c.read}, DefaultPolicy())
		changes := slices.ContainsFunc(got.Jobs, func(j state.Job) bool { return j.Kind == state.JobStatus })
		if changes != c.changes {
			t.Errorf("%s: got a change %v, want %v", name, changes, c.changes)
		}
		if pr := got.Task; changes && (pr.PR.Checks != c.read.Checks || pr.PR.ChecksReason != c.read.Reason || pr.PR.ChecksOptional != c.read.Optional || pr.PR.DCO != c.read.DCO) {
			t.Errorf("%s: got %+v", name, pr.PR)
		}
		again := 0
		for _, j := range got.Jobs {
			if j.Kind == state.JobChecks {
				again = j.Args.Reads
				if !j.NotBefore.Equal(later) {
					t.Errorf("%s: the next read is at %s, want %s", name, j.NotBefore, later)
				}
			}
		}
		if again != c.again {
			t.Errorf("%s: got the next read %d, want %d", name, again, c.again)
		}
	}
}

// What was said about one head is not shown for the next one, whose checks are read: their webhooks may have come before it was known.
func TestChecksOfTheNextHead(t *testing.T) {
	t.Parallel()
	had := &state.PR{Checks: "success", ChecksReason: "all 2 required checks succeeded", ChecksOptional: "lint", DCO: true, State: state.PROpen}
	closed := *had
	closed.State = state.PRClosed
	for name, c := range map[string]struct {
		pr    *state.PR
		phase state.Phase
		by    event.Payload
		want  string
		reads time.Duration // after which they are read; 0 for never
	}{
		"another head":                          {had, state.PhasePROpen, event.Pushed{Head: "new"}, "", checksLater},
		"the same head":                         {had, state.PhasePROpen, event.Pushed{Head: "old"}, "success", 0},
		"another head of a closed pull request": {&closed, state.PhasePRClosed, event.Pushed{Head: "new"}, "", 0},
		"a head after one without checks":       {&state.PR{State: state.PROpen}, state.PhasePROpen, event.Pushed{Head: "new"}, "", checksLater},
		"another head of a task that ended":     {had, state.PhaseDone, event.PRClosed{}, "success", 0},
		"it is reopened":                        {&closed, state.PhasePRClosed, event.PRReopened{}, "success", 15 * time.Second},
		"it is reopened with another head":      {&closed, state.PhasePRClosed, event.PRReopened{Head: "new"}, "", checksLater},
		"it is closed":                          {had, state.PhasePROpen, event.PRClosed{}, "success", 0},
		"it is opened":                          {nil, state.PhaseImplementing, event.PROpened{PR: state.PR{Number: 3, State: state.PROpen}}, "", checksLater},
		"it is found":                           {nil, state.PhaseImplementing, event.PRFound{PR: state.PR{Number: 3, State: state.PROpen}, Head: "new"}, "", checksLater},
	} {
		task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: c.phase}}
		task.PR, task.Branch.Head = c.pr, "old"
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		got := Next(task.Clone(), event.Event{Task: task.Key, Now: now, Payload: c.by}, DefaultPolicy())
		if got.Task == nil {
			t.Errorf("%s: %s", name, got.Note)
			continue
		}
		reads := time.Duration(0)
		for _, j := range got.Jobs {
			if j.Kind == state.JobChecks || j.Args.Due == state.DueChecks && j.Args.Key == got.Task.Branch.Head {
				reads += j.NotBefore.Sub(now)
			}
		}
		if pr := got.Task.PR; pr.Checks != c.want || (pr.ChecksReason == "") != (c.want == "") || (pr.ChecksOptional == "") != (c.want == "") || pr.DCO != (c.want != "") || reads != c.reads {
			t.Errorf("%s: got %+v and a read after %s", name, pr, reads)
		}
	}
}

// Any webhook can say that a repository is public, but only one about the repository itself that it is private.
func TestVisibility(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	said := event.Commented{Comment: &state.Comment{ID: 4, Body: "Hm."}}
	for name, c := range map[string]struct {
		before bool
		repo   *state.Repo
		by     event.Payload
		want   bool
	}{
		"made public":            {true, &state.Repo{ID: 1, Name: "a"}, event.Renamed{}, false},
		"made private":           {false, &state.Repo{ID: 1, Name: "a", Private: true}, event.Renamed{}, true},
		"public in a comment's":  {true, &state.Repo{ID: 1, Name: "a"}, said, false},
		"private in a comment's": {false, &state.Repo{ID: 1, Name: "a", Private: true}, said, false},
		"not in it":              {true, nil, said, true},
		"of another repository":  {true, &state.Repo{ID: 2, Name: "b"}, said, true},
		"still private":          {true, &state.Repo{ID: 1, Name: "a", Private: true}, said, true},
	} {
		task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
		task.Repo = state.Repo{ID: 1, Name: "a", Private: c.before}
		e := event.Event{Task: task.Key, Now: now, By: writer, Permission: state.PermissionWrite, Vetted: &state.Vetted{}, Repo: c.repo, Payload: c.by}
		if got := Next(task, e, DefaultPolicy()); got.Task == nil || got.Task.Repo.Private != c.want {
			t.Errorf("%s: got %+v, want private %v", name, got.Task, c.want)
		}
	}
}

// A status comment that was searched for may have a duplicate that GitHub lists only later.
func TestSearchedStatusIsCheckedForDuplicates(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPlanApproval}, Visible: 7}
	task.Trigger.At = now.Add(-time.Hour)
	for detail, want := range map[string]int{"": 0, "looked": 1} {
		e := event.Event{Task: task.Key, Now: now, Payload: event.StatusSent{Searched: detail == "looked", Status: state.StatusComment{Comment: 5, Shown: 7, At: now}}}
		c := Next(task, e, DefaultPolicy())
		if len(c.Jobs) != want || want == 1 && (c.Jobs[0].Args.Due != state.DueDuplicate || c.Jobs[0].Args.Key != "5" || c.Jobs[0].Args.Marker != "1.status" || !c.Jobs[0].Args.Since.Equal(task.Trigger.At)) {
			t.Errorf("after %q: got jobs %+v, want %d", detail, c.Jobs, want)
		}
	}
}

// The status comment of an ended task that could not be written is tried again for a day, and later some times.
func TestEndOfTaskIsShown(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhaseDone, End: &state.End{At: end}}, Visible: 7, TaskComments: state.TaskComments{Status: state.StatusComment{Shown: 6, Failed: endRetries}}}
	for after, want := range map[time.Duration]int{time.Minute: 1, 23 * time.Hour: 1, 25 * time.Hour: 0} {
		e := event.Event{Task: task.Key, Now: end.Add(after), Payload: event.StepFailed{Failure: state.Failure{Job: state.JobStatus, Class: state.ClassGitHub, Reason: "no"}}}
		c := Next(task, e, DefaultPolicy())
		if len(c.Jobs) != want || want == 1 && (c.Jobs[0].Kind != state.JobStatus || !c.Jobs[0].NotBefore.After(e.Now)) {
			t.Errorf("%s after the end: got jobs %+v, want %d", after, c.Jobs, want)
		}
	}
}

// Hundreds of checks that end one by one cost at most a read every 15 seconds and an edit every minute. The first is shown at once, and so is what
// changes the result.
func TestManyChecks(t *testing.T) {
	t.Parallel()
	p, now := DefaultPolicy(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}, Visible: 7}
	task.PR, task.Status = &state.PR{Number: 3, State: state.PROpen}, state.StatusComment{Comment: 1, Shown: 7, At: now.Add(-time.Hour)}
	due := map[state.JobKind]time.Time{} // of the queued jobs, as the store moves them
	apply := func(payload event.Payload) {
		t.Helper()
		got := Next(task.Clone(), event.Event{Task: task.Key, Now: now, Payload: payload}, p)
		for _, j := range got.Jobs {
			if at, queued := due[j.Kind]; !queued || j.NotBefore.Before(at) || j.Kind == state.JobStatus {
				due[j.Kind] = j.NotBefore
			}
		}
		if got.Task != nil {
			task = got.Task
		}
	}
	run := func(kind state.JobKind) bool {
		at, queued := due[kind]
		if !queued || now.Before(at) {
			return false
		}
		delete(due, kind)
		return true
	}
	apply(event.ChecksChanged{})
	if at := due[state.JobChecks]; at.Sub(now) > 2*time.Second {
		t.Errorf("the first check is read after %s", at.Sub(now))
	}
	const checks = 300
	reads, edits := 0, 0
	for n := range checks { // one every six seconds: half an hour
		now = now.Add(6 * time.Second)
		apply(event.ChecksChanged{})
		result := event.ChecksRead{Checks: "pending", Reason: fmt.Sprintf("%d of %d checks are not complete", checks-n, checks)}
		if n == checks/2 {
			result.Checks = "failure"
		}
		if n == checks/2 || run(state.JobChecks) {
			reads++
			apply(result)
		}
		if at, queued := due[state.JobStatus]; n == checks/2 && (!queued || at.After(task.Status.At.Add(p.StatusGap))) {
			t.Errorf("the failure is shown at %s, %s after the edit before", at, at.Sub(task.Status.At))
		}
		if run(state.JobStatus) {
			edits++
			apply(event.StatusSent{Status: state.StatusComment{Comment: 1, Shown: task.Visible, At: now}})
		}
	}
	if reads > 122 || edits > 33 || reads < 60 || edits < 25 {
		t.Errorf("got %d reads and %d edits", reads, edits)
	}
	now = now.Add(time.Hour)
	if run(state.JobStatus); task.Status.Shown != task.Visible && len(due) > 1 {
		t.Errorf("the last change is not shown: %v", due)
	}
}

// If the checks cannot be read, the result that was read before is not shown any longer. They are read once more.
func TestChecksThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p, now := DefaultPolicy(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}}
	task.PR = &state.PR{Checks: "success", ChecksReason: "the only required check succeeded", State: state.PROpen}
	fail := event.Event{Task: task.Key, Now: now, Payload: event.StepFailed{Failure: state.Failure{Job: state.JobChecks, Class: state.ClassGitHub, RetryAt: now}}}
	for n := range 3 {
		got := Next(task.Clone(), fail, p)
		task = got.Task
		if task.PR.Checks != "unknown" || task.PR.ChecksReason == "" || task.Phase != state.PhasePROpen || has(got.Jobs, state.JobChecks) != (n == 0) || n == 0 && !has(got.Jobs, state.JobStatus) {
			t.Errorf("failure %d: got %s, %+v and %+v", n, task.Phase, task.PR, got.Jobs)
		}
	}
	task.PR.State = state.PRClosed
	if got := Next(task, fail, p); has(got.Jobs, state.JobChecks) {
		t.Errorf("the checks of a closed pull request are read: %+v", got.Jobs)
	}
}

// If no webhook reports a check of a head, its checks are read: some may have been reported before, and a required one may never be.
func TestUnreadChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pr    *state.PR
		head  string
		reads bool
	}{
		"nothing is known":         {&state.PR{State: state.PROpen}, "head", true},
		"something was reported":   {&state.PR{State: state.PROpen, Checks: "pending"}, "head", false},
		"of another head":          {&state.PR{State: state.PROpen}, "old", false},
		"of a closed pull request": {&state.PR{State: state.PRClosed}, "head", false},
		"without a pull request":   {nil, "head", false},
	} {
		task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}}
		task.PR, task.Branch.Head = c.pr, "head"
		got := Next(task, event.Event{Task: task.Key, Now: time.Now(), Payload: event.NewDue(state.DueChecks, c.head)}, DefaultPolicy())
		if reads := has(got.Jobs, state.JobChecks); reads != c.reads || len(got.Jobs) > 1 {
			t.Errorf("%s: got jobs %+v", name, got.Jobs)
		}
	}
}
