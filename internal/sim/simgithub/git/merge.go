package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrConflict reports that two commits cannot be merged automatically.
var ErrConflict = errors.New("merge conflict")

// MergeTree merges two commits and returns the resulting tree. It moves no branch. The error is ErrConflict if they
// cannot be merged automatically.
func (r *Repository) MergeTree(ours, theirs string) (string, error) {
	out, code, err := r.git.run(command{dir: r.Dir, args: []string{"merge-tree", "--write-tree", ours, theirs}})
	switch {
	case code == 0 && err == nil:
		tree, _, _ := strings.Cut(string(out), "\n")
		return tree, nil
	case code == 1:
		return "", ErrConflict
	default: // a git older than 2.38 does not know --write-tree
		return r.mergeByIndex(r.MergeBase(ours, theirs), ours, theirs)
	}
}

// CherryPickTree applies the changes of a commit, which has one parent, to another commit and returns the resulting tree. It moves no branch.
// The error is ErrConflict if that is impossible automatically.
func (r *Repository) CherryPickTree(onto string, c Commit) (string, error) {
	if len(c.Parents) != 1 {
		return "", ErrConflict
	}
	return r.mergeByIndex(c.Parents[0], onto, c.SHA)
}

// mergeByIndex does the same with commands that every version of git has, in a temporary work tree.
func (r *Repository) mergeByIndex(base, ours, theirs string) (string, error) {
	if base == "" {
		return "", ErrConflict
	}
	tmp, err := os.MkdirTemp("", "simgithub-merge-")
	if err != nil {
		return "", fmt.Errorf("make merge folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index"), "GIT_WORK_TREE=" + tmp, "GIT_DIR=" + r.Dir}
	read := []string{"read-tree", "-i", "-m", "--aggressive", base, ours, theirs}
	if _, _, err := r.git.run(command{dir: tmp, env: env, args: read}); err != nil {
		return "", err
	}
	if _, _, err := r.git.run(command{dir: tmp, env: env, args: []string{"merge-index", "-o", "git-merge-one-file", "-a"}}); err != nil {
		return "", ErrConflict
	}
	out, _, err := r.git.run(command{dir: tmp, env: env, args: []string{"write-tree"}})
	if err != nil {
		return "", ErrConflict
	}
	return strings.TrimSpace(string(out)), nil
}
