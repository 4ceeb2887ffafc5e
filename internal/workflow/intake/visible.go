package intake

import (
	"context"
	"slices"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// visible returns the part of the issue and its discussion that the agent may see.
func (s *Steps) visible(ctx context.Context, w *step.Attempt, repoSettings settings.Settings, out forge.IssueSnapshot) (trust.View, error) {
	t := w.Task
	issue := trust.Issue{Title: t.Frozen.Title, Comment: out.Text, VouchedBy: t.Frozen.By}
	issue.Body = t.Frozen.Body // the frozen text, even if it has changed
	return s.decide(ctx, w, repoSettings, issue, out.Comments)
}

// permissionsOf answers for permissions on the repository of a job's task.
type permissionsOf struct {
	steps   *Steps
	attempt *step.Attempt
}

// Permission returns a person's permission there.
func (p permissionsOf) Permission(ctx context.Context, who state.Person) (state.Permission, error) {
	return p.steps.permission(ctx, p.attempt, who)
}

// decide returns the part of an issue and its comments that a task's agent may see.
func (s *Steps) decide(ctx context.Context, w *step.Attempt, repoSettings settings.Settings, issue trust.Issue, comments []trust.Comment) (trust.View, error) {
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return trust.View{}, err
	}
	return trust.Decide(ctx, issue, comments, permissionsOf{s, w}, trust.Policy{
		Self: me.BotID, Allowed: slices.Concat(s.AllowUsers, repoSettings.AllowUsers), Bots: slices.Concat(s.AllowBots, repoSettings.AllowBots), Redactor: s.Redact,
	})
}
