package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"github.com/errand-bot/errand/state"
)

// Diffs opens the diff of a changeset that was posted for approval. Its error for a missing or deleted diff is
// fs.ErrNotExist.
type Diffs interface {
	OpenDiff(ref string) (*os.File, error)
}

// changes serves the full diff of a revision of changes as text.
func (p *pages) changes(w http.ResponseWriter, r *http.Request) {
	t := taskOf(r)
	c := changesOf(t, r.PathValue("hash"))
	if c == nil || p.cfg.Diffs == nil {
		p.problem(w, r, http.StatusNotFound, "The task has no changes with this hash.")
		return
	}
	f, err := p.cfg.Diffs.OpenDiff(c.Ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.problem(w, r, http.StatusNotFound, "The diff has been deleted.")
		return
	case err != nil:
		p.fail(w, r, fmt.Errorf("open the diff of %s: %w", c.Ref, err))
		return
	}
	defer func() { _ = f.Close() }()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err := sendFile(w, r, f); err != nil && r.Context().Err() == nil {
		p.cfg.Log.Warn().Err(err).Msg("failed to send a diff")
	}
}

// changesOf finds a revision of changes by its hash.
func changesOf(t *state.Task, hash string) *state.Changes {
	for i := range t.Plans {
		if p := &t.Plans[i]; p.Hash == hash || p.Short() == hash {
			return t.Plans[i].Publish
		}
	}
	return nil
}
