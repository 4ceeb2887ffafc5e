package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// blocked returns a Waiting if other issues must be closed first: GitHub's dependencies and sub-issues, and references
// in the comments of trusted people.
func (s *Steps) blocked(ctx context.Context, w *step.Attempt, i forge.Issue, v trust.View) (*state.Waiting, error) {
	t := w.Task
	var found []forge.Blocker
	if !i.NoRelations {
		var err error
		if found, err = s.GitHub.Blockers(ctx, w.Repo, t.Key.Issue); err != nil {
			return nil, fmt.Errorf("read the issue's blockers: %w", err)
		}
	}
	var open []string
	for _, b := range found {
		if b.Open {
			open = append(open, b.String())
		}
	}
	home := trust.IssueRef{Owner: t.Repo.Owner, Name: t.Repo.Name, Number: t.Key.Issue}
	texts := []string{v.Body}
	for _, c := range v.Comments {
		texts = append(texts, c.Body)
	}
	for _, ref := range trust.Blockers(strings.Join(texts, "\n\n"), home) {
		isOpen, err := s.GitHub.IssueState(ctx, t.Installation, ref.Owner, ref.Name, ref.Number)
		if errors.Is(err, forge.ErrNotFound) || refusedElsewhere(err, ref, home) {
			continue // a reference to an inaccessible issue is ignored
		}
		if err != nil {
			return nil, fmt.Errorf("read %s/%s#%d: %w", ref.Owner, ref.Name, ref.Number, err)
		}
		name := fmt.Sprintf("%s/%s#%d", ref.Owner, ref.Name, ref.Number)
		if isOpen && !slices.Contains(open, name) {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	return &state.Waiting{Kind: state.WaitBlocked, Detail: "blocked by " + strings.Join(open, ", "), Issues: open}, nil
}

// refusedElsewhere reports whether GitHub does not let the App read an issue of another repository: it need not be
// installed there, and the repository may have moved.
func refusedElsewhere(err error, ref, home trust.IssueRef) bool {
	if err == nil || errors.Is(err, forge.ErrNotInstalled) || strings.EqualFold(ref.Owner+"/"+ref.Name, home.Owner+"/"+home.Name) {
		return false
	}
	class, _ := forge.Classify(err)
	return class == forge.ClassPermanent || errors.Is(err, forge.ErrRenamed)
}
