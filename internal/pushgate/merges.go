package pushgate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
)

// Merge is the commit of the base branch that may be merged in, as the orchestrator read it. The zero
// value allows no merge.
type Merge struct {
	// Commit is its id.
	Commit string
	// Tree is its tree.
	Tree Tree
	// Fork is the tree of the commit at which the changeset's base and the base branch parted. Without it,
	// every path that differs between the two counts as changed on both sides.
	Fork Tree
}

// allows reports whether a commit is a merge of nothing but the allowed commit.
func (m Merge) allows(commit *changeset.Commit) bool {
	return m.Commit != "" && m.Tree != nil && len(commit.Parents) == 2 && commit.Parents[1] == m.Commit
}

// takeMerge finds the changes of an allowed merge that count: each path whose result is not the one of a
// three-way merge. A path that the base branch changed and that the result has as it was before is
// such a change, although the commit does not differ from its first parent there.
func (s *subject) takeMerge(j *judged, fork, ours Tree) {
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
		if is == was { // the change is the base branch's, taken back
			old = theirs
			j.before[path] = theirs.Blob
		}
		j.changes = append(j.changes, changeset.Change{Path: path, Mode: is.Mode, Blob: is.Blob, OldMode: old.Mode})
	}
}

// Undone lists the paths that the base branch changed and whose change a merge in cs leaves out, also in
// the end.
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
