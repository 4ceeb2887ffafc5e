package publish

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// OpenPR opens the task's pull request, once, and asks for a review.
func (s *Steps) OpenPR(ctx context.Context, w *step.Attempt) (event.Event, error) {
	if isObsolete(w) {
		return s.opened(ctx, w)
	}
	if err := s.closeReplaced(ctx, w); err != nil {
		return event.Event{}, err
	}
	before, err := w.MarkAttempted(ctx)
	if err != nil {
		return event.Event{}, err
	}
	want, err := s.newPR(ctx, w)
	if err != nil {
		return event.Event{}, err
	}
	want.CheckExisting = before
	pr, err := s.GitHub.OpenPR(ctx, w.Repo, want)
	if err != nil {
		return event.Event{}, step.BranchGone(ctx, s.GitHub, w, fmt.Errorf("open the pull request: %w", err))
	}
	if w.Task.Settings.Draft != settings.DraftUntilGreen { // otherwise the review is requested when it is marked ready
		step.RequestReview(ctx, s.GitHub, w, pr.Number)
	}
	// If it was opened before, people may have said something there before the store knew of it.
	return event.Event{Payload: event.PROpened{PR: pr.State(), Searched: before, Head: pr.Head}}, nil
}

// newPR returns the text of the pull request.
func (s *Steps) newPR(ctx context.Context, w *step.Attempt) (forge.NewPR, error) {
	t := w.Task
	template, err := s.GitHub.PRTemplate(ctx, w.Repo, t.Repo.DefaultBranch)
	if err != nil {
		return forge.NewPR{}, fmt.Errorf("read the pull-request template: %w", err)
	}
	title, err := naming.Expand(t.Settings.Title, step.Vars(t, t.Ticket, s.Redact))
	if err != nil {
		return forge.NewPR{}, &step.Problem{Reason: "The title template cannot be used.", Hint: err.Error(), Class: state.ClassConfig, Permanent: true, Err: err}
	}
	v, err := s.View.Read(ctx)
	if err != nil {
		return forge.NewPR{}, err
	}
	v.Key = w.Job.Key
	summary := pushgate.StripTrailers(summaryOf(t.Work)) // it may become the message of a squashed commit, like the title
	body, _ := s.Redact.Redact(comment.PRBody(t, comment.PRInput{Template: template, Summary: summary, Checks: t.Work.Checks,
		Notes: t.Work.Notes}, v))
	title, _ = s.Redact.Redact(pushgate.SafeMessage(title, homeOf(t)))
	return forge.NewPR{Head: t.Branch.Name, Base: t.Branch.Base, Title: title, Body: body, Draft: t.Settings.Draft.OpensDraft()}, nil
}

// summaryOf returns the agent's description of its work.
func summaryOf(w *state.Work) string {
	if w.Text != "" {
		return mapIDs(w.Text, w.IDs)
	}
	return mapIDs(w.Summary, w.IDs)
}

// commitID matches text that looks like a commit id.
var commitID = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// mapIDs replaces the VM's commit ids in the agent's words by the published ones.
func mapIDs(text string, ids map[string]string) string {
	if len(ids) == 0 {
		return text
	}
	return commitID.ReplaceAllStringFunc(text, func(found string) string {
		for local, published := range ids {
			if strings.HasPrefix(local, found) {
				return published[:max(len(found), 7)]
			}
		}
		return found
	})
}
