package intake

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment/command"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Vet asks GitHub for the permission of an event's sender, and returns the event with the answer. Bots
// have none unless they are listed; a listed one needs write permission like anybody.
func (s *Steps) Vet(ctx context.Context, w *step.Attempt) (event.Event, error) {
	var e event.Event
	if err := json.Unmarshal(w.Job.Event, &e); err != nil {
		return event.Event{}, fmt.Errorf("read the event of a vet job: %w", err)
	}
	if e.By.Bot && !trust.ListedBot(s.AllowBots, e.By) {
		e.Permission = state.PermissionNone
		return e, nil
	}
	repo := w.Repo
	if w.Task == nil {
		repo = forge.Repo{Installation: e.Installation, Owner: e.Repo.Owner, Name: e.Repo.Name, ID: e.Repo.ID}
	}
	at := s.Now()
	p, err := s.GitHub.Permission(ctx, repo, e.By.Login, e.By.ID)
	if err != nil {
		return event.Event{}, step.Retryable(fmt.Errorf("vet %s of @%s: %w", e.Kind(), e.By.Login, err))
	}
	e.Permission, e.Vetted = p, &state.Vetted{By: e.By, Permission: p, At: at}
	if c := e.Comment(); p.CanWrite() && c != nil && c.InIssue {
		return s.rereadIssue(ctx, repo, e)
	}
	if p.CanWrite() && acts(e) {
		base := ""
		if w.Task != nil {
			base = w.Task.Branch.Base
		}
		if e, err = s.reread(ctx, repo, e, base); err != nil {
			return event.Event{}, err
		}
		return s.noteClosedIssue(ctx, repo, e)
	}
	return e, nil
}

// noteClosedIssue adds to a `restart` on a pull request that the issue is closed: nothing can begin again then.
func (s *Steps) noteClosedIssue(ctx context.Context, repo forge.Repo, e event.Event) (event.Event, error) {
	p := event.Of[event.Commented](e)
	if p.Issue != nil || !slices.ContainsFunc(p.Orders, func(o state.Order) bool { return o.Verb == state.VerbRestart }) {
		return e, nil
	}
	i, err := s.GitHub.Issue(ctx, repo, e.Task.Issue)
	if err != nil {
		return event.Event{}, step.Retryable(fmt.Errorf("read the issue of @%s's command: %w", e.By.Login, err))
	}
	if i.Closed {
		p.Issue = &state.Issue{Closed: true}
		e.Payload = p
	}
	return e, nil
}

// permissionFresh is how long the answer about an event's sender serves the jobs that the event queued.
const permissionFresh = time.Minute

// permission returns a person's permission: the answer that was read for the event that queued this job, while it
// is fresh, else GitHub's present one.
func (s *Steps) permission(ctx context.Context, w *step.Attempt, who state.Person) (state.Permission, error) {
	if w.VettedWithin(permissionFresh, who.ID, s.Now()) {
		return w.Job.Vetted.Permission, nil
	}
	return s.GitHub.Permission(ctx, w.Repo, who.Login, who.ID)
}

// acts reports whether a comment has effects that its author may no longer want after deleting or editing it. Replies
// have no such effect, and the comment with an approval is read again when the approval is checked.
func acts(e event.Event) bool {
	p, ok := e.Payload.(event.Commented)
	return ok && p.Comment.Node != "" && (len(p.Orders) == 0 || slices.ContainsFunc(p.Orders, func(o state.Order) bool {
		switch o.Verb {
		case state.VerbHelp, state.VerbStatus, state.VerbUnknown:
			return false
		case state.VerbApprove:
			return o.With != "" // a change request, where changes wait to be published
		}
		return true
	}))
}

// reread compares a comment with its present state on GitHub: its webhook may have come late, and the comment may have
// been withdrawn meanwhile. If its author has edited a comment without commands, the new text counts as if it had been
// written so.
//
// Together with the comment it reads the newest commit of base, at which a run that the comment leads to may begin.
func (s *Steps) reread(ctx context.Context, repo forge.Repo, e event.Event, base string) (event.Event, error) {
	p := event.Of[event.Commented](e)
	now, head, err := s.GitHub.CommentAndHead(ctx, repo, p.Comment.Node, cmp.Or(base, "HEAD"))
	if err != nil {
		return event.Event{}, step.Retryable(fmt.Errorf("read the comment of @%s again: %w", e.By.Login, err))
	}
	if base != "" {
		e.Vetted.Base = head
	}
	c := *p.Comment
	switch {
	case now == nil || now.Minimized:
		c.Withdrawn = state.RejectedCommentDeleted
	case state.CommentHash(now.Body) == state.CommentHash(c.Body):
	case now.Author.ID != e.By.ID || now.Editor == nil || now.Editor.ID != e.By.ID || !onlyWords(p.Orders):
		c.Withdrawn = state.RejectedCommentEdited
	default:
		self, err := s.GitHub.Self(ctx)
		if err != nil {
			return event.Event{}, err
		}
		parsed := command.Parse(now.Body, self.Slug, c.OnPR)
		if !onlyWords(parsed.Orders) {
			c.Withdrawn = state.RejectedCommentEdited
			break
		}
		c.Body, c.Mention, c.Quoted, c.Words, c.Remark = now.Body, parsed.Mention, parsed.Quoted, parsed.Words, parsed.Remark
		p.Orders, p.Base = parsed.Orders, parsed.Base
	}
	p.Comment = &c
	e.Payload = p
	return e, nil
}

// rereadIssue withdraws a mention in an issue's text that is no longer there, or whose issue is gone: its webhook may have come
// late. Other edits are found by the job start.
func (s *Steps) rereadIssue(ctx context.Context, repo forge.Repo, e event.Event) (event.Event, error) {
	now, err := s.GitHub.Issue(ctx, repo, e.Task.Issue)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return event.Event{}, step.Retryable(fmt.Errorf("read the issue of @%s again: %w", e.By.Login, err))
	}
	self, selfErr := s.GitHub.Self(ctx)
	if selfErr != nil {
		return event.Event{}, selfErr
	}
	if err == nil && command.Parse(now.Body, self.Slug, false).Mention {
		return e, nil
	}
	p := event.Of[event.Commented](e)
	c := *p.Comment
	c.Withdrawn = state.RejectedCommentEdited
	p.Comment = &c
	e.Payload = p
	return e, nil
}

// maxReread is the maximum number of gathered comments that are read again; the newest are.
const maxReread = 30

// RereadGathered compares the gathered comments with their present state on GitHub. It returns those that were edited, deleted
// or hidden since: an edit by the author counts, any other withdraws the comment.
func (s *Steps) RereadGathered(ctx context.Context, w *step.Attempt) ([]state.Comment, error) {
	var changed []state.Comment
	left := maxReread
	for _, f := range slices.Backward(w.Task.Feedback) {
		id, isComment := strings.CutPrefix(f.ID, "comment:")
		n, err := strconv.ParseInt(id, 10, 64)
		if f.TakenBy != "" || !isComment || err != nil || f.Node == "" {
			continue
		}
		if left--; left < 0 {
			break
		}
		c, err := s.rereadGathered(ctx, w.Repo, f)
		if err != nil {
			return nil, step.Retryable(fmt.Errorf("read the comment of @%s again: %w", f.By.Login, err))
		}
		if c != nil {
			c.ID = n
			changed = append(changed, *c)
		}
	}
	return changed, nil
}

// rereadGathered returns the present form of one comment, or nil if it is unchanged.
func (s *Steps) rereadGathered(ctx context.Context, repo forge.Repo, f state.Feedback) (*state.Comment, error) {
	now, _, err := s.GitHub.CommentAndHead(ctx, repo, f.Node, "HEAD")
	switch {
	case err != nil:
		return nil, err
	case now == nil || now.Minimized:
		return &state.Comment{Withdrawn: state.RejectedCommentDeleted}, nil
	case now.Editor == nil:
		return nil, nil
	case now.Author.ID != f.By.ID || now.Editor.ID != f.By.ID:
		return &state.Comment{Withdrawn: state.RejectedCommentEdited}, nil
	}
	self, err := s.GitHub.Self(ctx)
	if err != nil {
		return nil, err
	}
	parsed := command.Parse(now.Body, self.Slug, f.OnPR)
	body := now.Body
	for _, o := range parsed.Orders {
		if o.Verb == state.VerbMessage { // commands in edited comments are not read
			body = o.Text
		}
	}
	return &state.Comment{Body: body, Mention: parsed.Mention, Remark: parsed.Remark}, nil
}

// onlyWords reports whether a comment gives no commands.
func onlyWords(orders []state.Order) bool {
	return !slices.ContainsFunc(orders, func(o state.Order) bool { return o.Verb != state.VerbMessage })
}
