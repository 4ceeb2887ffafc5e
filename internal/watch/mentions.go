package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// storeLostMentions stores new issues whose text mentions errand and that have no task, as the webhooks that were lost. The first
// sweep of a process goes back as far as GitHub keeps deliveries, but not to the time before errand watched the repository.
func (s *Sweeper) storeLostMentions(ctx context.Context, p place) error {
	if s.cfg.Slug == "" {
		return nil
	}
	now := s.cfg.Now()
	since := now.Add(-deliveryRetention)
	if last, ok := s.mentionsRead[p.repo.ID]; ok {
		since = last.Add(-readOverlap)
	}
	if began := s.since.Repos[p.repo.ID][mentionName]; since.Before(began) {
		since = began
	}
	issues, err := s.cfg.GitHub.OpenIssuesFor(ctx, p.forgeRepo(), forge.IssueFilter{Since: since})
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range issues {
		if i.CreatedAt.Before(since) || i.Author.ID == s.cfg.BotID || !command.Parse(i.Body, s.cfg.Slug, false).Mention {
			continue
		}
		var limit *forge.LimitError
		err := s.storeLostMention(ctx, p, i)
		if errs = append(errs, err); errors.As(err, &limit) || ctx.Err() != nil {
			break // the limit affects the others, too
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.mentionsRead[p.repo.ID] = now
	return nil
}

// storeLostMention stores the webhook of one issue, once. If somebody other than the author has edited its text, the mention may be
// that person's: it starts nothing then.
func (s *Sweeper) storeLostMention(ctx context.Context, p place, i forge.Issue) error {
	guid := fmt.Sprintf("swept-issues-%d-%d", p.repo.ID, i.Number)
	known, err := s.cfg.Store.HasDelivery(ctx, guid)
	if known || err != nil {
		return err
	}
	if t, err := s.cfg.Store.Task(ctx, state.TaskKey{Repo: p.repo.ID, Issue: i.Number}); t != nil || err != nil {
		return err
	}
	text, err := s.cfg.GitHub.IssueText(ctx, p.forgeRepo(), i.Node)
	if err != nil {
		return fmt.Errorf("check for edits of %s#%d: %w", p.repo.FullName(), i.Number, err)
	}
	if !text.EditedAt.IsZero() && (text.Editor == nil || text.Editor.ID != i.Author.ID) {
		return nil
	}
	issue := issueJSON(i)
	issue["number"] = i.Number
	issue["created_at"], issue["updated_at"] = i.CreatedAt.UTC().Format(time.RFC3339), i.UpdatedAt.UTC().Format(time.RFC3339)
	payload, err := json.Marshal(map[string]any{
		"action": "opened", "issue": issue, "sender": personJSON(i.Author),
		"installation": map[string]any{"id": p.installation}, "repository": repoJSON(p.repo),
	})
	if err != nil {
		return fmt.Errorf("store a webhook: %w", err)
	}
	if err := s.cfg.Inbox.Insert(ctx, guid, "issues", payload); err != nil {
		return err
	}
	s.cfg.Log.Info().Str("repository", p.repo.FullName()).Int("issue", i.Number).Str("by", i.Author.Login).
		Msg("found a mention whose webhook was lost")
	return nil
}
