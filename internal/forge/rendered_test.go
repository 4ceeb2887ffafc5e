package forge_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestRendered reads texts of all kinds as HTML.
func TestRendered(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	issue := forgetest.Must(w.As("wendy").OpenIssue(forgetest.FullName, simgithub.NewIssue{Title: "A bug", Body: "It <breaks> <!-- hidden -->"}))(t)
	comment := forgetest.Must(w.As("wendy").Comment(forgetest.FullName, issue.Number, "Often & soon"))(t)
	for name, tc := range map[string]struct {
		text forge.TextRef
		want string
	}{
		"an issue":  {forge.TextRef{Issue: issue.Number}, `<p dir="auto">It &lt;breaks&gt; </p>`},
		"a comment": {forge.TextRef{Comment: comment.ID}, `<p dir="auto">Often &amp; soon</p>`},
	} {
		if got := forgetest.Must(w.Forge.Rendered(t.Context(), w.Repo, tc.text))(t); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
	for name, text := range map[string]forge.TextRef{
		"an issue": {Issue: 999}, "a comment": {Comment: 999}, "a review": {Pull: 999, Review: 1}, "threads": {Pull: 999, Threads: true},
	} {
		if _, err := w.Forge.Rendered(t.Context(), w.Repo, text); !errors.Is(err, forge.ErrNotFound) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s that does not exist: %v", name, err)
		}
	}
}
