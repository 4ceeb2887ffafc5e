package step

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// LookBack is how much earlier than the first attempt at a job its comment may have been created by GitHub's clock.
const LookBack = 2 * time.Minute

// A View says how this deployment's comments are rendered.
type View struct {
	GitHub Self
	Now    func() time.Time
	// StatusURL returns the address of a task's page; it may be nil.
	StatusURL func(*state.Task) string
}

// Self reads who the App is on GitHub.
type Self interface {
	Self(ctx context.Context) (forge.App, error)
}

// Read returns the view for a comment that is rendered now.
func (v *View) Read(ctx context.Context) (comment.View, error) {
	self, err := v.GitHub.Self(ctx)
	if err != nil {
		return comment.View{}, err
	}
	return comment.View{Slug: self.Slug, Now: v.Now(), LogURL: v.StatusURL}, nil
}

// Vars returns the values for the templates of branches, commits and titles.
func Vars(t *state.Task, ticket string, redact *trust.Redactor) naming.Values {
	title := t.Frozen.Title
	if t.Work != nil && t.Work.Title != "" {
		title = t.Work.Title
	}
	name, _ := redact.Redact(t.Frozen.Title) // in a slug a secret would no longer be recognized
	title, _ = redact.Redact(title)
	ticket, _ = redact.Redact(ticket)
	return naming.Values{Key: ticket, Number: t.Key.Issue, Slug: naming.Slug(name), Task: title}
}

// Shown returns a person's text as the agent may see it: without hidden content and secrets.
func Shown(text string, redact *trust.Redactor) string {
	text, _ = trust.Strip(text)
	text, _ = redact.Redact(text)
	return text
}

// Count returns a number with its noun, such as "2 commits".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
