package simgithub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errConflict says that two commits do not merge by themselves.
var errConflict = errors.New("merge conflict")

// mergeTree merges two commits without touching any branch and returns the tree; errConflict if people must decide.
func (r *repository) mergeTree(ours, theirs string) (string, error) {
	out, code, err := r.git.run(gitCmd{dir: r.Dir, args: []string{"merge-tree", "--write-tree", ours, theirs}})
	switch {
	case code == 0 && err == nil:
		tree, _, _ := strings.Cut(string(out), "\n")
		return tree, nil
	case code == 1:
		return "", errConflict
	default: // a git older than 2.38 does not know --write-tree
		return r.mergeByIndex(ours, theirs)
	}
}

// mergeByIndex merges with commands that every git has, in a work tree that is thrown away.
func (r *repository) mergeByIndex(ours, theirs string) (string, error) {
	base := r.mergeBase(ours, theirs)
	if base == "" {
		return "", errConflict
	}
	tmp, err := os.MkdirTemp("", "simgithub-merge-")
	if err != nil {
		return "", fmt.Errorf("make merge folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index"), "GIT_WORK_TREE=" + tmp, "GIT_DIR=" + r.Dir}
	read := []string{"read-tree", "-i", "-m", "--aggressive", base, ours, theirs}
	if _, _, err := r.git.run(gitCmd{dir: tmp, env: env, args: read}); err != nil {
		return "", err
	}
	if _, _, err := r.git.run(gitCmd{dir: tmp, env: env, args: []string{"merge-index", "-o", "git-merge-one-file", "-a"}}); err != nil {
		return "", errConflict
	}
	out, _, err := r.git.run(gitCmd{dir: tmp, env: env, args: []string{"write-tree"}})
	if err != nil {
		return "", errConflict
	}
	return strings.TrimSpace(string(out)), nil
}
