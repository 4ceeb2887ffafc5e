package simgithub

import (
	"errors"
	"testing"
)

func TestMergingWithEveryGit(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	full := "o/r"
	if _, err := s.SeedRepo(RepoSeed{Owner: "o", Name: "r", Files: map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n", "b": "b\n", "c": "c\n"}}); err != nil {
		t.Fatal(err)
	}
	push := func(branch string, c Commit) {
		t.Helper()
		c.Branch, c.Message = branch, branch
		if _, err := s.As("o").PushCommit(full, c); err != nil {
			t.Fatal(err)
		}
	}
	push("top", Commit{Files: map[string]string{"a": "one\n2\n3\n4\n5\n6\n7\n", "new": "new\n"}})
	push("bottom", Commit{Files: map[string]string{"a": "1\n2\n3\n4\n5\n6\nseven\n"}, Delete: []string{"c"}})
	push("clash", Commit{Files: map[string]string{"a": "eins\n2\n3\n4\n5\n6\n7\n"}})
	push("gone", Commit{Delete: []string{"a"}})
	r := s.repos[full]
	for name, c := range map[string]struct {
		ours, theirs string
		conflict     bool
	}{
		"different lines":        {"top", "bottom", false},
		"fast forward":           {"main", "top", false},
		"the same line":          {"top", "clash", true},
		"changed and deleted":    {"top", "gone", true},
		"deleted and untouched":  {"bottom", "main", false},
		"nothing to be combined": {"top", "top", false},
	} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := r.Git.branch(c.ours), r.Git.branch(c.theirs)
			tree, err := r.Git.mergeTree(ours, theirs)
			old, oldErr := r.Git.mergeByIndex(ours, theirs)
			if errors.Is(err, errConflict) != c.conflict || errors.Is(oldErr, errConflict) != c.conflict || tree != old {
				t.Errorf("merge-tree: %q, %v; by index: %q, %v; conflict wanted: %v", tree, err, old, oldErr, c.conflict)
			}
		})
	}
}
