// Package talk writes to people: comments, the status comment, reactions and proposed issues. It writes each once, also
// after an unknown outcome.
//
// Start with Steps.Post.
package talk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/approval"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Steps are the steps that write to people.
type Steps struct {
	GitHub GitHub
	View   *step.View
	Redact *trust.Redactor
	Now    func() time.Time
	// Provenance signs statements about published changes; nil makes none.
	Provenance Provenance
}

// GitHub has the calls of GitHub's API that these steps need.
type GitHub interface {
	step.Heads
	React(ctx context.Context, r forge.Repo, t forge.Target, content string) error
	Unreact(ctx context.Context, r forge.Repo, t forge.Target, content string) error
	Comment(ctx context.Context, r forge.Repo, id int64) (forge.Comment, error)
	CreateComment(ctx context.Context, r forge.Repo, number int, body string) (forge.Comment, error)
	EditComment(ctx context.Context, r forge.Repo, id int64, body string) (forge.Comment, error)
	FindComments(ctx context.Context, r forge.Repo, number int, marker string, since time.Time) ([]forge.Comment, error)
	DeleteComment(ctx context.Context, r forge.Repo, id int64) error
	Minimize(ctx context.Context, installation int64, node string) error
	CreateIssue(ctx context.Context, r forge.Repo, title, body string) (forge.Issue, error)
	FindIssues(ctx context.Context, r forge.Repo, marker string, since time.Time) ([]forge.Issue, error)
}

// Post writes a comment once. Its hidden marker is the job's key: after an unknown outcome the
// comment is looked for before it is written again, and a younger twin is removed.
func (s *Steps) Post(ctx context.Context, w *step.Attempt) (event.Event, error) {
	p := *w.Job.Post
	if p.Kind == state.PostProvenance {
		return s.provenance(ctx, w)
	}
	if w.Task == nil {
		return s.replyWithoutTask(ctx, w)
	}
	if NeedsNoTask(w.Job) { // somebody has begun one meanwhile
		return step.Done(), nil
	}
	if obsolete(w, p) || isPosted(w) {
		return s.postedBefore(ctx, w)
	}
	number, err := numberOf(w)
	if err != nil {
		return event.Event{}, err
	}
	v, err := s.View.Read(ctx)
	if err != nil {
		return event.Event{}, err
	}
	v.Key = w.Job.Key
	if p.Kind == state.PostEnded {
		v.Branch = s.branchState(ctx, w)
	}
	if p.Kind == state.PostPlan && !comment.ShowsPlan(w.Task, p, v) {
		return event.Event{}, &step.Problem{Reason: "The plan is too long to show in full in a comment, so nobody could approve it.", Class: state.ClassAgent, Permanent: true,
			Hint: "Comment `replan` and describe what a shorter plan should omit."}
	}
	body, _ := s.Redact.Redact(comment.Render(w.Task, p, v))
	c, looked, err := s.writeOnce(ctx, w, number, body)
	if err != nil {
		return event.Event{}, fmt.Errorf("post %s: %w", p.Kind, err)
	}
	if p.Kind == state.PostPlan && looked && comment.BodyHash(c.Body) != comment.BodyHash(body) {
		if c, err = s.restore(ctx, w, c, body); err != nil {
			return event.Event{}, err
		}
	}
	if p.Kind == state.PostEnded && c.CreatedAt.Before(w.Job.Restored) && comment.BodyHash(c.Body) != comment.BodyHash(body) {
		// A life has one last comment; an errand of which this store knows nothing has posted it, perhaps about another end.
		if c, err = s.GitHub.EditComment(ctx, w.Repo, c.ID, body); err != nil {
			return event.Event{}, fmt.Errorf("edit the last comment: %w", err)
		}
	}
	return posted(w, number, c, looked), nil
}

// posted returns the event of a comment. looked says that an earlier attempt may have created it.
func posted(w *step.Attempt, number int, c forge.Comment, looked bool) event.Event {
	p := *w.Job.Post
	out := event.Posted{
		Post:     &p,
		BodyHash: comment.BodyHash(c.Body),
		Comment: state.Posted{
			Key: w.Job.Key, Kind: string(p.Kind), ID: c.ID, Node: c.Node, URL: c.URL, At: c.CreatedAt, OnPR: p.OnPR,
		},
	}
	if p.OnPR {
		out.Comment.Number = number
	}
	if looked {
		out.Searched = true
		out.Ticked = p.Kind == state.PostPlan && len(comment.Ticked(c.Body, p.Hash)) > 0
	}
	return event.Event{Payload: out}
}

// numberOf returns the number of the issue or pull request that a comment belongs on. The task may have been restarted
// since the job was queued; jobs of older versions do not name the pull request.
func numberOf(w *step.Attempt) (int, error) {
	if number := w.Job.Args.Number; number != 0 {
		return number, nil
	}
	if w.Job.Post.OnPR && w.Task.PR != nil {
		return w.Task.PR.Number, nil
	}
	return w.Task.Key.Issue, nil
}

// obsolete reports whether a comment that is still to be posted is out of date, for example after an outage: a plan
// that a newer one has replaced, a reminder of a plan that no longer waits for approval, or the end of a life of a task that has
// begun another one.
func obsolete(w *step.Attempt, p state.Post) bool {
	t := w.Task
	switch plan := t.PlanByHash(p.Hash); p.Kind {
	case state.PostPlan:
		return plan == nil || plan.Superseded
	case state.PostEnded:
		return !t.Ended() || !strings.HasPrefix(w.Job.Key, fmt.Sprintf("%d.", t.Gen))
	case state.PostReminder:
		return plan == nil || plan.Superseded || !t.Phase.AwaitsApproval()
	}
	return false
}

// isPosted reports whether the comment was posted by another job: an earlier one with the same key, or for a plan one of the life
// before.
func isPosted(w *step.Attempt) bool {
	if slices.ContainsFunc(w.Task.Posted, func(o state.Posted) bool { return o.Key == w.Job.Key }) {
		return true
	}
	plan := w.Task.PlanByHash(w.Job.Post.Hash)
	return w.Job.Post.Kind == state.PostPlan && plan.Posted() && !w.Job.Attempted
}

// postedBefore looks for an obsolete comment that an earlier attempt may have posted: a plan is then minimized.
func (s *Steps) postedBefore(ctx context.Context, w *step.Attempt) (event.Event, error) {
	p := *w.Job.Post
	if !w.Job.Attempted || p.Kind != state.PostPlan && p.Kind != state.PostEnded {
		return step.Done(), nil
	}
	number, err := numberOf(w)
	if err != nil {
		return event.Event{}, err
	}
	found, err := s.lookFor(ctx, w, number)
	if err != nil || len(found) == 0 {
		return step.Done(), err
	}
	return posted(w, number, found[0], true), s.deleteTwins(ctx, w, found[1:])
}

// restore restores the text of a plan's comment that somebody edited before the store knew of it.
// A 👍 from before approved another text, so the plan counts as posted only now.
func (s *Steps) restore(ctx context.Context, w *step.Attempt, posted forge.Comment, body string) (forge.Comment, error) {
	again, err := s.GitHub.EditComment(ctx, w.Repo, posted.ID, body)
	if err != nil {
		return forge.Comment{}, fmt.Errorf("restore the comment of a plan: %w", err)
	}
	again.CreatedAt = s.Now().UTC().Truncate(time.Second)
	return again, nil
}

// branchState returns whether a canceled task's branch still exists, for its last comment.
func (s *Steps) branchState(ctx context.Context, w *step.Attempt) comment.BranchState {
	if w.Task.Phase != state.PhaseCancelled || w.Task.Branch.Head == "" {
		return comment.BranchUnknown
	}
	_, err := s.GitHub.Head(ctx, w.Repo, w.Task.Branch.Name)
	switch {
	case err == nil:
		return comment.BranchThere
	case errors.Is(err, forge.ErrNotFound):
		return comment.BranchGone
	}
	w.Log.Warn().Err(err).Str("branch", w.Task.Branch.Name).Msg("failed to read the branch; the last comment does not mention it")
	return comment.BranchUnknown
}

// Minimize folds a comment that no longer holds: a superseded plan, or the status of an ended life. It may be repeated.
func (s *Steps) Minimize(ctx context.Context, w *step.Attempt) (event.Event, error) {
	if node := w.Job.Args.Node; node != "" {
		if err := s.GitHub.Minimize(ctx, w.Task.Installation, node); err != nil && !errors.Is(err, forge.ErrNotFound) {
			return event.Event{}, fmt.Errorf("fold an outdated comment: %w", err)
		}
	}
	return step.Done(), nil
}

// Untick removes a tick that does not count. The comment is written only if it differs from errand's text in nothing
// but boxes: other edits by people are kept.
func (s *Steps) Untick(ctx context.Context, w *step.Attempt) (event.Event, error) {
	i := slices.IndexFunc(w.Task.Plans, func(p state.Plan) bool { return p.Comment == w.Job.Args.Comment })
	if i < 0 {
		return step.Done(), nil
	}
	plan := w.Task.Plans[i]
	c, err := s.GitHub.Comment(ctx, w.Repo, plan.Comment)
	if errors.Is(err, forge.ErrNotFound) {
		return step.Done(), nil
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("read the plan comment: %w", err)
	}
	clean := comment.Untick(c.Body)
	if a := approval.Of(w.Task, &plan); a != nil && a.Via == state.ViaBox { // the tick that counted stays
		clean = comment.UntickOthers(c.Body, plan.Hash, a.Choice)
	}
	if clean != c.Body && comment.BodyHash(c.Body) == plan.BodyHash {
		if _, err := s.GitHub.EditComment(ctx, w.Repo, plan.Comment, clean); err != nil {
			return event.Event{}, fmt.Errorf("clear a ticked box: %w", err)
		}
	}
	return step.Done(), nil
}
