package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
)

// largeFiles asks which of the large files that a changeset names, and does not bring, GitHub has already, such
// as one that an older commit had.
func (s *Steps) largeFiles(ctx context.Context, w *step.Attempt, cs *changeset.Changeset) (map[changeset.Pointer]bool, error) {
	var list []changeset.Pointer
	for p := range cs.Pointers() {
		if _, brought := cs.LFS[p.OID]; !brought {
			list = append(list, p)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b changeset.Pointer) int { return strings.Compare(a.OID, b.OID) })
	there, err := s.GitHub.LargeFiles(ctx, w.Repo, list)
	if err != nil {
		return nil, fmt.Errorf("list the large files that GitHub has: %w", err)
	}
	return there, nil
}

// uploadLargeFiles puts the large files of a changeset on GitHub, before any commit that points to them.
func (s *Steps) uploadLargeFiles(ctx context.Context, w *step.Attempt, cs *changeset.Changeset) error {
	if len(cs.LFS) == 0 {
		return nil
	}
	err := s.GitHub.UploadLargeFiles(ctx, w.Repo, cs.LFS)
	var refused *forge.LargeFileError
	if !errors.As(err, &refused) {
		return err
	}
	p := step.ProblemOf(err)
	for pointer, path := range cs.Pointers() {
		if pointer.OID == refused.OID {
			p.Reason = fmt.Sprintf("GitHub rejected the large file `%s`: %s.", path, refused.Message)
		}
	}
	p.Err = err
	return &p
}
