package watch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// talk is what people say to us, of which a webhook may be lost for good.
type talk interface {
	CommentsSince(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Spoken, error)
	Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error)
}

// lookBack is how much before the last look is looked again: lists lag behind, and clocks differ.
const lookBack = 2 * time.Minute

// looks says when the conversations of a task were last looked at, each: its pull request may be known later than its issue.
type looks struct{ issue, pull time.Time }

// swept is from when on what was said in a conversation of a task is looked at: since the last look, at first since the
// task began, as far back as deliveries are kept.
func (s *Sweeper) swept(t *state.Task, last time.Time) time.Time {
	since := s.cfg.Now().Add(-kept)
	if !last.IsZero() {
		since = last.Add(-lookBack)
	}
	if began := t.Trigger.At.Truncate(time.Second); since.Before(began) { // what was said before is in the discussion that the start reads
		since = began
	}
	return since
}

// discussed reports whether a comment of the second in which the task began, which is as fine as GitHub's
// times are, is in the discussion that the start has read.
func discussed(t *state.Task, c forge.Spoken) bool {
	return !c.At.After(t.Trigger.At) &&
		(slices.ContainsFunc(t.Context.Comments, func(said state.Said) bool { return said.ID == c.ID }) ||
			slices.ContainsFunc(t.Context.Withheld, func(w state.Withheld) bool { return w.ID == c.ID }))
}

// heard stores comments and reviews whose webhooks were lost, in the words of those webhooks. What is
// known already changes nothing: the store remembers the ids. now is when the issue and the pull request were read; a
// conversation counts as looked at once all that was said there is stored.
func (s *Sweeper) heard(ctx context.Context, t *state.Task, i forge.Issue, pr *forge.PR, now time.Time) error {
	last := s.looked[t.Key]
	if since := s.swept(t, last.issue); !i.UpdatedAt.Before(since) {
		if err := s.heardIn(ctx, t, i, t.Key.Issue, since, false); err != nil {
			return err
		}
	}
	last.issue = now
	s.looked[t.Key] = last
	if pr == nil {
		return nil
	}
	if since := s.swept(t, last.pull); !pr.UpdatedAt.Before(since) {
		if err := s.heardIn(ctx, t, i, pr.Number, since, true); err != nil {
			return err
		}
		if err := s.reviewed(ctx, t, pr.Number, since); err != nil {
			return err
		}
	}
	last.pull = now
	s.looked[t.Key] = last
	return nil
}

// heardIn stores the comments of one conversation. One that was edited is left out: what stands there
// may be somebody else's words, and the agent reads it in the discussion.
func (s *Sweeper) heardIn(ctx context.Context, t *state.Task, i forge.Issue, number int, since time.Time, onPR bool) error {
	list, err := s.cfg.GitHub.CommentsSince(ctx, forge.RepoOf(t), number, since)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.By.ID == s.cfg.BotID || c.Edited || t.Knows(fmt.Sprintf("comment:%d", c.ID)) || discussed(t, c) {
			continue
		}
		issue := issueJSON(i)
		issue["number"] = number
		if onPR {
			issue = map[string]any{"number": number, "pull_request": map[string]any{}}
		}
		err := s.insert(ctx, t, "issue_comment", "created", c.ID, c.By, map[string]any{"issue": issue, "comment": map[string]any{
			"id": c.ID, "node_id": c.Node, "body": c.Body, "user": personJSON(c.By), "created_at": c.At, "updated_at": c.At,
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// reviewed stores the reviews of a pull request.
func (s *Sweeper) reviewed(ctx context.Context, t *state.Task, number int, since time.Time) error {
	list, err := s.cfg.GitHub.Reviews(ctx, forge.RepoOf(t), number)
	if err != nil {
		return err
	}
	for _, v := range list {
		if v.By.ID == s.cfg.BotID || v.At.Before(since) || t.Knows(fmt.Sprintf("review-event:%d", v.ID)) {
			continue
		}
		err := s.insert(ctx, t, "pull_request_review", "submitted", v.ID, v.By, map[string]any{"pull_request": map[string]any{"number": number}, "review": map[string]any{
			"id": v.ID, "state": v.State, "body": v.Body, "submitted_at": v.At, "commit_id": v.Head, "user": personJSON(v.By),
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// insert stores the webhook that GitHub would have sent, once: its id is made from that of the thing.
func (s *Sweeper) insert(ctx context.Context, t *state.Task, event, action string, id int64, by state.Person, more map[string]any) error {
	guid := fmt.Sprintf("swept-%s-%d", event, id)
	known, err := s.cfg.Store.HasDelivery(ctx, guid)
	if known || err != nil {
		return err
	}
	r := t.Repo
	more["action"], more["sender"], more["installation"] = action, personJSON(by), map[string]any{"id": t.Installation}
	more["repository"] = map[string]any{
		"id": r.ID, "name": r.Name, "full_name": r.FullName(), "owner": map[string]any{"login": r.Owner}, "default_branch": r.DefaultBranch, "private": r.Private, "html_url": r.URL,
	}
	payload, err := json.Marshal(more)
	if err != nil {
		return fmt.Errorf("write a webhook down: %w", err)
	}
	if err := s.cfg.Inbox.Insert(ctx, guid, event, payload); err != nil {
		return err
	}
	s.cfg.Log.Info().Str("task", t.Key.String()).Str("delivery", guid).Str("by", by.Login).Msg("found what somebody said and no webhook had told")
	return nil
}

func personJSON(p state.Person) map[string]any {
	kind := "User"
	if p.Bot {
		kind = "Bot"
	}
	return map[string]any{"id": p.ID, "login": p.Login, "type": kind}
}

func issueJSON(i forge.Issue) map[string]any {
	labels := []any{}
	for _, l := range i.Labels {
		labels = append(labels, map[string]any{"name": l})
	}
	open := map[bool]string{true: "closed", false: "open"}
	return map[string]any{
		"node_id": i.Node, "title": i.Title, "body": i.Body, "user": personJSON(i.Author), "labels": labels, "state": open[i.Closed],
	}
}
