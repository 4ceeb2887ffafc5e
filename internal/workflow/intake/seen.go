package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/callback"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// Seen returns the text of an issue or pull request of a task's repository and its discussion, including reviews, as
// far as the task's agent may see them: text that people with write permission wrote or vouched for. The errors are
// those of package callback.
func (s *Steps) Seen(ctx context.Context, t *state.Task, number int) (string, error) {
	w := &step.Attempt{Task: t, Repo: forge.RepoOf(t)}
	i, err := s.GitHub.Issue(ctx, w.Repo, number)
	if errors.Is(err, forge.ErrNotFound) {
		return "", callback.ErrUnknown
	}
	if err != nil {
		return "", fmt.Errorf("read the issue: %w", err)
	}
	d, err := s.discussion(ctx, w, i)
	if err != nil {
		return "", fmt.Errorf("read the discussion: %w", err)
	}
	view, err := s.decide(ctx, w, t.Settings, trust.Issue{Title: i.Title, Comment: d.text}, d.said)
	if err != nil {
		return "", fmt.Errorf("decide what the agent may see: %w", err)
	}
	if view.Empty() {
		return "", callback.ErrNotVisible
	}
	return d.show(number, view), nil
}

// discussion is the conversation of an issue or a pull request.
type discussion struct {
	text    trust.Comment
	said    []trust.Comment
	remarks map[string]*forge.PullComment // those of a pull request, by GraphQL id
	more    bool                          // there is more
}

// show renders the visible part of the discussion.
func (d *discussion) show(number int, view trust.View) string {
	var b strings.Builder
	trusted := view.ShowsIssue && view.IssueVouchedBy.ID == 0
	switch {
	case trusted:
		fmt.Fprintf(&b, "#%d: %s\n\n%s\n", number, view.Title, view.Body)
	case view.ShowsIssue:
		fmt.Fprintf(&b, "#%d: its title is withheld, because it may have changed since its text was approved\n\n%s\n", number, view.Body)
	default:
		fmt.Fprintf(&b, "#%d: its title and text are withheld\n", number)
	}
	for _, c := range view.Comments {
		where := ""
		if said := whereOf(d.remarks[c.Node], trusted); said != "" {
			where = ", " + said
		}
		fmt.Fprintf(&b, "\n%s at %s%s:\n\n%s\n", c.Author.Login, c.At.UTC().Format("2006-01-02 15:04 UTC"), where, c.Body)
	}
	if n := len(view.Withheld); n > 0 {
		fmt.Fprintf(&b, "\n(%d texts by others are withheld)\n", n)
	}
	if d.more {
		b.WriteString("\n(this is the beginning of a longer discussion)\n")
	}
	return b.String()
}

// whereOf describes which part of a pull request a text belongs to, "" for the conversation. Names of files come from
// the author of the pull request, so they are left out unless that person is trusted.
func whereOf(r *forge.PullComment, trusted bool) string {
	if r == nil {
		return ""
	}
	th := r.Thread
	if th == nil {
		return map[string]string{
			"APPROVED": "in a review that approves", "CHANGES_REQUESTED": "in a review that asks for changes",
			"COMMENTED": "in a review", "DISMISSED": "in a review that was dismissed",
		}[r.Review]
	}
	path := "a file whose name is withheld"
	if trusted {
		path, _ = trust.StripLine(th.Path)
	}
	where := "on " + path
	if th.Line > 0 {
		where = fmt.Sprintf("on line %d of %s", th.Line, path)
	}
	if th.Outdated {
		where += " on an older version"
	}
	if th.Resolved {
		where += ", resolved"
	}
	return where
}

// discussion reads the text of an issue or a pull request and its comments, of a pull request its reviews as well.
func (s *Steps) discussion(ctx context.Context, w *step.Attempt, i forge.Issue) (discussion, error) {
	d := discussion{remarks: map[string]*forge.PullComment{}}
	if !i.IsPR {
		out, err := s.GitHub.IssueSnapshot(ctx, w.Repo, i.Number, step.ConfigFile)
		d.text, d.said = out.Text, out.Comments
		return d, err
	}
	pull, err := s.GitHub.PullText(ctx, w.Repo, i.Number)
	d.text, d.more = pull.Text, pull.Truncated
	for i := range pull.Comments {
		said := pull.Comments[i].Comment
		d.said, d.remarks[said.Node] = append(d.said, said), &pull.Comments[i]
	}
	return d, err
}
