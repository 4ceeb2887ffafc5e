package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// TreeEntry is one change of a tree: it puts a blob, a whole tree or a submodule at a path. If SHA and Content are nil,
// it deletes the path.
type TreeEntry struct {
	Path    string
	Mode    string // 100644, 100755, 120000, 040000 or 160000
	Type    string // blob, tree or commit
	SHA     *string
	Content *string // instead of SHA: the content of a new blob
}

// Entry is one entry of a tree; Path is relative to the root. Size is 0 for all kinds except blobs.
type Entry struct {
	Mode, Kind, SHA, Path string
	Size                  int
}

// List returns the entries of the root of a tree, or of all its folders. Paths limit the list; a path that ends with a
// slash means the entries of that folder. They are literal, not patterns.
func (r *Repository) List(rev string, recursive bool, paths ...string) ([]Entry, error) {
	if !recursive {
		if list, known := r.loose.list(rev, paths...); known {
			return list, nil
		}
	}
	args := []string{"--literal-pathspecs", "ls-tree", "-z", "-l"}
	if recursive {
		args = append(args, "-r", "-t")
	}
	out, err := r.Output(append(append(args, rev, "--"), paths...)...)
	if err != nil {
		return nil, err
	}
	var list []Entry
	for rec := range strings.SplitSeq(out, "\x00") {
		meta, path, ok := strings.Cut(rec, "\t")
		f := strings.Fields(meta)
		if !ok || len(f) != 4 {
			continue
		}
		size, _ := strconv.Atoi(f[3]) // "-" for anything but a blob
		list = append(list, Entry{Mode: f[0], Kind: f[1], SHA: f[2], Path: path, Size: size})
	}
	return list, nil
}

// Blob returns the content of a blob.
func (r *Repository) Blob(sha string) ([]byte, error) {
	if kind, content, known := r.loose.object(sha); known && kind == "blob" {
		return content, nil
	}
	b, _, err := r.git.run(command{dir: r.Dir, args: []string{"cat-file", "blob", sha}})
	return b, err
}

// WriteBlob stores a blob and returns its id.
func (r *Repository) WriteBlob(content []byte) (string, error) {
	return r.loose.writeObject("blob", content)
}

// An InvalidError reports an invalid entry of a tree, in GitHub's words.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

func invalid(format string, args ...any) error { return &InvalidError{fmt.Sprintf(format, args...)} }

// WriteTree applies entries to a base (a tree or a commit; "" for an empty tree), stores the resulting tree and returns
// its id. The error is an *InvalidError if an entry is invalid.
func (r *Repository) WriteTree(base string, entries []TreeEntry) (string, error) {
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
		if _, _, err := r.git.run(command{dir: r.Dir, env: env, args: []string{"read-tree", base}}); err != nil {
			return "", invalid("base_tree is not a valid tree oid")
		}
	}
	lines, trees, err := r.indexLines(entries)
	if err != nil {
		return "", err
	}
	update := command{dir: r.Dir, env: env, stdin: []byte(lines), args: []string{"update-index", "-z", "--index-info"}}
	if _, _, err := r.git.run(update); err != nil {
		return "", invalid("tree.path contains a malformed path component")
	}
	for _, t := range trees {
		args := []string{"read-tree", "-i", "--prefix=" + t.Path + "/", *t.SHA}
		if _, _, err := r.git.run(command{dir: r.Dir, env: env, args: args}); err != nil {
			return "", invalid("tree.sha %s is not a valid tree", *t.SHA)
		}
	}
	b, _, err := r.git.run(command{dir: r.Dir, env: env, args: []string{"write-tree"}})
	if err != nil {
		return "", invalid("tree.sha is not a valid blob")
	}
	return strings.TrimSpace(string(b)), nil
}

// indexLines returns entries as input of git update-index, and separately the entries that are whole trees.
func (r *Repository) indexLines(entries []TreeEntry) (lines string, trees []TreeEntry, err error) {
	var b strings.Builder
	for _, e := range entries {
		if !validPath(e.Path) {
			return "", nil, invalid("tree.path contains a malformed path component")
		}
		if e.Content != nil {
			sha, err := r.WriteBlob([]byte(*e.Content))
			if err != nil {
				return "", nil, err
			}
			e.SHA = &sha
		}
		switch {
		case e.SHA == nil:
			fmt.Fprintf(&b, "0 %s\t%s\x00", ZeroSHA, e.Path)
			continue
		case !ValidSHA(*e.SHA):
			return "", nil, invalid("tree.sha %s is not a valid object id", *e.SHA)
		}
		switch e.Mode {
		case "040000":
			fmt.Fprintf(&b, "0 %s\t%s\x00", ZeroSHA, e.Path)
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

// ValidSHA reports whether a string is a complete object id.
func ValidSHA(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// Kind returns the type of an object: blob, tree, commit or tag.
func (r *Repository) Kind(sha string) (string, error) {
	if kind, _, known := r.loose.object(sha); known {
		return kind, nil
	}
	return r.Output("cat-file", "-t", sha)
}
