package pushgate

import (
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/changeset"
)

// subject is a changeset prepared for the rules: the changes that count, and the trees before and
// after each commit as far as they are known.
type subject struct {
	policy  Policy
	cs      *changeset.Changeset
	commits []judged
	// final is the base's tree, as far as it is known, with all changes applied.
	final Tree
	// touched are the paths with at least one change that counts and that exist in the end.
	touched []string
	// blobs are those that the base, or a base commit that is merged, has already.
	blobs map[string]bool
}

// judged is one commit with the changes that count: all of them, or for an allowed merge those that a
// merge of both sides would not have made.
type judged struct {
	commit  *changeset.Commit
	changes []changeset.Change
	// before is the known content that the commit builds on: the ids of the blobs that it replaces
	// or deletes, by path.
	before map[string]string
	// merged is the tree of the allowed second parent, nil for an ordinary commit.
	merged Tree
	// undone are the paths whose change on the base branch an allowed merge leaves out.
	undone map[string]bool
}

func newSubject(cs *changeset.Changeset, policy Policy) *subject {
	s := &subject{policy: policy.withDefaults(), cs: cs, final: Tree{}}
	maps.Copy(s.final, policy.Base)
	touched := map[string]bool{}
	fork := s.policy.Merge.Fork
	for i := range cs.Commits {
		j := s.take(&cs.Commits[i], fork)
		if j.merged != nil {
			fork = j.merged // a second merge of the same commit brings in nothing
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

// take applies a commit to the final tree and returns it with the changes that count.
func (s *subject) take(commit *changeset.Commit, fork Tree) judged {
	j := judged{commit: commit, before: map[string]string{}}
	var ours Tree
	if s.policy.Merge.allows(commit) {
		j.merged, ours = s.policy.Merge.Tree, maps.Clone(s.final)
	}
	for _, change := range commit.Changes {
		if old, ok := s.final[change.Path]; ok {
			j.before[change.Path] = old.Blob
		}
		apply(s.final, change)
	}
	if j.merged == nil {
		j.changes = commit.Changes
		return j
	}
	s.takeMerge(&j, fork, ours)
	return j
}

func apply(tree Tree, change changeset.Change) {
	if change.Deleted() {
		delete(tree, change.Path)
		return
	}
	tree[change.Path] = Entry{Mode: change.Mode, Blob: change.Blob}
}

// content returns a blob from the changeset or from what the orchestrator has.
func (s *subject) content(blob string) ([]byte, bool) {
	if data, ok := s.cs.Blobs[blob]; ok {
		return data, true
	}
	if s.policy.Content == nil || blob == "" {
		return nil, false
	}
	return s.policy.Content(blob)
}

// each calls the function for every change that counts.
func (s *subject) each(visit func(judged, changeset.Change)) {
	for _, j := range s.commits {
		for _, change := range j.changes {
			visit(j, change)
		}
	}
}

// shortID is a commit id as people write it.
func shortID(id string) string { return id[:min(len(id), 10)] }
