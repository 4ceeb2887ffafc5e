package finish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestMerge: errand merges the commit that a person with write access approved, if nothing is missing, and otherwise says what is.
func TestMerge(t *testing.T) {
	t.Parallel()
	const unapproved = "no person with write access has approved its newest commit, a1a1a1a1"
	no := false
	for name, c := range map[string]struct {
		change func(*world)
		want   string // the effect, or what it waits for
	}{
		"nothing is missing": {func(*world) {}, "merge PR_1 " + head + " SQUASH"},
		"a merge queue":      {func(w *world) { w.m.NeedsQueue = true }, "enqueue PR_1 " + head},
		"in the merge queue": {func(w *world) { w.m.NeedsQueue, w.m.Queued = true, true }, "queued"},

		"refused before": {func(w *world) { w.task.PR.MergeTried = head }, "GitHub refused to merge it; after the next approval errand tries again"},
		"dropped by the queue": {func(w *world) { w.task.PR.MergeTried, w.m.NeedsQueue = head, true },
			"it was removed from the merge queue; after the next approval errand adds it again"},
		"still in the queue": {func(w *world) { w.task.PR.MergeTried, w.m.NeedsQueue, w.m.Queued = head, true, true }, "queued"},
		"approved again in the queue, and taken back": {func(w *world) {
			w.task.PR.Queued, w.m.NeedsQueue, w.m.Queued = true, true, true
			w.task.Feedback = []state.Feedback{{Kind: state.FeedbackReview}}
		}, "dequeue PR_1"},
		"queued when errand died, and taken back": {func(w *world) {
			w.job.Attempted, w.m.NeedsQueue, w.m.Queued = true, true, true
			w.task.Phase = state.PhaseAddressingReview
		}, "dequeue PR_1"},
		"queued, and the task ended": {func(w *world) {
			w.task.PR.Queued, w.m.NeedsQueue, w.m.Queued = true, true, true
			w.task.Phase = state.PhaseCancelled
		}, "dequeue PR_1"},
		"queued, and pushed to": {func(w *world) {
			w.task.PR.Queued, w.m.NeedsQueue, w.m.Queued, w.m.Head = true, true, true, older
		}, "dequeue PR_1"},
		"ended": {func(w *world) { w.task.Phase = state.PhaseCancelled }, ""},
		"queued, and taken back": {func(w *world) {
			w.task.PR.MergeTried, w.m.NeedsQueue, w.m.Queued = head, true, true
			w.reviews = append(w.reviews, review(bob, state.ReviewChangesRequested, head))
		}, "dequeue PR_1"},
		"queued, and paused": {func(w *world) {
			w.task.PR.MergeTried, w.m.NeedsQueue, w.m.Queued = head, true, true
			w.steps.Paused = func(context.Context, int64) (*state.Waiting, error) { return &state.Waiting{}, nil }
		}, "dequeue PR_1"},
		"queued, and a round has begun": {func(w *world) {
			w.task.PR.Queued, w.m.NeedsQueue, w.m.Queued = true, true, true
			w.task.Phase = state.PhaseAddressingReview
		}, "dequeue PR_1"},
		"queued by a person, and taken back": {func(w *world) {
			w.m.NeedsQueue, w.m.Queued = true, true
			w.reviews = append(w.reviews, review(bob, state.ReviewChangesRequested, head))
		}, "bob requests changes"},
		"another commit was refused": {func(w *world) { w.task.PR.MergeTried = older }, "merge PR_1 " + head + " SQUASH"},

		"nobody approved":     {func(w *world) { w.reviews = nil }, unapproved},
		"an older commit":     {func(w *world) { w.reviews = []forge.Review{review(ada, state.ReviewApproved, older)} }, unapproved},
		"by a reader":         {func(w *world) { w.reviews = []forge.Review{review(eve, state.ReviewApproved, head)} }, unapproved},
		"by the machine user": {func(w *world) { w.reviews = []forge.Review{review(machine, state.ReviewApproved, head)} }, unapproved},
		"by an App":           {func(w *world) { w.reviews = []forge.Review{review(app, state.ReviewApproved, head)} }, unapproved},
		"by a deleted account": {func(w *world) {
			w.reviews = []forge.Review{review(state.Person{Login: "ghost"}, state.ReviewApproved, head)}
		}, unapproved},
		"by another one's old name": {func(w *world) {
			w.reviews = []forge.Review{review(state.Person{ID: 9, Login: "ada"}, state.ReviewApproved, head)}
		}, unapproved},
		"a comment":                 {func(w *world) { w.reviews = []forge.Review{review(ada, state.ReviewCommented, head)} }, unapproved},
		"dismissed":                 {func(w *world) { w.reviews = []forge.Review{review(ada, state.ReviewDismissed, head)} }, unapproved},
		"taken back":                {func(w *world) { w.reviews = append(w.reviews, review(ada, state.ReviewChangesRequested, head)) }, "ada requests changes"},
		"taken back and dismissed":  {func(w *world) { w.reviews = append(w.reviews, review(ada, state.ReviewDismissed, head)) }, unapproved},
		"commented afterwards":      {func(w *world) { w.reviews = append(w.reviews, review(ada, state.ReviewCommented, head)) }, "merge PR_1 " + head + " SQUASH"},
		"another one wants changes": {func(w *world) { w.reviews = append(w.reviews, review(bob, state.ReviewChangesRequested, older)) }, "bob requests changes"},
		"a reader wants changes":    {func(w *world) { w.reviews = append(w.reviews, review(eve, state.ReviewChangesRequested, head)) }, "merge PR_1 " + head + " SQUASH"},
		"two of them":               {func(w *world) { w.reviews = append(w.reviews, review(bob, state.ReviewApproved, older)) }, "merge PR_1 " + head + " SQUASH"},

		"a thread":         {func(w *world) { w.threads = []forge.Thread{{Resolved: true}, {}} }, "a review thread is not resolved"},
		"resolved threads": {func(w *world) { w.threads = []forge.Thread{{Resolved: true}} }, "merge PR_1 " + head + " SQUASH"},
		"a draft":          {func(w *world) { w.m.Draft = true }, "it is a draft"},
		"another head":     {func(w *world) { w.m.Head = older }, "errand has not processed its newest commit yet"},
		"pushed meanwhile": {func(w *world) { w.report.Head = older }, "errand has not processed its newest commit yet"},
		"another base":     {func(w *world) { w.m.Base = "production" }, "its base was changed to production, so a person has to merge it"},
		"a conflict":       {func(w *world) { w.m.Mergeable = &no }, "it conflicts with main"},
		"not known":        {func(w *world) { w.m.Mergeable = nil }, "unknown"},
		"behind":           {func(w *world) { w.m.IsBehind = true }, "it lacks the newest commits of main"},
		"red":              {func(w *world) { w.report = check(green.Failure) }, "its checks have not succeeded: 1 of 1 required check failed: test"},
		"running":          {func(w *world) { w.report = check(green.Pending) }, "its checks have not succeeded: 1 of 1 required check is not complete: test"},
		"no checks":        {func(w *world) { w.report = green.Report{Head: head} }, "no check has been reported"},
		"an incomplete list": {func(w *world) { w.report.Incomplete = "GitHub hides some" },
			"its checks have not succeeded: GitHub hides some, so it is not known which checks are required"},
		"no way": {func(w *world) { w.m.Methods = nil }, "the repository's settings allow no way of merging that errand knows"},
		"a comment that is not answered": {func(w *world) { w.task.Feedback = []state.Feedback{{Kind: state.FeedbackComment}} },
			"errand has not answered all comments"},
		"the operator forbids it":   {func(w *world) { w.steps.Operators = settings.MergeNever }, "errand's operator does not allow it any more"},
		"the operator's older file": {func(w *world) { w.steps.Operators = "" }, "errand's operator does not allow it any more"},
		"paused": {func(w *world) {
			w.steps.Paused = func(context.Context, int64) (*state.Waiting, error) { return &state.Waiting{}, nil }
		}, "errand's operator has paused it"},

		"the settings do not want it": {func(w *world) { w.task.Settings.Merge = settings.MergeNever }, ""},
		"closed":                      {func(w *world) { w.m.Open = false }, ""},
		"a round has begun":           {func(w *world) { w.task.Phase = state.PhaseAddressingReview }, ""},
		"no longer the task's":        {func(w *world) { w.task.PR = nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.change(w)
			read := w.finish(t)
			got := strings.Join(w.did, "; ")
			if got == "" {
				got = read.Waits
			}
			if got == "" && read.Result != "" {
				got = string(read.Result)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			isMerge := strings.HasPrefix(got, "merge ") || strings.HasPrefix(got, "enqueue ")
			if isMerge != (len(w.did) > 0 && (read.Result == event.FinishMerged || read.Result == event.FinishQueued)) || isMerge && read.By != ada {
				t.Errorf("did %v, result %+v", w.did, read)
			}
			if read.Dequeued != strings.HasPrefix(got, "dequeue ") || read.Dequeued && read.Waits == "" {
				t.Errorf("did %v, result %+v", w.did, read)
			}
		})
	}
}

// TestDraft: a draft is marked ready for review when its checks succeed, or when none has started for long, and a review is requested then.
func TestDraft(t *testing.T) {
	t.Parallel()
	workflow := check(green.Success) // of a ruleset, which has not begun
	workflow.Required, workflow.Workflows = nil, 1
	expected := green.Report{Head: head, Required: []green.Requirement{{Name: "test"}}}
	for name, c := range map[string]struct {
		change func(*world)
		late   bool
		want   bool
	}{
		"green":                 {func(*world) {}, false, true},
		"green and late":        {func(*world) {}, true, true},
		"red":                   {func(w *world) { w.report = check(green.Failure) }, false, false},
		"red and late":          {func(w *world) { w.report = check(green.Failure) }, true, false},
		"running and late":      {func(w *world) { w.report = check(green.Pending) }, true, false},
		"not started":           {func(w *world) { w.report = expected }, false, false},
		"not started and late":  {func(w *world) { w.report = expected }, true, true},
		"no checks":             {func(w *world) { w.report = green.Report{Head: head} }, false, false},
		"no checks and late":    {func(w *world) { w.report = green.Report{Head: head} }, true, true},
		"always a draft":        {func(w *world) { w.task.Settings.Draft = settings.DraftAlways }, false, false},
		"converted by a person": {func(w *world) { w.task.PR.MarkedReady = true }, false, false},
		"required workflow":     {func(w *world) { w.report = workflow }, false, false},
		"and late":              {func(w *world) { w.report = workflow }, true, true},
		"paused": {func(w *world) {
			w.steps.Paused = func(context.Context, int64) (*state.Waiting, error) { return &state.Waiting{}, nil }
		}, false, false},
		"hidden checks":          {func(w *world) { w.report = green.Report{Head: head, Incomplete: "GitHub hides them"} }, false, false},
		"hidden checks and late": {func(w *world) { w.report = green.Report{Head: head, Incomplete: "GitHub hides them"} }, true, true},
		"another head, and late": {func(w *world) { w.m.Head = older }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.task.Settings.Draft, w.task.Settings.Merge, w.m.Draft, w.task.PR.LateAt = settings.DraftUntilGreen, settings.MergeNever, true, now.Add(time.Second)
			if c.late {
				w.task.PR.LateAt = now
			}
			c.change(w)
			read := w.finish(t)
			if want := map[bool]string{true: "ready; request bob"}[c.want]; strings.Join(w.did, "; ") != want {
				t.Errorf("did %v, want %q", w.did, want)
			}
			if c.want && (read.Draft || read.Result != event.FinishReady || read.Late != (name != "green" && name != "green and late")) || !c.want && read.Result == event.FinishReady {
				t.Errorf("got %+v", read)
			}
		})
	}
}

// TestMarkedByAPerson: who marks the draft ready is spared the review request, which errand makes then.
func TestMarkedByAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.task.Settings.Draft, w.task.Settings.Merge = settings.DraftUntilGreen, settings.MergeNever
	w.report = check(green.Failure)
	if read := w.finish(t); read.Result != event.FinishReady || read.Late || strings.Join(w.did, "; ") != "request bob" {
		t.Errorf("did %v, result %+v", w.did, read)
	}
}

// TestCrashAfterTheDraftWasMarkedReady: the next attempt finds it ready, and says why if no check has started.
func TestCrashAfterTheDraftWasMarkedReady(t *testing.T) {
	t.Parallel()
	for _, is := range []green.State{green.Success, green.Pending} {
		w := newWorld()
		w.task.Settings.Draft, w.task.Settings.Merge, w.job.Attempted, w.report = settings.DraftUntilGreen, settings.MergeNever, true, check(is)
		if read := w.finish(t); read.Result != event.FinishReady || read.Late != (is == green.Pending) || strings.Join(w.did, "; ") != "request bob" {
			t.Errorf("%s: did %v, result %+v", is, w.did, read)
		}
	}
}

// TestCrashAfterItWasTakenBack: the next attempt does not find the pull request in the queue, and says that errand removed it.
func TestCrashAfterItWasTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.task.PR.Queued, w.job.Attempted, w.task.Phase = true, true, state.PhaseAddressingReview
	if read := w.finish(t); !read.Dequeued || read.Waits == "" || len(w.did) > 0 {
		t.Errorf("did %v, result %+v", w.did, read)
	}
}

// TestRefusals: the first refusal may be due to something that has just changed. At the second attempt all ways of merging are tried, and the last
// refusal counts.
func TestRefusals(t *testing.T) {
	t.Parallel()
	refusal := &forge.Error{Op: "merge", Reason: "GitHub refused it: 2 approvals are required.", Class: forge.ClassPermanent, Err: errors.New("no")}
	squash, rebase := "merge PR_1 "+head+" SQUASH", "merge PR_1 "+head+" REBASE"
	w := newWorld()
	w.fail[squash] = refusal
	if read := w.finish(t); read.Result != event.FinishUnknown || len(w.did) != 1 {
		t.Errorf("first attempt: did %v, result %+v", w.did, read)
	}
	w.job.Args.Reads, w.did = 1, nil // GitHub did not know something
	if read := w.finish(t); read.Result != event.FinishUnknown || !read.Refused || len(w.did) != 1 {
		t.Errorf("first refusal: did %v, result %+v", w.did, read)
	}
	w.job.Args.Refused, w.did = true, nil
	if read := w.finish(t); read.Result != event.FinishMerged || !slices.Equal(w.did, []string{squash, rebase}) {
		t.Errorf("second attempt: did %v, result %+v", w.did, read)
	}
	w.fail[rebase] = refusal
	if read := w.finish(t); read.Result != event.FinishRefused || read.Refusal != refusal.Reason || !strings.Contains(read.Waits, "2 approvals are required") {
		t.Errorf("both refused: result %+v", read)
	}
	w = newWorld()
	w.again = func(m *forge.Merging) { m.Base = "production" }
	if read := w.finish(t); read.Result != event.FinishUnknown || len(w.did) > 0 {
		t.Errorf("another base at the last moment: did %v, result %+v", w.did, read)
	}
	w = newWorld()
	w.task.Settings.Draft, w.m.Draft, w.fail["ready"] = settings.DraftUntilGreen, true, refusal
	if read := w.finish(t); read.Result != event.FinishRefused || !read.Draft || read.Refusal != refusal.Reason {
		t.Errorf("a draft: result %+v", read)
	}
}

// TestFailures: a failure that is no refusal is one of the job, which is tried again.
func TestFailures(t *testing.T) {
	t.Parallel()
	merge := "merge PR_1 " + head + " SQUASH"
	for _, call := range []string{"read", "checks", "reviews", "threads", "permission", merge} {
		w := newWorld()
		w.fail[call] = &forge.Error{Op: call, Reason: "GitHub does not answer.", Class: forge.ClassUnknown, Err: errors.New("EOF")}
		if e, err := w.steps.Finish(t.Context(), w.attempt()); err == nil || !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "GitHub does not answer") {
			t.Errorf("%s: got %+v, %v", call, e, err)
		}
		if call != merge && len(w.did) > 0 {
			t.Errorf("%s: did %v", call, w.did)
		}
	}
	w := newWorld()
	w.steps.Paused = func(context.Context, int64) (*state.Waiting, error) { return nil, errors.New("disk full") }
	if _, err := w.steps.Finish(t.Context(), w.attempt()); err == nil || len(w.did) > 0 {
		t.Errorf("an unknown pause: %v, did %v", err, w.did)
	}
}

// TestLongReason: a reason contains other people's names, and is stored with the task.
func TestLongReason(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.report = check(green.Failure)
	for i := range 100 {
		w.report.Checks = append(w.report.Checks, green.Check{Name: fmt.Sprintf("%d%s", i, strings.Repeat("ä", 100)), State: green.Failure})
		w.report.Required = append(w.report.Required, green.Requirement{Name: fmt.Sprintf("%d%s", i, strings.Repeat("ä", 100))})
	}
	if read := w.finish(t); len([]rune(read.Waits)) > maxWaits || len(w.did) > 0 {
		t.Errorf("got %d characters: %s", len([]rune(read.Waits)), read.Waits)
	}
}
