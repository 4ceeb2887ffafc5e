package simgithub

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// treeEntry is one change of a tree: a blob, a whole tree or a submodule. A nil SHA deletes the path.
type treeEntry struct {
	Path    string
	Mode    string // 100644, 100755, 120000, 040000 or 160000
	Type    string // blob, tree or commit
	SHA     *string
	Content *string // instead of SHA: the text of a new blob
}

// listing is one entry of a tree as git lists it.
type listing struct {
	mode, kind, sha, path string
	size                  int
}

// list lists a tree: one level, or all levels. The pathspec is literal.
func (r *repository) list(rev string, recursive bool, paths ...string) ([]listing, error) {
	if !recursive {
		if list, known := r.loose.list(rev, paths...); known {
			return list, nil
		}
	}
	args := []string{"--literal-pathspecs", "ls-tree", "-z", "-l"}
	if recursive {
		args = append(args, "-r", "-t")
	}
	out, err := r.out(append(append(args, rev, "--"), paths...)...)
	if err != nil {
		return nil, err
	}
	var list []listing
	for rec := range strings.SplitSeq(out, "\x00") {
		meta, path, ok := strings.Cut(rec, "\t")
		f := strings.Fields(meta)
		if !ok || len(f) != 4 {
			continue
		}
		size, _ := strconv.Atoi(f[3]) // "-" for anything but a blob
		list = append(list, listing{mode: f[0], kind: f[1], sha: f[2], path: path, size: size})
	}
	return list, nil
}

// blob reads a blob.
func (r *repository) blob(sha string) ([]byte, error) {
	if kind, content, known := r.loose.object(sha); known && kind == "blob" {
		return content, nil
	}
	b, _, err := r.git.run(gitCmd{dir: r.Dir, args: []string{"cat-file", "blob", sha}})
	return b, err
}

func (r *repository) writeBlob(content []byte) (string, error) {
	return r.loose.writeObject("blob", content)
}

// invalidError reports that a tree cannot be written as it was asked for.
type invalidError struct{ message string }

func (e *invalidError) Error() string { return e.message }

func invalid(format string, args ...any) error { return &invalidError{fmt.Sprintf(format, args...)} }

// writeTree applies entries to a base (a tree or commit; "" for an empty one) and writes the tree that results.
func (r *repository) writeTree(base string, entries []treeEntry) (string, error) {
	if sha, known := r.loose.changeTree(base, entries); known {
		return sha, nil
	}
	tmp, err := os.MkdirTemp("", "simgithub-index-")
	if err != nil {
		return "", fmt.Errorf("make index folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	if base != "" {
		if _, _, err := r.git.run(gitCmd{dir: r.Dir, env: env, args: []string{"read-tree", base}}); err != nil {
			return "", invalid("base_tree is not a valid tree oid")
		}
	}
	lines, trees, err := r.indexLines(entries)
	if err != nil {
		return "", err
	}
	update := gitCmd{dir: r.Dir, env: env, stdin: []byte(lines), args: []string{"update-index", "-z", "--index-info"}}
	if _, _, err := r.git.run(update); err != nil {
		return "", invalid("tree.path contains a malformed path component")
	}
	for _, t := range trees {
		args := []string{"read-tree", "-i", "--prefix=" + t.Path + "/", *t.SHA}
		if _, _, err := r.git.run(gitCmd{dir: r.Dir, env: env, args: args}); err != nil {
			return "", invalid("tree.sha %s is not a valid tree", *t.SHA)
		}
	}
	b, _, err := r.git.run(gitCmd{dir: r.Dir, env: env, args: []string{"write-tree"}})
	if err != nil {
		return "", invalid("tree.sha is not a valid blob")
	}
	return strings.TrimSpace(string(b)), nil
}

// indexLines turns entries into input for update-index; whole trees are returned apart.
func (r *repository) indexLines(entries []treeEntry) (lines string, trees []treeEntry, err error) {
	var b strings.Builder
	for _, e := range entries {
		if !validPath(e.Path) {
			return "", nil, invalid("tree.path contains a malformed path component")
		}
		if e.Content != nil {
			sha, err := r.writeBlob([]byte(*e.Content))
			if err != nil {
				return "", nil, err
			}
			e.SHA = &sha
		}
		switch {
		case e.SHA == nil:
			fmt.Fprintf(&b, "0 %s\t%s\x00", zeroSHA, e.Path)
			continue
		case !validSHA(*e.SHA):
			return "", nil, invalid("tree.sha %s is not a valid object id", *e.SHA)
		}
		switch e.Mode {
		case "040000":
			fmt.Fprintf(&b, "0 %s\t%s\x00", zeroSHA, e.Path)
			trees = append(trees, e)
		case "100644", "100755", "120000", "160000":
			fmt.Fprintf(&b, "%s %s\t%s\x00", e.Mode, *e.SHA, e.Path)
		default:
			return "", nil, invalid("Must supply a valid tree.mode")
		}
	}
	return b.String(), trees, nil
}

func validPath(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return false
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == "." || part == ".." || strings.EqualFold(part, ".git") {
			return false
		}
	}
	return true
}

func validSHA(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// kind returns the type of an object: blob, tree, commit or tag.
func (r *repository) kind(sha string) (string, error) {
	if kind, _, known := r.loose.object(sha); known {
		return kind, nil
	}
	return r.out("cat-file", "-t", sha)
}
