package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// merge is the commit of the base branch that a changeset merges in: its tree, and the tree at the commit
// where the changeset's base and the base branch parted.
type merge struct {
	commit       string
	theirs, fork map[string]forge.TreeEntry
}

// mergeOf reads the trees that are needed to judge a merge of a commit into the changeset's base.
func (s *Steps) mergeOf(ctx context.Context, w *step.Attempt, base, commit string) (*merge, error) {
	m := &merge{commit: commit}
	var err error
	if m.theirs, err = s.GitHub.Tree(ctx, w.Repo, commit); err != nil {
		return nil, fmt.Errorf("read the tree of the merged commit: %w", err)
	}
	cmp, err := s.GitHub.ChangedSince(ctx, w.Repo, base, commit)
	switch {
	case errors.Is(err, forge.ErrNotFound) || err == nil && cmp.MergeBase == "":
		return m, nil // no common history: all differences count as changes on both sides
	case err != nil:
		return nil, fmt.Errorf("find the merge base: %w", err)
	}
	if m.fork, err = s.GitHub.Tree(ctx, w.Repo, cmp.MergeBase); err != nil {
		return nil, fmt.Errorf("read the tree of the merge base: %w", err)
	}
	return m, nil
}

// mergeable returns the commits of the base that the agent may merge, if the repository's settings allow merges or the agent was asked to
// resolve a conflict: the newest one, and the one that it was told. errand read both from GitHub.
func (s *Steps) mergeable(ctx context.Context, w *step.Attempt) (list []string, err error) {
	for _, f := range w.Task.Feedback {
		if f.Kind == state.FeedbackConflict && f.Base != "" {
			list = append(list, f.Base)
		}
	}
	if !w.Task.Settings.MergeCommits && len(list) == 0 {
		return nil, nil
	}
	newest, err := s.GitHub.Head(ctx, w.Repo, w.Task.Branch.Base)
	return append(list, newest), err
}

// secondParent is the commit that a changeset merges in, empty if it merges none. The push gate lets no
// changeset pass that merges two.
func secondParent(cs *changeset.Changeset) string {
	for _, c := range cs.Commits {
		if len(c.Parents) > 1 {
			return c.Parents[1]
		}
	}
	return ""
}

// maxUndone is how many paths a note about a merge names.
const maxUndone = 10

// undoneNote returns a note that names the changes of the base that a merge leaves out, "" for none.
func undoneNote(base string, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	named := make([]string, 0, maxUndone+1)
	for _, p := range paths[:min(len(paths), maxUndone)] {
		named = append(named, visible(p))
	}
	text := strings.Join(named, ", ")
	if more := len(paths) - len(named); more > 0 {
		text += " and " + step.Count(more, "more path")
	}
	return fmt.Sprintf("A merge leaves out what %s changed in %s.", base, text)
}
