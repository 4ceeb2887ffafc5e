package git

import (
	"errors"
	"testing"
)

func TestBothWaysToMergeAgree(t *testing.T) {
	t.Parallel()
	r := emptyRepo(t)
	commit(t, r, "", "main", "main", map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "b": "b\n", "c": "c\n"})
	commit(t, r, "main", "top", "top", map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n", "new": "new\n"})
	commit(t, r, "main", "bottom", "bottom", map[string]string{"a": "1\n2\n3\n4\n5\n6\nseven\n"}, "c")
	commit(t, r, "main", "clash", "clash", map[string]string{"a": "eins\n2\n3\n4\n5\n6\n7\n"})
	commit(t, r, "main", "gone", "gone", nil, "a")
	for name, c := range map[string]struct {
		ours, theirs string
		conflict     bool
	}{
		"different lines":       {"top", "bottom", false},
		"fast forward":          {"main", "top", false},
		"the same line":         {"top", "clash", true},
		"changed and deleted":   {"top", "gone", true},
		"deleted and untouched": {"bottom", "main", false},
		"nothing to merge":      {"top", "top", false},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := r.Branch(c.ours), r.Branch(c.theirs)
			tree, err := r.MergeTree(ours, theirs)
			old, oldErr := r.mergeByIndex(r.MergeBase(ours, theirs), ours, theirs)
			if errors.Is(err, ErrConflict) != c.conflict || errors.Is(oldErr, ErrConflict) != c.conflict || tree != old {
				t.Errorf("merge-tree: %q, %v; by index: %q, %v; conflict wanted: %v", tree, err, old, oldErr, c.conflict)
			}
		})
	}
}
