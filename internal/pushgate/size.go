package pushgate

import (
	"fmt"

	"github.com/errand-bot/errand/internal/changeset"
)

// checkSize enforces the limits on commits, paths and bytes. It counts each path and each new blob once, however many
// commits change it.
func checkSize(s *subject) []Refusal {
	paths := map[string]bool{}
	blobs := map[string]bool{}
	var bytes int64
	s.eachChange(func(_ checkedCommit, change changeset.Change) {
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
	top, own := s.policy.Operator, s.policy.Repository
	if most := effectiveLimit(int64(top.MaxPaths), int64(own.MaxPaths)); int64(len(paths)) > most {
		refuse(fmt.Sprintf("%d paths differ, and at most %d may", len(paths), most),
			withSuggestions("leave out generated files and dependencies, or split the work into several issues",
				suggestRaise("max_paths", int64(len(paths)), CeilingPaths, int64(top.MaxPaths), int64(own.MaxPaths))...))
	}
	if most := effectiveLimit(top.MaxBytes, own.MaxBytes); bytes > most {
		refuse(fmt.Sprintf("%.1f MB of new content, and at most %.1f MB are allowed", megabytes(bytes), megabytes(most)),
			withSuggestions("leave out binaries and generated files", suggestRaise("max_bytes", bytes, CeilingBytes, top.MaxBytes, own.MaxBytes)...))
	}
	return refusals
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

// effectiveLimit returns the repository's limit if it is set and below the operator's, else the operator's.
func effectiveLimit(operators, own int64) int64 {
	if own > 0 {
		return min(operators, own)
	}
	return operators
}

// suggestRaise returns the settings that have to be raised to allow need, or nil if need exceeds the ceiling.
func suggestRaise(key string, need, ceiling, operators, own int64) (needed []suggestion) {
	if need > ceiling {
		return nil
	}
	if need > operators {
		needed = append(needed, suggestion{key: key, value: fmt.Sprint(need), operator: true})
	}
	if own > 0 && need > own {
		needed = append(needed, suggestion{key: key, value: fmt.Sprint(need)})
	}
	return needed
}
