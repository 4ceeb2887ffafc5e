package workflow

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// stop ends the active run and saves what it left. A VM that cannot be reached has nothing to save.
func (s *Steps) stop(ctx context.Context, w *unit) (state.Event, error) {
	e := state.Event{Kind: state.EventSaved, Run: w.job.Run}
	t := w.task
	vm := w.job.Args["vm"] // the task may have another one by now, or none
	if vm == "" && t.VM != nil {
		vm = t.VM.Name
	}
	if vm == "" {
		return e, nil
	}
	if err := s.Runner.Stop(ctx, vm, w.job.Run, w.job.Args["why"]); err != nil {
		if w.job.Try() < 3 {
			return state.Event{}, fmt.Errorf("stop run %s: %w", w.job.Run, err)
		}
		w.log.Warn().Err(err).Msg("stop a run; its VM is given up")
		return e, nil
	}
	if t.VM == nil || t.VM.Name != vm {
		return e, nil // of an earlier life, or given up: there is nothing to read it against
	}
	cs, err := s.readChangeset(ctx, w, workRoot(t))
	if err != nil && w.job.Try() < 3 && !runnerctl.Gone(err) {
		return state.Event{}, fmt.Errorf("save the work of run %s: %w", w.job.Run, err)
	}
	if err != nil || cs.Empty() {
		if err != nil {
			w.log.Warn().Err(err).Msg("save the work of a stopped run")
		}
		return e, nil
	}
	ref, err := s.Files.SaveChangeset(w.job.Run+"-saved", cs)
	if err != nil {
		return state.Event{}, fmt.Errorf("save the work of a stopped run: %w", err)
	}
	e.Saved = &state.SavedWork{Run: w.job.Run, Ref: ref, At: s.Now(), Why: w.job.Args["why"]}
	return e, nil
}

// release deletes the task's VM. It may be repeated.
func (s *Steps) release(ctx context.Context, w *unit) (state.Event, error) {
	vm, why := w.job.Args["vm"], w.job.Args["why"]
	if err := s.VMs.Release(ctx, vm, why); err != nil {
		return state.Event{}, fmt.Errorf("delete VM %s: %w", vm, err)
	}
	return state.Event{Kind: state.EventReleased, VM: vm, Detail: why}, nil
}

// due turns a delayed job into its event; some first look at GitHub.
func (s *Steps) due(ctx context.Context, w *unit) (state.Event, error) {
	what, key := w.job.Args["what"], w.job.Args["key"]
	switch {
	case what == "closed" && w.task.PR != nil:
		return s.closedHow(ctx, w)
	case what == "twin":
		if w.job.Args["reply"] != "" {
			return s.lookForTwinReply(ctx, w, key)
		}
		return s.lookForTwin(ctx, w, key)
	case what == machine.DueSpan:
		return s.spanEnds(ctx, w, key)
	}
	e := state.Event{Kind: state.EventDue, Detail: what, Hash: key}
	if vm := w.task.VM; s.Outlives != nil && vm != nil && vm.Paid > 0 && vm.Name == key {
		var err error
		if e.Insured, err = s.Outlives(ctx, key); err != nil {
			return state.Event{}, fmt.Errorf("ask whether VM %s may stay: %w", key, err)
		}
	}
	return e, nil
}

// closedHow tells a merge, which closes the issue too, from an issue that a person closed.
func (s *Steps) closedHow(ctx context.Context, w *unit) (state.Event, error) {
	pr, err := s.GitHub.PR(ctx, w.repo, w.task.PR.Number)
	if err != nil {
		return state.Event{}, fmt.Errorf("look at the pull request: %w", err)
	}
	if pr.Merged {
		return state.Event{Kind: state.EventPRClosed, Merged: true, At: pr.ClosedAt}, nil
	}
	i, err := s.GitHub.Issue(ctx, w.repo, w.task.Key.Issue)
	if err != nil {
		return state.Event{}, fmt.Errorf("look at the issue: %w", err)
	}
	if !i.Closed {
		return done(), nil
	}
	return state.Event{Kind: state.EventIssueClosed, Via: state.ViaConfirmed, At: i.ClosedAt}, nil
}

// lookForTwin looks once more, a while after an unknown outcome, for a second copy of a comment.
func (s *Steps) lookForTwin(ctx context.Context, w *unit, id string) (state.Event, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return state.Event{}, fmt.Errorf("look for a twin of comment %q: %w", id, err)
	}
	since, err := time.Parse(time.RFC3339, w.job.Args["since"])
	if err != nil {
		return state.Event{}, fmt.Errorf("look for a twin of comment %q: %w", id, err)
	}
	number := w.task.Key.Issue
	if on := w.job.Args["number"]; on != "" {
		if number, err = strconv.Atoi(on); err != nil {
			return state.Event{}, fmt.Errorf("look for a twin of comment %q: %w", id, err)
		}
	}
	found, err := s.GitHub.FindComments(ctx, w.repo, number, comment.Marker(w.job.Args["marker"]), since.Add(-lookBack))
	if err != nil {
		return state.Event{}, fmt.Errorf("look for a twin comment: %w", err)
	}
	for _, f := range found {
		if f.ID == n {
			continue
		}
		if err := s.GitHub.DeleteComment(ctx, w.repo, f.ID); err != nil {
			return state.Event{}, fmt.Errorf("delete a twin comment: %w", err)
		}
	}
	return done(), nil
}

// lookForTwinReply does the same for an answer in a thread.
func (s *Steps) lookForTwinReply(ctx context.Context, w *unit, key string) (state.Event, error) {
	since, err := time.Parse(time.RFC3339, w.job.Args["since"])
	if err != nil {
		return state.Event{}, fmt.Errorf("look for a twin of answer %q: %w", key, err)
	}
	number, err := strconv.Atoi(w.job.Args["number"])
	if err != nil {
		return state.Event{}, fmt.Errorf("look for a twin of answer %q: %w", key, err)
	}
	found, err := s.GitHub.FindReplies(ctx, w.repo, number, comment.Marker(key), since.Add(-lookBack))
	if err != nil {
		return state.Event{}, fmt.Errorf("look for a twin answer: %w", err)
	}
	if len(found) == 0 {
		return done(), nil
	}
	return done(), s.deleteReplies(ctx, w, found[1:])
}

// deleteReplies removes younger answers with the same marker.
func (s *Steps) deleteReplies(ctx context.Context, w *unit, twins []forge.Comment) error {
	for _, t := range twins {
		if err := s.GitHub.DeleteReply(ctx, w.repo, t.ID); err != nil {
			return fmt.Errorf("delete a twin answer: %w", err)
		}
	}
	return nil
}
