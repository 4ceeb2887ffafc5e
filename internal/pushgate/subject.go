package pushgate

import (
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
)

// subject is a changeset prepared for the rules: the changes to judge, and the trees before and after each commit as
// far as they are known.
type subject struct {
	policy  Policy
	cs      *changeset.Changeset
	commits []checkedCommit
	// final is the known part of the base's tree with all changes applied.
	final Tree
	// touched lists the paths with at least one judged change that exist at the end.
	touched []string
	// blobs caches the result of published.
	blobs map[string]bool
}

// checkedCommit is one commit with the changes to judge: all of them, or, for an allowed merge, those that a three-way
// merge would not have made.
type checkedCommit struct {
	commit  *changeset.Commit
	changes []changeset.Change
	// before holds the ids of the known blobs that the commit replaces or deletes, by path.
	before map[string]string
	// merged is the tree of the allowed second parent, nil for an ordinary commit.
	merged Tree
	// undone holds the paths whose change on the base branch an allowed merge drops.
	undone map[string]bool
}

func newSubject(cs *changeset.Changeset, policy Policy) *subject {
	s := &subject{policy: policy.withDefaults(), cs: cs, final: Tree{}}
	maps.Copy(s.final, policy.Base)
	touched := map[string]bool{}
	fork := s.policy.Merge.Fork
	for i := range cs.Commits {
		j := s.applyCommit(&cs.Commits[i], fork)
		if j.merged != nil {
			fork = j.merged // a second merge of the same commit adds nothing
		}
		for _, change := range j.changes {
			touched[change.Path] = true
		}
		s.commits = append(s.commits, j)
	}
	for _, path := range slices.Sorted(maps.Keys(touched)) {
		if _, ok := s.final[path]; ok {
			s.touched = append(s.touched, path)
		}
	}
	return s
}

// applyCommit applies a commit to the final tree and returns it with the changes to judge.
func (s *subject) applyCommit(commit *changeset.Commit, fork Tree) checkedCommit {
	j := checkedCommit{commit: commit, before: map[string]string{}}
	var ours Tree
	if s.policy.Merge.allows(commit) {
		j.merged, ours = s.policy.Merge.Tree, maps.Clone(s.final)
	}
	for _, change := range commit.Changes {
		if old, ok := s.final[change.Path]; ok {
			j.before[change.Path] = old.Blob
		}
		applyChange(s.final, change)
	}
	if j.merged == nil {
		j.changes = commit.Changes
		return j
	}
	s.collectMergeChanges(&j, fork, ours)
	return j
}

func applyChange(tree Tree, change changeset.Change) {
	if change.Deleted() {
		delete(tree, change.Path)
		return
	}
	tree[change.Path] = Entry{Mode: change.Mode, Blob: change.Blob}
}

// blobContent returns a blob from the changeset or from the orchestrator's copy of the base.
func (s *subject) blobContent(blob string) ([]byte, bool) {
	if data, ok := s.cs.Blobs[blob]; ok {
		return data, true
	}
	if s.policy.Content == nil || blob == "" {
		return nil, false
	}
	return s.policy.Content(blob)
}

// eachChange calls visit for every change to judge.
func (s *subject) eachChange(visit func(checkedCommit, changeset.Change)) {
	for _, j := range s.commits {
		for _, change := range j.changes {
			visit(j, change)
		}
	}
}

// shortID returns an abbreviated commit id.
func shortID(id string) string { return id[:min(len(id), 10)] }
