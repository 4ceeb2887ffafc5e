// Package finish gets a task's open pull request reviewed and merged, as far as the settings say: it marks a draft ready for review once its
// checks succeed, and merges a pull request once a person has approved it and nothing is missing.
//
// Everything that decides is read from GitHub in the same step. A merge names the commit that was approved, so GitHub refuses it after a push in
// between. Start with Steps.Finish.
package finish

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/green"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Steps are the steps that get a pull request reviewed and merged.
type Steps struct {
	GitHub GitHub
	Now    func() time.Time
	// ChecksQuiet is how long no check may have appeared before a head is green that needs none.
	ChecksQuiet time.Duration
	// Operators is the operator's present setting. It counts for tasks that began under another one, too.
	Operators settings.MergeMode
	// IsMachine reports whether an account is one that people assign issues to for errand. Its approvals are nobody's.
	IsMachine func(state.Person) bool
	// Paused returns a Waiting while the operator has paused a repository; it may be nil.
	Paused func(ctx context.Context, repo int64) (*state.Waiting, error)
}

// GitHub has the calls of GitHub's API that these steps need.
type GitHub interface {
	step.Reviewers
	Merging(ctx context.Context, r forge.Repo, number int) (forge.Merging, error)
	Checks(ctx context.Context, r forge.Repo, number int, head string) (green.Report, error)
	Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error)
	Threads(ctx context.Context, r forge.Repo, number int) ([]forge.Thread, error)
	DequeuePR(ctx context.Context, r forge.Repo, pull string) error
	MarkReady(ctx context.Context, r forge.Repo, number int, m forge.Merging) error
	MergePR(ctx context.Context, r forge.Repo, pull, head, method string) error
	EnqueuePR(ctx context.Context, r forge.Repo, pull, head string) error
}

// finish is one attempt.
type finish struct {
	*Steps
	*step.Attempt
	m      forge.Merging
	checks green.Verdict
	read   event.PRFinished
}

// Finish marks the task's pull request ready for review, or merges it, if the settings want that and nothing is missing. The event says
// otherwise what is. After an unknown outcome the next attempt finds the pull request ready, merged or queued.
func (s *Steps) Finish(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.PR == nil || t.PR.State != state.PROpen || t.Branch.Head == "" {
		return step.Done(), nil
	}
	if t.Phase != state.PhasePROpen && !t.PR.Queued && !w.Job.Attempted {
		return step.Done(), nil // it is done after the present work
	}
	readAt := s.Now()
	m, err := s.read(ctx, w)
	if err != nil {
		return event.Event{}, err
	}
	if !m.Open { // a webhook says so
		return step.Done(), nil
	}
	f := &finish{Steps: s, Attempt: w, m: m, read: event.PRFinished{Head: m.Head, Draft: m.Draft, ReadAt: readAt, Reads: w.Job.Args.Reads}}
	if m.Head != t.Branch.Head && !t.PR.Queued {
		return f.waits(notProcessed), nil
	}
	report, err := s.GitHub.Checks(ctx, w.Repo, t.PR.Number, m.Head)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the checks: %w", err)
	}
	if report.Head != m.Head && !t.PR.Queued {
		return f.waits(notProcessed), nil
	}
	f.checks = green.Judge(report, s.Now(), s.ChecksQuiet)
	if t.Settings.Draft == settings.DraftUntilGreen && !t.PR.MarkedReady && t.Phase == state.PhasePROpen {
		return f.ready(ctx)
	}
	if !t.IsMergedByErrand() {
		return event.Event{Payload: f.done("")}, nil
	}
	return f.merge(ctx)
}

const notProcessed = "errand has not processed its newest commit yet"

func (s *Steps) read(ctx context.Context, w *step.Attempt) (forge.Merging, error) {
	m, err := s.GitHub.Merging(ctx, w.Repo, w.Task.PR.Number)
	if err != nil {
		return m, fmt.Errorf("read whether the pull request can be merged: %w", err)
	}
	return m, nil
}

func (f *finish) done(r event.FinishResult) event.PRFinished {
	f.read.Result = r
	return f.read
}

// waits returns the event of a pull request that lacks something.
func (f *finish) waits(reason string) event.Event {
	f.read.Waits = cut(reason)
	return event.Event{Payload: f.done(event.FinishWaits)}
}

// refused returns the event of a pull request with which GitHub does not do what errand wants.
func (f *finish) refused(err error) event.Event {
	f.Log.Warn().Err(err).Msg("GitHub refused to mark a pull request ready for review, or to merge it")
	f.read.Refusal, _ = forge.Explain(err)
	f.read.Waits = cut("GitHub refuses to merge it (" + strings.TrimSuffix(f.read.Refusal, ".") + "); after the next approval errand tries again")
	return event.Event{Payload: f.done(event.FinishRefused)}
}

// maxWaits is the maximum length of the reason why a pull request waits, in characters.
const maxWaits = 300

func cut(s string) string {
	if r := []rune(s); len(r) > maxWaits {
		return string(r[:maxWaits-1]) + "…"
	}
	return s
}

// ready marks a draft ready for review if its checks succeed, or if none that counts has started for long. Of a pull request that is ready by
// now, it requests the review only.
func (f *finish) ready(ctx context.Context) (event.Event, error) {
	t, isGreen := f.Task, f.checks.State == green.Success
	isLate := !t.PR.LateAt.IsZero() && !f.Now().Before(t.PR.LateAt) && f.checks.Unstarted
	f.read.Late = !isGreen && (isLate || f.Job.Attempted)
	if !f.m.Draft && !f.Job.Attempted {
		f.read.Late = false // a person marked it ready
	}
	if f.m.Draft {
		if !isGreen && !isLate {
			return event.Event{Payload: f.done("")}, nil
		}
		if reason, err := f.pause(ctx); err != nil || reason != "" {
			return f.waits(reason), err
		}
		if _, err := f.MarkAttempted(ctx); err != nil {
			return event.Event{}, err
		}
		err := f.GitHub.MarkReady(ctx, f.Repo, t.PR.Number, f.m)
		if isRefusal(err) {
			return f.refused(err), nil
		}
		if err != nil {
			return event.Event{}, fmt.Errorf("mark the pull request ready for review: %w", err)
		}
		f.read.Draft = false
	}
	step.RequestReview(ctx, f.GitHub, f.Attempt, t.PR.Number)
	return event.Event{Payload: f.done(event.FinishReady)}, nil
}

// isRefusal reports whether GitHub refused a call, and would do so again.
func isRefusal(err error) bool {
	class, _ := forge.Classify(err)
	return err != nil && class == forge.ClassPermanent
}

// pause returns why errand does nothing by itself in the repository, a clause for people, or "".
func (f *finish) pause(ctx context.Context) (string, error) {
	if f.Paused == nil {
		return "", nil
	}
	w, err := f.Paused(ctx, f.Task.Key.Repo)
	if err != nil {
		return "", fmt.Errorf("read whether the repository is paused: %w", err)
	}
	if w != nil {
		return "errand's operator has paused it", nil
	}
	return "", nil
}

// merge merges the pull request, or adds it to the merge queue, if nothing is missing. If something is missing now, it takes out of the queue what
// it has added.
func (f *finish) merge(ctx context.Context) (event.Event, error) {
	reason, err := f.missing(ctx)
	if err != nil {
		return event.Event{}, err
	}
	pr := f.Task.PR
	wasTried := pr.MergeTried == f.m.Head
	f.read.Unqueued = !f.m.Queued
	switch {
	case reason != "" && f.m.Queued && (pr.Queued || wasTried || f.Job.Attempted):
		return f.takeBack(ctx, reason)
	case reason != "":
		f.read.Dequeued = pr.Queued && f.Job.Attempted // by an earlier attempt
		return f.waits(reason), nil
	case f.m.Queued:
		return event.Event{Payload: f.done(event.FinishQueued)}, nil
	case wasTried && f.m.NeedsQueue:
		return f.waits("it was removed from the merge queue; after the next approval errand adds it again"), nil
	case wasTried:
		return f.waits("GitHub refused to merge it; after the next approval errand tries again"), nil
	case f.m.Mergeable == nil:
		return event.Event{Payload: f.done(event.FinishUnknown)}, nil
	}
	return f.try(ctx)
}

// takeBack removes the pull request from the merge queue.
func (f *finish) takeBack(ctx context.Context, reason string) (event.Event, error) {
	if _, err := f.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	if err := f.GitHub.DequeuePR(ctx, f.Repo, f.m.Node); err != nil && !isRefusal(err) { // it left the queue meanwhile
		return event.Event{}, fmt.Errorf("remove the pull request from the merge queue: %w", err)
	}
	f.read.Dequeued = true
	return f.waits(reason), nil
}

// try has GitHub merge the pull request, if it is still as it was judged. A refusal may be due to something that has just changed, so it counts at the
// second attempt only, which tries all ways in which the repository merges.
func (f *finish) try(ctx context.Context) (event.Event, error) {
	now, err := f.Steps.read(ctx, f.Attempt)
	if err != nil {
		return event.Event{}, err
	}
	if now.Head != f.m.Head || now.Base != f.m.Base || now.Draft || !now.Open {
		return event.Event{Payload: f.done(event.FinishUnknown)}, nil
	}
	if _, err := f.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	isFirst, result := !f.Job.Args.Refused, event.FinishMerged
	if f.m.NeedsQueue {
		result = event.FinishQueued
		err = f.GitHub.EnqueuePR(ctx, f.Repo, f.m.Node, f.m.Head)
	} else {
		for i, method := range f.m.Methods {
			if err = f.GitHub.MergePR(ctx, f.Repo, f.m.Node, f.m.Head, method); !isRefusal(err) || isFirst || i == len(f.m.Methods)-1 {
				break
			}
		}
	}
	switch {
	case isRefusal(err) && isFirst:
		f.read.Refused = true
		return event.Event{Payload: f.done(event.FinishUnknown)}, nil
	case isRefusal(err):
		return f.refused(err), nil
	case err != nil:
		return event.Event{}, fmt.Errorf("merge the pull request: %w", err)
	}
	return event.Event{Payload: f.done(result)}, nil
}

// missing returns why the pull request is not to be merged, a clause for people, or "".
func (f *finish) missing(ctx context.Context) (string, error) {
	t, base := f.Task, f.m.Base
	if reason, err := f.pause(ctx); err != nil || reason != "" {
		return reason, err
	}
	switch {
	case f.Operators != settings.MergeAllowed && f.Operators != settings.MergeWhenApproved:
		return "errand's operator does not allow it any more", nil
	case t.Ended():
		return "its task has ended", nil
	case t.Phase != state.PhasePROpen:
		return "errand is working on it", nil
	case f.m.Head != t.Branch.Head:
		return notProcessed, nil
	case f.m.Draft:
		return "it is a draft", nil
	case base != t.Branch.Base:
		return fmt.Sprintf("its base was changed to %s, so a person has to merge it", base), nil
	case len(t.PendingFeedback()) > 0:
		return "errand has not answered all comments", nil
	case len(f.m.Methods) == 0:
		return "the repository's settings allow no way of merging that errand knows", nil
	case f.checks.State == green.None:
		return "no check has been reported", nil
	case f.checks.State != green.Success:
		return "its checks have not succeeded: " + f.checks.Reason, nil
	}
	reviews, err := f.GitHub.Reviews(ctx, f.Repo, t.PR.Number)
	if err != nil {
		return "", fmt.Errorf("read the reviews: %w", err)
	}
	if reason, err := f.judgeReviews(ctx, reviews); reason != "" || err != nil {
		return reason, err
	}
	threads, err := f.GitHub.Threads(ctx, f.Repo, t.PR.Number)
	switch {
	case err != nil:
		return "", fmt.Errorf("read the review threads: %w", err)
	case slices.ContainsFunc(threads, func(t forge.Thread) bool { return !t.Resolved }):
		return "a review thread is not resolved", nil
	case f.m.Mergeable != nil && !*f.m.Mergeable:
		return fmt.Sprintf("it conflicts with %s", base), nil
	case f.m.IsBehind:
		return fmt.Sprintf("it lacks the newest commits of %s", base), nil
	}
	return "", nil
}

// isOpinion reports whether a review replaces what its author said before about a merge.
func isOpinion(s state.ReviewState) bool {
	return s == state.ReviewApproved || s == state.ReviewChangesRequested || s == state.ReviewDismissed
}

// judgeReviews decides whether a person with write access has approved the head, and no such person requests changes. Each person's newest
// review counts that approves or requests changes, unless it was dismissed.
func (f *finish) judgeReviews(ctx context.Context, list []forge.Review) (missing string, err error) {
	newest := map[int64]forge.Review{}
	var order []int64
	for _, v := range list { // oldest first
		if !isOpinion(v.State) || v.By.ID == 0 || v.By.Bot || f.IsMachine(v.By) {
			continue
		}
		if _, known := newest[v.By.ID]; !known {
			order = append(order, v.By.ID)
		}
		newest[v.By.ID] = v
	}
	for _, id := range order {
		v := newest[id]
		if v.State == state.ReviewDismissed || v.State == state.ReviewApproved && v.Head != f.m.Head {
			continue
		}
		p, err := f.GitHub.Permission(ctx, f.Repo, v.By.Login, v.By.ID)
		switch {
		case err != nil:
			return "", fmt.Errorf("read the permission of a reviewer: %w", err)
		case !p.CanWrite():
		case v.State == state.ReviewChangesRequested:
			f.read.By = state.Person{}
			return v.By.Login + " requests changes", nil
		case f.read.By.ID == 0:
			f.read.By = v.By
		}
	}
	if f.read.By.ID == 0 {
		return fmt.Sprintf("no person with write access has approved its newest commit, %s", state.ShortHash(f.m.Head)), nil
	}
	return "", nil
}
