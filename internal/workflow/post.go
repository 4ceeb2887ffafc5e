package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// lookBack is how much before a job's creation its comment is looked for: clocks differ.
const lookBack = 2 * time.Minute

// post writes a comment once. Its hidden marker is the job's key: after an unknown outcome the
// comment is looked for before it is written again, and a younger twin is removed.
func (s *Steps) post(ctx context.Context, w *unit) (state.Event, error) {
	p := *w.job.Post
	if obsolete(w.task, p) {
		return s.postedBefore(ctx, w)
	}
	number, err := numberOf(w)
	if err != nil {
		return state.Event{}, err
	}
	v, err := s.view(ctx)
	if err != nil {
		return state.Event{}, err
	}
	v.Key = w.job.Key
	if p.Kind == state.PostEnded {
		v.Branch = s.branchState(ctx, w)
	}
	if p.Kind == state.PostPlan && !comment.ShowsPlan(w.task, p, v) {
		return state.Event{}, &Problem{Reason: "The plan is too long to be shown in full in a comment, so that nobody could approve what it says.", Class: "agent", Permanent: true,
			Hint: "Comment `replan` and say what a shorter plan should leave out."}
	}
	body, _ := s.Redact.Redact(comment.Render(w.task, p, v))
	c, looked, err := s.writeOnce(ctx, w, number, body)
	if err != nil {
		return state.Event{}, fmt.Errorf("post %s: %w", p.Kind, err)
	}
	if p.Kind == state.PostPlan && looked && comment.BodyHash(c.Body) != comment.BodyHash(body) {
		if c, err = s.restore(ctx, w, c, body); err != nil {
			return state.Event{}, err
		}
	}
	return posted(w, number, c, looked), nil
}

// posted is the event of a comment that is there. looked says that an earlier attempt may have made it.
func posted(w *unit, number int, c forge.Comment, looked bool) state.Event {
	p := *w.job.Post
	e := state.Event{Kind: state.EventPosted, Post: &p, Hash: comment.BodyHash(c.Body), Posted: &state.Posted{
		Key: w.job.Key, Kind: string(p.Kind), ID: c.ID, Node: c.Node, URL: c.URL, At: c.CreatedAt, OnPR: p.OnPR,
	}}
	if p.OnPR {
		e.Posted.Number = number
	}
	if looked {
		e.Detail = "looked"
		e.Ticked = p.Kind == state.PostPlan && len(comment.Ticked(c.Body, p.Hash)) > 0
	}
	return e
}

// numberOf is the issue or pull request that a comment belongs on. The task may have begun anew since it was wanted; jobs of older
// versions do not name the pull request.
func numberOf(w *unit) (int, error) {
	if number := w.job.Args["number"]; number != "" {
		n, err := strconv.Atoi(number)
		if err != nil {
			return 0, fmt.Errorf("post on pull request %q: %w", number, err)
		}
		return n, nil
	}
	if w.job.Post.OnPR && w.task.PR != nil {
		return w.task.PR.Number, nil
	}
	return w.task.Key.Issue, nil
}

// obsolete reports whether a comment that is still to be posted is out of date, for example after an outage: a plan that a
// newer one has replaced, or a reminder of a plan that no longer waits for approval.
func obsolete(t *state.Task, p state.Post) bool {
	switch plan := planByHash(t, p.Hash); p.Kind {
	case state.PostPlan:
		return plan == nil || plan.Superseded
	case state.PostReminder:
		return plan == nil || plan.Superseded || !t.Phase.AwaitsApproval()
	}
	return false
}

// postedBefore looks for an obsolete plan that an earlier attempt may have posted, so that it can be minimized.
func (s *Steps) postedBefore(ctx context.Context, w *unit) (state.Event, error) {
	p := *w.job.Post
	if !w.job.Attempted || p.Kind != state.PostPlan {
		return done(), nil
	}
	found, err := s.lookFor(ctx, w, w.task.Key.Issue)
	if err != nil || len(found) == 0 {
		return done(), err
	}
	return posted(w, w.task.Key.Issue, found[0], true), s.deleteTwins(ctx, w, found[1:])
}

// restore has the comment of a plan say what the plan says: somebody edited it before the store knew that it was there.
// A 👍 from before approved something else, so the plan counts as posted only now.
func (s *Steps) restore(ctx context.Context, w *unit, posted forge.Comment, body string) (forge.Comment, error) {
	again, err := s.GitHub.EditComment(ctx, w.repo, posted.ID, body)
	if err != nil {
		return forge.Comment{}, fmt.Errorf("restore the comment of a plan: %w", err)
	}
	again.CreatedAt = s.Now().UTC().Truncate(time.Second)
	return again, nil
}

// branchState says whether a canceled task's branch is still there, for its last comment.
func (s *Steps) branchState(ctx context.Context, w *unit) comment.BranchState {
	if w.task.Phase != state.PhaseCancelled || w.task.Branch.Head == "" {
		return comment.BranchUnknown
	}
	_, err := s.GitHub.Head(ctx, w.repo, w.task.Branch.Name)
	switch {
	case err == nil:
		return comment.BranchThere
	case errors.Is(err, forge.ErrNotFound):
		return comment.BranchGone
	}
	w.log.Warn().Err(err).Str("branch", w.task.Branch.Name).Msg("failed to read the branch; the last comment does not mention it")
	return comment.BranchUnknown
}

// writeOnce creates the comment unless an earlier attempt did. looked says that there was one.
func (s *Steps) writeOnce(ctx context.Context, w *unit, number int, body string) (posted forge.Comment, looked bool, err error) {
	before, err := s.attempted(ctx, w)
	if err != nil {
		return forge.Comment{}, false, err
	}
	if before {
		found, err := s.lookFor(ctx, w, number)
		if err != nil {
			return forge.Comment{}, true, err
		}
		if len(found) > 0 {
			return found[0], true, s.deleteTwins(ctx, w, found[1:])
		}
	}
	posted, err = s.GitHub.CreateComment(ctx, w.repo, number, body)
	return posted, before, err
}

// lookFor finds what earlier attempts of a job have written, oldest first.
func (s *Steps) lookFor(ctx context.Context, w *unit, number int) ([]forge.Comment, error) {
	return s.GitHub.FindComments(ctx, w.repo, number, comment.Marker(w.job.Key), since(w.job).Add(-lookBack))
}

// since is from when on the effect of a job may be there.
func since(j *state.Job) time.Time {
	if !j.Doubt.IsZero() {
		return j.Doubt
	}
	return j.Created
}

// deleteTwins removes younger comments with the same marker.
func (s *Steps) deleteTwins(ctx context.Context, w *unit, twins []forge.Comment) error {
	for _, t := range twins {
		if err := s.GitHub.DeleteComment(ctx, w.repo, t.ID); err != nil {
			return fmt.Errorf("delete a twin comment: %w", err)
		}
	}
	return nil
}

// status brings the status comment up to date with the store as it is now.
func (s *Steps) status(ctx context.Context, w *unit) (state.Event, error) {
	t := w.task
	if t.Status.Shown >= t.Visible || !strings.HasPrefix(w.job.Key, fmt.Sprintf("%d.", t.Gen)) {
		return done(), nil // shown, or of an earlier life: the present one has a job of its own
	}
	v, err := s.view(ctx)
	if err != nil {
		return state.Event{}, err
	}
	v.Key = w.job.Key
	body, _ := s.Redact.Redact(comment.Status(t, v))
	sent := state.StatusComment{Comment: t.Status.Comment, Node: t.Status.Node, URL: t.Status.URL, Shown: t.Visible, At: s.Now()}
	ctx = forge.WithPriority(ctx, forge.PriorityStatus)
	if t.Status.Comment != 0 {
		_, err := s.GitHub.EditComment(ctx, w.repo, t.Status.Comment, body)
		if err == nil {
			return state.Event{Kind: state.EventStatusSent, Status: &sent}, nil
		}
		if !errors.Is(err, forge.ErrNotFound) {
			return state.Event{}, fmt.Errorf("edit the status comment: %w", err)
		}
	}
	posted, looked, err := s.writeOnce(ctx, w, t.Key.Issue, body)
	if err == nil && looked && comment.BodyHash(posted.Body) != comment.BodyHash(body) { // as an earlier attempt saw the task
		_, err = s.GitHub.EditComment(ctx, w.repo, posted.ID, body)
	}
	if err != nil {
		return state.Event{}, fmt.Errorf("post the status comment: %w", err)
	}
	sent.Comment, sent.Node, sent.URL = posted.ID, posted.Node, posted.URL
	e := state.Event{Kind: state.EventStatusSent, Status: &sent}
	if looked { // what an earlier attempt wrote may show only later
		e.Detail = "looked"
	}
	return e, nil
}

// minimise folds a superseded plan. It may be repeated.
func (s *Steps) minimise(ctx context.Context, w *unit) (state.Event, error) {
	if node := w.job.Args["node"]; node != "" {
		if err := s.GitHub.Minimize(ctx, w.task.Installation, node); err != nil && !errors.Is(err, forge.ErrNotFound) {
			return state.Event{}, fmt.Errorf("fold a superseded plan: %w", err)
		}
	}
	return done(), nil
}

// untick takes back a tick that does not count. The comment is written only if nothing but boxes
// differs from what we wrote: a person's other edit is theirs.
func (s *Steps) untick(ctx context.Context, w *unit) (state.Event, error) {
	i := slices.IndexFunc(w.task.Plans, func(p state.Plan) bool { return fmt.Sprint(p.Comment) == w.job.Args["comment"] })
	if i < 0 {
		return done(), nil
	}
	plan := w.task.Plans[i]
	c, err := s.GitHub.Comment(ctx, w.repo, plan.Comment)
	if errors.Is(err, forge.ErrNotFound) {
		return done(), nil
	}
	if err != nil {
		return state.Event{}, fmt.Errorf("read the plan comment: %w", err)
	}
	clean := comment.Untick(c.Body)
	if a := approvalOf(w.task, &plan); a != nil && a.Via == state.ViaBox { // the tick that counted stays
		clean = comment.UntickOthers(c.Body, plan.Hash, a.Choice)
	}
	if clean != c.Body && comment.BodyHash(c.Body) == plan.BodyHash {
		if _, err := s.GitHub.EditComment(ctx, w.repo, plan.Comment, clean); err != nil {
			return state.Event{}, fmt.Errorf("take back a tick: %w", err)
		}
	}
	return done(), nil
}
