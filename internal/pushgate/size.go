package pushgate

import (
	"fmt"

	"github.com/errand-bot/errand/internal/changeset"
)

// judgeSize counts paths once however many commits change them, and each new blob once.
func judgeSize(s *subject) []Refusal {
	paths := map[string]bool{}
	blobs := map[string]bool{}
	var bytes int64
	s.each(func(_ judged, change changeset.Change) {
		paths[change.Path] = true
		if change.Deleted() || blobs[change.Blob] {
			return
		}
		blobs[change.Blob] = true
		bytes += int64(len(s.cs.Blobs[change.Blob]))
	})
	var refusals []Refusal
	refuse := func(detail, remedy string) {
		refusals = append(refusals, Refusal{Rule: RuleSize, Detail: detail, Remedy: remedy})
	}
	if len(s.commits) > s.policy.MaxCommits {
		refuse(fmt.Sprintf("%d commits, and at most %d are allowed", len(s.commits), s.policy.MaxCommits), "squash them into fewer")
	}
	if len(paths) > s.policy.MaxPaths {
		refuse(fmt.Sprintf("%d paths differ, and at most %d may", len(paths), s.policy.MaxPaths),
			"leave out generated files and dependencies, or split the work into several issues")
	}
	if bytes > s.policy.MaxBytes {
		refuse(fmt.Sprintf("%.1f MB of new content, and at most %.1f MB are allowed", mb(bytes), mb(s.policy.MaxBytes)),
			"leave out binaries and generated files")
	}
	return refusals
}

func mb(n int64) float64 { return float64(n) / (1 << 20) }
