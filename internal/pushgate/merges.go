package pushgate

import (
	"fmt"

	"github.com/errand-bot/errand/internal/changeset"
)

// judgeMerges demands one chain of commits from Base. The only other parent that a commit may have
// is one allowed commit of the base branch, in second place.
func judgeMerges(s *subject) []Refusal {
	var refusals []Refusal
	refuse := func(commit *changeset.Commit, detail, remedy string) {
		refusals = append(refusals, Refusal{
			Rule: RuleMerges, Detail: fmt.Sprintf("commit %s %s", shortID(commit.ID), detail), Remedy: remedy,
		})
	}
	previous := s.cs.Base
	for _, j := range s.commits {
		parents := j.commit.Parents
		switch {
		case len(parents) == 0 || parents[0] != previous:
			refuse(j.commit, "does not follow on the commit before it", "commit on top of the branch as it was checked out")
		case len(parents) > 2:
			refuse(j.commit, fmt.Sprintf("merges %d branches at once", len(parents)-1), "merge the base branch alone, or rebase onto it")
		case len(parents) == 2 && j.merged == nil:
			refuse(j.commit, fmt.Sprintf("merges %s, which is not an allowed commit of the base branch", shortID(parents[1])),
				"rebase the commits instead of merging, or merge the base branch only")
		}
		previous = j.commit.ID
	}
	return refusals
}
