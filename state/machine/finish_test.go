package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// draftPR returns a task whose pull request is an open draft that errand is to mark ready for review.
func draftPR(t *testing.T, mode settings.DraftMode) *life {
	l := newLife(t)
	l.toPR()
	l.task.Settings.Draft, l.task.PR.Draft = mode, true
	return l
}

// mergeablePR returns a task whose pull request is approved and green, and which errand is to merge.
func mergeablePR(t *testing.T) *life {
	l := openPR(t)
	l.task.Settings.Merge = settings.MergeWhenApproved
	l.checks("success")
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 1, State: state.ReviewApproved, Head: l.task.Branch.Head}}})
	if !MayFinish(l.task, l.now) {
		t.Fatalf("got %+v, want an approved pull request", l.task.PR)
	}
	return l
}

// checks applies checks of the head that were read.
func (l *life) checks(result string) {
	l.t.Helper()
	l.do(event.Event{Payload: event.ChecksRead{Head: l.task.Branch.Head, Checks: result}})
}

// finishes returns the keys of the jobs of the last event that mark the pull request ready or merge it.
func (l *life) finishes() string {
	var keys []string
	for _, j := range l.jobs {
		if j.Kind == state.JobFinish {
			keys = append(keys, strings.TrimPrefix(j.Key, "1.")) // the generation
		}
	}
	return strings.Join(keys, " ")
}

// mergePosts returns the reasons of the comments about a merge that the last event enqueued.
func (l *life) mergePosts() (list []string) {
	for _, j := range l.jobs {
		if j.Post != nil && j.Post.Kind == state.PostMerge {
			list = append(list, j.Post.Reason)
		}
	}
	return list
}

// TestDraftIsMarkedReady: a draft is marked ready once, when its checks succeed, or when none has started for long; by whom it is a draft does not
// matter, but not again if a person converts it back.
func TestDraftIsMarkedReady(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode settings.DraftMode
		do   func(*life)
		want string
	}{
		"green":              {settings.DraftUntilGreen, func(l *life) { l.checks("success") }, "finish"},
		"red":                {settings.DraftUntilGreen, func(l *life) { l.checks("failure") }, ""},
		"pending":            {settings.DraftUntilGreen, func(l *life) { l.checks("pending") }, ""},
		"always":             {settings.DraftAlways, func(l *life) { l.checks("success") }, ""},
		"never":              {settings.DraftNever, func(l *life) { l.checks("success") }, ""},
		"of an older errand": {"", func(l *life) { l.checks("success") }, ""},
		"nothing starts":     {settings.DraftUntilGreen, func(l *life) { l.late(l.task.Branch.Head) }, "finish"},
		"nothing starts on an older head": {settings.DraftUntilGreen, func(l *life) {
			l.late("older")
		}, ""},
		"nothing starts, always":            {settings.DraftAlways, func(l *life) { l.late(l.task.Branch.Head) }, ""},
		"nothing starts, and then it fails": {settings.DraftUntilGreen, func(l *life) { l.checks("failure"); l.late(l.task.Branch.Head) }, ""},
		"nothing starts while the task works": {settings.DraftUntilGreen, func(l *life) {
			l.review()
			l.late(l.task.Branch.Head)
		}, ""},
		"nothing has started while the task worked": {settings.DraftUntilGreen, func(l *life) {
			l.review()
			l.late(l.task.Branch.Head)
			l.endReview(l.task.Branch.Head)
		}, "finish"},
		"it is late when the first is reported": {settings.DraftUntilGreen, func(l *life) { l.late("older"); l.now = l.now.Add(2 * DefaultPolicy().DraftWait); l.checks("pending") }, "finish"},
		"a person marks it ready":               {settings.DraftUntilGreen, func(l *life) { l.do(event.Event{Payload: event.PRChanged{Draft: new(bool)}}) }, "finish"},
		"a person marked it ready": {settings.DraftUntilGreen, func(l *life) {
			l.do(event.Event{Payload: event.PRChanged{Draft: new(bool)}})
			l.do(event.Event{Payload: event.PRFinished{Head: l.task.Branch.Head, Result: event.FinishReady}})
			l.checks("success")
		}, ""},
		"a person wants a draft again": {settings.DraftUntilGreen, func(l *life) {
			l.checks("success")
			l.do(event.Event{Payload: event.PRFinished{Head: l.task.Branch.Head, Result: event.FinishReady}})
			isDraft := true
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.PRChanged{Draft: &isDraft}})
			if !l.task.PR.Draft {
				l.t.Error("the draft is not stored")
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := draftPR(t, c.mode)
			if c.do(l); l.finishes() != c.want {
				t.Errorf("got jobs %q, want %q", l.finishes(), c.want)
			}
		})
	}
}

// TestOlderReadOfADraft: what the job read before somebody changed the pull request does not undo the change.
func TestOlderReadOfADraft(t *testing.T) {
	t.Parallel()
	l := draftPR(t, settings.DraftUntilGreen)
	l.checks("success")
	readAt := l.now
	for _, isDraft := range []bool{false, true} { // errand's own change, and then that of a person
		l.now = l.now.Add(time.Second)
		l.do(event.Event{Payload: event.PRChanged{Draft: &isDraft}})
	}
	l.do(event.Event{Payload: event.PRFinished{Head: l.task.Branch.Head, Result: event.FinishReady, ReadAt: readAt}})
	if !l.task.PR.Draft || !l.task.PR.MarkedReady {
		t.Errorf("got %+v after the older read, want a draft that was ready before", l.task.PR)
	}
	l.do(event.Event{Payload: event.PRFinished{Head: l.task.Branch.Head, ReadAt: l.now.Add(time.Second)}})
	if l.task.PR.Draft {
		t.Error("a newer read is not stored")
	}
}

// TestReviewAfterTheRead: a review that arrives while the job works is newer than what the job read, so the merge is tried again, and an approval
// that is no longer there does not come back.
func TestReviewAfterTheRead(t *testing.T) {
	t.Parallel()
	for _, review := range []state.ReviewState{state.ReviewApproved, state.ReviewChangesRequested} {
		l := mergeablePR(t)
		readAt := l.now
		l.now = l.now.Add(time.Second)
		l.do(event.Event{By: colleague, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 3, State: review, Body: "See there."}}})
		l.finished(event.FinishRefused, func(e *event.PRFinished) { e.ReadAt, e.By = readAt, writer })
		if isReady := review == state.ReviewApproved; l.task.PR.MergeTried != "" || l.task.PR.Ready != isReady {
			t.Errorf("%s: got tried %q, ready %t, want another try and ready %t", review, l.task.PR.MergeTried, l.task.PR.Ready, isReady)
		}
	}
}

// late lets the wait for checks of a head end.
func (l *life) late(head string) {
	l.t.Helper()
	l.task.PR.LateAt = l.now
	l.do(event.Event{Payload: event.NewDue(state.DueDraft, head)})
}

// TestDraftWaitsForChecksToStart: the wait begins with each head of the draft.
func TestDraftWaitsForChecksToStart(t *testing.T) {
	t.Parallel()
	due := func(l *life) time.Duration {
		for _, j := range l.jobs {
			if j.Kind == state.JobDue && j.Args.Due == state.DueDraft && j.Args.Key == l.task.Branch.Head {
				return j.NotBefore.Sub(l.now)
			}
		}
		return 0
	}
	l := draftPR(t, settings.DraftUntilGreen)
	if l.do(event.Event{By: writer, Payload: event.Pushed{Head: "P"}}); due(l) != DefaultPolicy().DraftWait {
		t.Errorf("after a push: due in %s", due(l))
	}
	l = draftPR(t, settings.DraftAlways)
	if l.do(event.Event{By: writer, Payload: event.Pushed{Head: "P"}}); due(l) != 0 {
		t.Errorf("draft: always, after a push: due in %s", due(l))
	}
}

// TestWhenErrandMerges: the job comes when the last thing that the task knows of is no longer missing, and again when something that it does not know
// may have changed.
func TestWhenErrandMerges(t *testing.T) {
	t.Parallel()
	approve := func(by state.Person, may state.Permission, change ...func(*state.Review)) func(*life) {
		return func(l *life) {
			v := state.Review{ID: 9, State: state.ReviewApproved, Head: l.task.Branch.Head}
			for _, do := range change {
				do(&v)
			}
			l.do(event.Event{By: by, Permission: may, Payload: event.Reviewed{Review: v}})
		}
	}
	for name, c := range map[string]struct {
		mode settings.MergeMode
		do   []func(*life)
		want string
	}{
		"approved, then green": {settings.MergeWhenApproved, []func(*life){approve(writer, state.PermissionWrite), func(l *life) { l.checks("success") }}, "finish"},
		"green, then approved": {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite)}, "finish"},
		"not the settings":     {settings.MergeNever, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite)}, ""},
		"of an older errand":   {"", []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite)}, ""},
		"allowed only":         {settings.MergeAllowed, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite)}, ""},
		"red":                  {settings.MergeWhenApproved, []func(*life){approve(writer, state.PermissionWrite), func(l *life) { l.checks("failure") }}, ""},
		"pushed":               {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite), func(l *life) { l.do(event.Event{By: writer, Payload: event.Pushed{Head: "P"}}) }}, ""},
		"something changed":    {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite), func(l *life) { l.do(event.Event{Payload: event.PRChanged{}}) }}, "finish"},
		"a reader's review":    {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(state.Person{ID: 66, Login: "eve"}, state.PermissionRead)}, ""},
		"nothing of it":        {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite), func(l *life) { l.do(event.Event{Payload: event.ChecksChanged{}}) }}, ""},
		"after a round":        {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite), (*life).review, func(l *life) { l.endReview(l.task.Branch.Head) }}, "finish"},
		"could not be read":    {settings.MergeWhenApproved, []func(*life){approve(writer, state.PermissionWrite), func(l *life) { l.task.PR.Unread = true; l.checks("success") }}, ""},
		"the merge's result":   {settings.MergeWhenApproved, []func(*life){func(l *life) { l.checks("success") }, approve(writer, state.PermissionWrite), func(l *life) { l.finished(event.FinishWaits) }}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openPR(t)
			l.task.Settings.Merge = c.mode
			for _, do := range c.do {
				do(l)
			}
			if l.finishes() != c.want {
				t.Errorf("got jobs %q, want %q (%+v)", l.finishes(), c.want, l.task.PR)
			}
		})
	}
}

// finished applies a result of the job.
func (l *life) finished(r event.FinishResult, change ...func(*event.PRFinished)) {
	l.t.Helper()
	e := event.PRFinished{Head: l.task.Branch.Head, Draft: l.task.PR.Draft, Result: r, ReadAt: l.now}
	for _, do := range change {
		do(&e)
	}
	l.do(event.Event{Payload: e})
}

// TestResultsOfFinish: what is missing is stored for the status comment, a refusal is reported once per head, and an unknown result is read
// again a limited number of times.
func TestResultsOfFinish(t *testing.T) {
	t.Parallel()
	l := mergeablePR(t)
	l.finished(event.FinishWaits, func(e *event.PRFinished) { e.Waits = "a review thread is not resolved" })
	if l.task.PR.MergeWaits != "a review thread is not resolved" || len(l.mergePosts()) > 0 || l.finishes() != "" {
		t.Errorf("waits: got %q, %v, %q", l.task.PR.MergeWaits, l.mergePosts(), l.finishes())
	}
	refuse := func() {
		l.finished(event.FinishRefused, func(e *event.PRFinished) { e.Refusal, e.Waits = "GitHub refused it: no.", "GitHub refuses it" })
	}
	if refuse(); !slices.Equal(l.mergePosts(), []string{state.MergeRefused}) || l.task.PR.MergeWaits != "GitHub refuses it" {
		t.Errorf("refused: got %v, %q", l.mergePosts(), l.task.PR.MergeWaits)
	}
	if l.task.PR.MergeTried != l.task.Branch.Head {
		t.Errorf("refused: %q is not tried again", l.task.PR.MergeTried)
	}
	if refuse(); len(l.mergePosts()) > 0 {
		t.Errorf("refused again: got %v", l.mergePosts())
	}
	if l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 2, State: state.ReviewApproved}}}); l.task.PR.MergeTried != "" {
		t.Errorf("after another review, %q is not tried again", l.task.PR.MergeTried)
	}
	reads := 0
	for l.finished(event.FinishUnknown); l.finishes() != ""; l.finished(event.FinishUnknown, func(e *event.PRFinished) { e.Reads = reads }) {
		if reads++; reads > 2*maxFinishReads {
			t.Fatal("it is read again and again")
		}
	}
	if reads != maxFinishReads {
		t.Errorf("it was read %d times again, want %d", reads, maxFinishReads)
	}
	if l.do(event.Event{By: writer, Payload: event.Pushed{Head: "P"}}); l.task.PR.MergeWaits != "" {
		t.Errorf("after a push: got %q", l.task.PR.MergeWaits)
	}

	l = draftPR(t, settings.DraftUntilGreen)
	l.finished(event.FinishReady, func(e *event.PRFinished) { e.Draft, e.Late = false, true })
	if !slices.Equal(l.mergePosts(), []string{state.MergeReadyLate}) || l.task.PR.Draft || !l.task.PR.MarkedReady {
		t.Errorf("ready: got %v, %+v", l.mergePosts(), l.task.PR)
	}
}

// TestFailedFinish: a failure of the job does not fail the task; the status comment names it.
func TestFailedFinish(t *testing.T) {
	t.Parallel()
	l := mergeablePR(t)
	l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobFinish, Class: state.ClassGitHub, Reason: "GitHub does not answer."}}})
	if l.want(state.PhasePROpen); l.task.PR.MergeWaits == "" {
		t.Error("the status comment does not name it")
	}
}

// TestPreventedMergeIsAnnounced: before errand disables the auto-merge that a person has enabled, or removes the pull request from the merge queue,
// people learn of it; then the branch is moved.
func TestPreventedMergeIsAnnounced(t *testing.T) {
	t.Parallel()
	for want, pending := range map[string]event.MergePending{
		state.MergeAutoDisabled: {AutoMerge: "octocat"}, state.MergeDequeued: {Queued: true},
		state.MergeAutoDisabled + " " + state.MergeDequeued: {AutoMerge: "octocat", Queued: true},
	} {
		l := openPR(t)
		l.review()
		l.end(state.RunResult{Outcome: "done"})
		l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Paths: 1, LocalHead: "n", LocalTree: "n"}}})
		l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "n", Tree: "n"}}})
		l.do(event.Event{Run: l.task.Work.Run, Payload: pending})
		if strings.Join(l.mergePosts(), " ") != want || !l.task.PR.PreventMerge || jobOf(l.jobs, state.JobMove).Kind == "" {
			t.Errorf("%+v: got %v, %v", pending, l.mergePosts(), l.jobs)
		}
		if l.do(event.Event{Run: l.task.Work.Run, Payload: event.BranchMoved{}}); l.task.PR.PreventMerge || l.task.Branch.Head != "n" {
			t.Errorf("%+v: after the push: %+v", pending, l.task.PR)
		}
	}
}

// TestApprovalIsAskedForAgain: when the base's commits are added to what is approved, its approver is asked to approve the new commit, if errand is to merge
// it and nobody asked for the update, also if GitHub makes the commit later.
func TestApprovalIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*life)
		read   event.BaseRead
		want   bool
	}{
		"nobody asked":      {func(*life) {}, event.BaseRead{Result: event.BaseUpdated, Head: "U"}, true},
		"later":             {func(*life) {}, event.BaseRead{Result: event.BaseUnknown, Begun: true}, true},
		"not errand's task": {func(l *life) { l.task.Settings.Merge = settings.MergeNever }, event.BaseRead{Result: event.BaseUpdated, Head: "U"}, false},
		"not approved":      {func(l *life) { l.task.PR.Ready = false }, event.BaseRead{Result: event.BaseUpdated, Head: "U"}, false},
		"somebody asked":    {func(l *life) { l.task.PR.Update = state.UpdateRequest{By: writer, Comment: 7} }, event.BaseRead{Result: event.BaseUpdated, Head: "U"}, false},
	} {
		l := mergeablePR(t)
		l.task.PR.ReadyBy = "grace"
		c.change(l)
		l.compared(c.read)
		if c.read.Begun {
			if got := l.mergePosts(); len(got) > 0 {
				t.Errorf("%s: got %v before the new commit is known", name, got)
			}
			l.do(event.Event{Payload: event.Pushed{Head: "U"}})
		}
		if got := slices.Equal(l.mergePosts(), []string{state.MergeApproveAgain}); got != c.want {
			t.Errorf("%s: got %v", name, l.mergePosts())
		}
		for _, j := range l.jobs {
			if j.Post != nil && j.Post.Kind == state.PostMerge && j.Post.By.Login != "grace" {
				t.Errorf("%s: addressed %s", name, j.Post.By.Login)
			}
		}
	}
}

// TestTakenFromTheQueue: what errand took out of the merge queue is said, and may be added again.
func TestTakenFromTheQueue(t *testing.T) {
	t.Parallel()
	l := mergeablePR(t)
	l.finished(event.FinishQueued)
	if l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 2, State: state.ReviewChangesRequested}}}); l.finishes() != "finish" {
		t.Errorf("after a request for changes: got jobs %q", l.finishes())
	}
	if l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: "review:7", Kind: state.FeedbackReview, By: writer, Body: "Better."}}}}); l.task.Phase != state.PhaseAddressingReview || l.finishes() != "finish" {
		t.Errorf("when the round begins: got jobs %q in %s", l.finishes(), l.task.Phase)
	}
	l.finished(event.FinishWaits, func(e *event.PRFinished) { e.Waits, e.Dequeued = "ada requests changes", true })
	if !slices.Equal(l.mergePosts(), []string{state.MergeTakenBack}) || l.task.PR.MergeTried != "" || l.task.PR.Queued {
		t.Errorf("got %v, %+v", l.mergePosts(), l.task.PR)
	}
}

// TestQueuedMeanwhile: what was added to the merge queue while a round began, or the task ended, has to leave it.
func TestQueuedMeanwhile(t *testing.T) {
	t.Parallel()
	l := mergeablePR(t)
	l.review()
	if l.finished(event.FinishQueued); l.finishes() != "finish" || !l.task.PR.Queued {
		t.Errorf("in a round: got jobs %q", l.finishes())
	}
	l = mergeablePR(t)
	l.finished(event.FinishQueued)
	if l.checks("failure"); l.finishes() != "finish" {
		t.Errorf("when a check fails: got jobs %q", l.finishes())
	}
	l = mergeablePR(t)
	l.finished(event.FinishQueued)
	if l.comment(state.VerbCancel); l.task.Phase != state.PhaseCancelled || l.finishes() != "finish" {
		t.Errorf("when the task is canceled: got jobs %q in %s", l.finishes(), l.task.Phase)
	}
	l.finished(event.FinishWaits, func(e *event.PRFinished) { e.Waits, e.Dequeued = "its task has ended", true })
	if !slices.Equal(l.mergePosts(), []string{state.MergeTakenBack}) || l.task.PR.Queued {
		t.Errorf("after that: got %v, %+v", l.mergePosts(), l.task.PR)
	}
	l = mergeablePR(t)
	l.finished(event.FinishQueued)
	if l.finished(event.FinishWaits, func(e *event.PRFinished) { e.Unqueued = true }); l.task.PR.Queued {
		t.Error("it is not in the queue any more")
	}
}
