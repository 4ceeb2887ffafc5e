package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/state"
)

// Some safeguards are backed by others, so that a missing one need not affect a life's outcome. These tests check each
// safeguard separately; TestHeavyControls disables it.

// TestWorkerWithoutLeaseChangesNothing: a worker whose lease has ended, while another worker does the job, can no longer change it.
func TestWorkerWithoutLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	if err := fenced(t, noFault); err != nil {
		t.Error(err)
	}
}

// TestRedeliveredWebhookChangesNothing: a webhook that is redelivered with the same GUID after it was processed changes nothing.
func TestRedeliveredWebhookChangesNothing(t *testing.T) {
	t.Parallel()
	if err := redelivered(t, noFault); err != nil {
		t.Error(err)
	}
}

// TestStatusEditsAreCoalesced: all changes within the gap after an edit of the status comment share the next edit.
func TestStatusEditsAreCoalesced(t *testing.T) {
	t.Parallel()
	if err := coalesced(t, noFault); err != nil {
		t.Error(err)
	}
}

const (
	newComment  = "github: POST /issues/N/comments"
	editComment = "github: PATCH /issues/comments/N"
	firstPlan   = "Preliminary plan, revision 1"
)

// fenced blocks two workers in the same job, the second of which has the lease, and releases the first one, which tries
// to schedule a retry. Only the second one may write the comment.
func fenced(t *testing.T, f fault) error {
	s := newScript()
	s.fault = f
	late, owner := s.hold(newComment, 2, refused), s.hold(newComment, 3, "")
	return playInWorld(t.Context(), t, s, func(ctx context.Context, l *life) error {
		p := &person{life: l}
		if err := p.open(ctx); err != nil {
			return err
		}
		if err := l.await(ctx, late.reached); err != nil {
			return err
		}
		job, err := l.claimed(ctx, state.JobPost)
		if err != nil {
			return err
		}
		s.clock.to(job.Until)
		if err := l.await(ctx, owner.reached); err != nil {
			return err
		}
		close(late.release)
		if err := l.until(ctx, "the first worker", func() (bool, error) { return s.ended("commit: retry job") > 0, nil }); err != nil {
			return err
		}
		if now, err := l.claimed(ctx, state.JobPost); err != nil || now.ID != job.ID || now.Epoch <= job.Epoch { // it lost the lease
			if err := l.until(ctx, "a third worker", func() (bool, error) { return s.ended(newComment) > 2, nil }); err != nil {
				return err
			}
		}
		close(owner.release)
		if _, err := l.comment(ctx, firstPlan); err != nil {
			return err
		}
		if err := l.settle(ctx); err != nil {
			return err
		}
		if n := s.ended(newComment); n != 3 { // the status comment, and the plan by each of the workers
			return fmt.Errorf("got %d attempts to write comments, want 3", n)
		}
		return l.wantOneComment(firstPlan)
	})
}

// redelivered redelivers all webhooks.
func redelivered(t *testing.T, f fault) error {
	s := newScript()
	s.fault = f
	return playInWorld(t.Context(), t, s, func(ctx context.Context, l *life) error {
		p := &person{life: l}
		if err := p.open(ctx); err != nil {
			return err
		}
		if _, err := l.comment(ctx, firstPlan); err != nil {
			return err
		}
		if _, err := p.ada().Comment(demo.Full, p.issue, "Please do not trim afterwards."); err != nil {
			return err
		}
		if _, err := l.comment(ctx, "Preliminary plan, revision 2"); err != nil {
			return err
		}
		before, err := l.idleState(ctx)
		if err != nil {
			return err
		}
		spent, sent := s.ended("commit: spend delivery"), map[string]bool{}
		for _, d := range l.world.GitHub.Deliveries() {
			if !sent[d.GUID] && !l.world.GitHub.Redeliver(d.ID) {
				return fmt.Errorf("delivery %d cannot be redelivered", d.ID)
			}
			sent[d.GUID] = true
		}
		after, err := l.idleState(ctx)
		if err != nil {
			return err
		}
		if diff := gocmp.Diff(before, after); diff != "" {
			return fmt.Errorf("redelivered webhooks were applied again:\n%s", diff)
		}
		if n := s.ended("commit: spend delivery") - spent; n > 0 {
			return fmt.Errorf("%d of %d deliveries were processed again", n, len(sent))
		}
		return nil
	})
}

// coalesced brings a task to its first plan while the stopped clock permits no further edit.
func coalesced(t *testing.T, f fault) error {
	s := newScript()
	s.fault, s.byHand, s.timing.StatusGap = f, true, 10*time.Minute
	return playInWorld(t.Context(), t, s, func(ctx context.Context, l *life) error {
		if err := (&person{life: l}).open(ctx); err != nil {
			return err
		}
		if _, err := l.comment(ctx, firstPlan); err != nil {
			return err
		}
		var left state.Job
		err := l.until(ctx, "all jobs except the status comment to end", func() (bool, error) {
			if n := s.ended(editComment); n > 0 {
				return false, fmt.Errorf("the status comment was edited %d times within the gap, want 0", n)
			}
			jobs, err := l.jobs(ctx)
			if len(jobs) == 1 {
				left = jobs[0]
			}
			return len(jobs) == 1 && left.Kind == state.JobStatus && left.State == state.JobQueued && left.Attempt == 0, err
		})
		if err != nil {
			return err
		}
		s.clock.to(left.NotBefore)
		if err := l.settle(ctx); err != nil {
			return err
		}
		task, err := l.task(ctx)
		if err != nil {
			return err
		}
		if n := s.ended(editComment); n != 1 || task.Status.Shown != task.Visible {
			return fmt.Errorf("after the gap the status comment was edited %d times, want 1, and shows %d of %d", n, task.Status.Shown, task.Visible)
		}
		return nil
	})
}

// await waits for a signal.
func (l *life) await(ctx context.Context, signal <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, l.script.patience)
	defer cancel()
	select {
	case <-signal:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for a worker: %w", ctx.Err())
	}
}

// comment waits for a comment by errand on the issue, and for its ID in the store.
func (l *life) comment(ctx context.Context, text string) (string, error) {
	var found string
	err := l.until(ctx, text, func() (bool, error) {
		t, err := l.task(ctx)
		if err != nil || t == nil {
			return false, err
		}
		i, err := l.world.GitHub.As(demo.Maintainer).Issue(demo.Full, t.Key.Issue)
		if err != nil {
			return false, err
		}
		for _, c := range i.Comments {
			known := slices.ContainsFunc(t.Posted, func(p state.Posted) bool { return p.ID == c.ID })
			if strings.Contains(c.Body, text) && known {
				found = c.Body
			}
		}
		return found != "", nil
	})
	return found, err
}

// wantOneComment returns an error unless the issue has exactly one comment with a text.
func (l *life) wantOneComment(text string) error {
	repo, _ := l.world.GitHub.Snapshot().Repo(demo.Full)
	n := 0
	for _, i := range repo.Issues {
		for _, c := range i.Comments {
			if strings.Contains(c.Body, text) {
				n++
			}
		}
	}
	if n != 1 {
		return fmt.Errorf("got %d comments with %q, want 1", n, text)
	}
	return nil
}

// task returns the only task, or nil if there is none yet.
func (l *life) task(ctx context.Context) (*state.Task, error) {
	tasks, err := l.world.Server.Store().AllTasks(ctx, state.TaskKey{}, 2)
	if err != nil || len(tasks) == 0 {
		return nil, err
	}
	return tasks[0], nil
}

// jobs lists the task's jobs without its reminders.
func (l *life) jobs(ctx context.Context) (list []state.Job, err error) {
	t, err := l.task(ctx)
	if err != nil || t == nil {
		return nil, err
	}
	jobs, err := l.world.Server.Store().Jobs(ctx, t.Key)
	for _, j := range jobs {
		if j.Kind != state.JobDue {
			list = append(list, j)
		}
	}
	return list, err
}

// claimed returns the claimed job of a kind.
func (l *life) claimed(ctx context.Context, kind state.JobKind) (state.Job, error) {
	jobs, err := l.jobs(ctx)
	for _, j := range jobs {
		if j.Kind == kind && j.State == state.JobClaimed {
			return j, nil
		}
	}
	return state.Job{}, fmt.Errorf("no %s is claimed: %w", kind, err)
}

// idleState returns the state of an idle task in the store and on GitHub.
func (l *life) idleState(ctx context.Context) (any, error) {
	if err := l.settle(ctx); err != nil {
		return nil, err
	}
	t, err := l.task(ctx)
	if err != nil {
		return nil, err
	}
	repo, _ := l.world.GitHub.Snapshot().Repo(demo.Full)
	var bodies []string
	for _, c := range repo.Issues[t.Key.Issue].Comments {
		bodies = append(bodies, c.Body)
	}
	return []any{t, bodies}, nil
}
