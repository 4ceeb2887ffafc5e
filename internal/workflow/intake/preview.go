package intake

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Preview completes a task that does not exist yet, whose frozen text the operator vouches for, with the texts and the settings with
// which it would begin. It returns the condition that its start would wait for, or else the questions that it would ask. It only reads.
func (s *Steps) Preview(ctx context.Context, t *state.Task, i forge.Issue) ([]*state.Waiting, error) {
	w := &step.Attempt{Task: t, Repo: forge.RepoOf(t), Log: zerolog.Ctx(ctx)}
	out, err := s.GitHub.IssueSnapshot(ctx, w.Repo, t.Key.Issue, step.ConfigFile)
	if err != nil {
		return nil, fmt.Errorf("read the discussion: %w", err)
	}
	repoSettings, waiting := s.Settings.Of(t.Repo.FullName(), out)
	if waiting != nil && waiting.Kind == state.WaitConfig {
		repoSettings = s.Settings.Defaults
	}
	view, err := s.visible(ctx, w, repoSettings, out)
	if err != nil {
		return nil, fmt.Errorf("decide what the agent may see: %w", err)
	}
	t.Settings, t.Context = repoSettings, s.context(t, view)
	if waiting == nil {
		waiting, err = step.MissingPermissions(ctx, s.GitHub, w)
	}
	if waiting == nil && err == nil {
		waiting, err = s.blocked(ctx, w, i, view)
	}
	if err != nil {
		return nil, err
	}
	if waiting != nil {
		return []*state.Waiting{waiting}, nil
	}
	return s.askedFirst(ctx, w, out.Linked)
}

// askedFirst returns the questions that the start of a task would ask, as what it would wait for.
func (s *Steps) askedFirst(ctx context.Context, w *step.Attempt, linked []forge.LinkedPR) (waits []*state.Waiting, err error) {
	w.Task.Gen = 1
	list, err := s.questions(ctx, w, &event.Start{Settings: w.Task.Settings, Context: w.Task.Context}, linked)
	for _, q := range list {
		detail := "the repository requires a ticket key in the form " + q.Text + ", and the issue has none"
		if q.Kind == state.AskExisting {
			detail = "work by others may be on this issue already, and somebody with write access has to say whether to go on: " + q.Text
		}
		waits = append(waits, &state.Waiting{Detail: detail})
	}
	return waits, err
}
