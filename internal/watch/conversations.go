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

// readOverlap is the overlap of consecutive reads, because lists lag behind and clocks differ.
const readOverlap = 2 * time.Minute

// readTimes holds when the conversations of a task were last read. The pull request may become known later than the
// issue, and a task that begins again gets another one.
type readTimes struct {
	issue, pull time.Time
	number      int    // of the pull request
	undecided   string // the head whose undecided checks were reported
}

// readSince returns the time from which comments in a conversation are read: the last read, or at first the start of
// the task, limited to the time for which deliveries are kept.
func (s *Sweeper) readSince(t *state.Task, last time.Time) time.Time {
	since := s.cfg.Now().Add(-deliveryRetention)
	if !last.IsZero() {
		since = last.Add(-readOverlap)
	}
	// Earlier comments are in the discussion that the start step reads.
	if began := t.Trigger.At.Truncate(time.Second); since.Before(began) {
		since = began
	}
	return since
}

// isInDiscussion reports whether the discussion that the start step read contains a comment made in the second in which the
// task began. GitHub's times are in seconds.
func isInDiscussion(t *state.Task, c forge.Comment) bool {
	return !c.CreatedAt.After(t.Trigger.At) &&
		(slices.ContainsFunc(t.Context.Comments, func(said state.DiscussionComment) bool { return said.ID == c.ID }) ||
			slices.ContainsFunc(t.Context.Withheld, func(w state.Withheld) bool { return w.ID == c.ID }))
}

// storeLostConversation stores comments and reviews whose webhooks were lost, as those webhooks. The store ignores known IDs.
// now is the time when the issue and the pull request were read; a conversation counts as read once all its comments
// are stored.
func (s *Sweeper) storeLostConversation(ctx context.Context, t *state.Task, i forge.Issue, pr *forge.PR, now time.Time) error {
	last := s.lastRead[t.Key]
	if since := s.readSince(t, last.issue); !i.UpdatedAt.Before(since) {
		if err := s.storeLostComments(ctx, t, i, t.Key.Issue, since, false); err != nil {
			return err
		}
	}
	last.issue = now
	s.lastRead[t.Key] = last
	if pr == nil {
		return nil
	}
	if last.number != pr.Number {
		last.number, last.pull = pr.Number, time.Time{}
	}
	if since := s.readSince(t, last.pull); !pr.UpdatedAt.Before(since) {
		if err := s.storeLostComments(ctx, t, i, pr.Number, since, true); err != nil {
			return err
		}
		if err := s.storeLostReviews(ctx, t, pr.Number, since); err != nil {
			return err
		}
	}
	last.pull = now
	s.lastRead[t.Key] = last
	return nil
}

// storeLostComments stores the comments of one conversation except edited ones: their text may be another person's, and
// the agent reads them in the discussion.
func (s *Sweeper) storeLostComments(ctx context.Context, t *state.Task, i forge.Issue, number int, since time.Time, onPR bool) error {
	list, err := s.cfg.GitHub.CommentsSince(ctx, forge.RepoOf(t), number, since)
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.Author.ID == s.cfg.BotID || !c.EditedAt.IsZero() || t.HasSeen(fmt.Sprintf("comment:%d", c.ID)) || isInDiscussion(t, c) {
			continue
		}
		issue := map[string]any{"number": number, "pull_request": map[string]any{}}
		if !onPR {
			if issue, err = s.issueAt(ctx, t, i, c.CreatedAt); err != nil {
				return err
			}
		}
		payload := map[string]any{"issue": issue, "comment": map[string]any{
			"id": c.ID, "node_id": c.Node, "body": c.Body, "user": personJSON(c.Author), "created_at": c.CreatedAt, "updated_at": c.CreatedAt,
		}}
		err := s.insertWebhook(ctx, t, lostWebhook{event: "issue_comment", action: "created", id: c.ID, by: c.Author, payload: payload})
		if err != nil {
			return err
		}
	}
	return nil
}

// issueAt returns an issue as a webhook about a comment shows it. If its title or text may have changed since the comment, they are left out:
// who wrote the comment has not seen them.
func (s *Sweeper) issueAt(ctx context.Context, t *state.Task, i forge.Issue, at time.Time) (map[string]any, error) {
	changed, err := s.changedSince(ctx, forge.RepoOf(t), i, at)
	if err != nil {
		return nil, err
	}
	issue := issueJSON(i)
	issue["number"] = i.Number
	if changed {
		delete(issue, "title")
		delete(issue, "body")
	}
	return issue, nil
}

// storeLostReviews stores the reviews of a pull request.
func (s *Sweeper) storeLostReviews(ctx context.Context, t *state.Task, number int, since time.Time) error {
	list, err := s.cfg.GitHub.Reviews(ctx, forge.RepoOf(t), number)
	if err != nil {
		return err
	}
	for _, v := range list {
		if v.By.ID == s.cfg.BotID || v.At.Before(since) || t.HasSeen(fmt.Sprintf("review-event:%d", v.ID)) {
			continue
		}
		payload := map[string]any{"pull_request": map[string]any{"number": number}, "review": map[string]any{
			"id": v.ID, "state": v.State, "body": v.Body, "submitted_at": v.At, "commit_id": v.Head, "user": personJSON(v.By),
		}}
		err := s.insertWebhook(ctx, t, lostWebhook{event: "pull_request_review", action: "submitted", id: v.ID, by: v.By, payload: payload})
		if err != nil {
			return err
		}
	}
	return nil
}

// lostWebhook is a webhook about a comment or a review that GitHub sent but errand did not receive.
type lostWebhook struct {
	event, action string
	id            int64 // of the comment or review
	by            state.Person
	payload       map[string]any // the fields that differ between events
}

// insertWebhook stores the webhook that GitHub would have sent about a task. Its delivery ID is derived from the ID of
// the comment or review, so that it is stored once.
func (s *Sweeper) insertWebhook(ctx context.Context, t *state.Task, w lostWebhook) error {
	guid := fmt.Sprintf("swept-%s-%d", w.event, w.id)
	known, err := s.cfg.Store.HasDelivery(ctx, guid)
	if known || err != nil {
		return err
	}
	w.payload["action"], w.payload["sender"], w.payload["installation"] = w.action, personJSON(w.by), map[string]any{"id": t.Installation}
	w.payload["repository"] = repoJSON(t.Repo)
	payload, err := json.Marshal(w.payload)
	if err != nil {
		return fmt.Errorf("store a webhook: %w", err)
	}
	if err := s.cfg.Inbox.Insert(ctx, guid, w.event, payload); err != nil {
		return err
	}
	s.cfg.Log.Info().Str("task", t.Key.String()).Str("delivery", guid).Str("by", w.by.Login).Msg("found a comment or review whose webhook was lost")
	return nil
}

func repoJSON(r state.Repo) map[string]any {
	return map[string]any{
		"id": r.ID, "name": r.Name, "full_name": r.FullName(), "owner": map[string]any{"login": r.Owner},
		"default_branch": r.DefaultBranch, "private": r.Private, "html_url": r.URL,
	}
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
