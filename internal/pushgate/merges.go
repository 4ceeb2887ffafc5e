package pushgate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
)

// Merge describes the commit of the base branch that may be merged, as the orchestrator read it. The zero value allows
// no merge.
type Merge struct {
	// Commit is the commit's id.
	Commit string
	// Tree is the commit's tree.
	Tree Tree
	// Fork is the tree of the merge base of the changeset's base and the base branch. Without it, every path that
	// differs between the two counts as changed on both sides.
	Fork Tree
}

// allows reports whether a commit merges exactly the allowed commit.
func (m Merge) allows(commit *changeset.Commit) bool {
	return m.Commit != "" && m.Tree != nil && len(commit.Parents) == 2 && commit.Parents[1] == m.Commit
}

// collectMergeChanges adds the changes of an allowed merge that need judging: the paths whose result differs from that
// of a three-way merge. This includes a path where the merge drops the base branch's change, although the commit does
// not differ from its first parent there.
func (s *subject) collectMergeChanges(j *checkedCommit, fork, ours Tree) {
	j.undone = map[string]bool{}
	paths := map[string]bool{}
	for _, tree := range []Tree{ours, j.merged, s.final} {
		for path := range tree {
			paths[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		was, theirs, is := ours[path], j.merged[path], s.final[path]
		if expected, _ := changeset.MergePath(fork[path], was, theirs); is == expected {
			continue
		}
		j.undone[path] = theirs != fork[path] && (is == was || is == fork[path])
		old := was
		if is == was { // the merge reverts the base branch's change
			old = theirs
			j.before[path] = theirs.Blob
		}
		j.changes = append(j.changes, changeset.Change{Path: path, Mode: is.Mode, Blob: is.Blob, OldMode: old.Mode})
	}
}

// Undone returns the paths whose change on the base branch is dropped by a merge in cs and is still missing at the end,
// sorted.
func Undone(cs *changeset.Changeset, policy Policy) []string {
	s := newSubject(cs, policy)
	undone := map[string]bool{}
	for _, j := range s.commits {
		for path := range j.undone {
			if j.undone[path] && s.final[path] != j.merged[path] {
				undone[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(undone))
}

// checkMerges requires one chain of commits from Base. The only other parent that a commit may have is the allowed
// commit of the base branch, in second place.
func checkMerges(s *subject) []Refusal {
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
			remedy := "rebase the commits instead of merging"
			if s.policy.Merge.Commit == "" {
				remedy += "; or, to merge the base branch, `.errand.yml` of the default branch can say `merge_commits: true`, then comment `replan`"
			} else {
				remedy += ", or merge the base branch only"
			}
			refuse(j.commit, fmt.Sprintf("merges %s, which is not an allowed commit of the base branch", shortID(parents[1])), remedy)
		}
		previous = j.commit.ID
	}
	return refusals
}
