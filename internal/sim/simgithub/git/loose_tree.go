package git

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// treeNode is an entry of a tree: a file, a link, a submodule or a folder.
type treeNode struct {
	mode string // as in a tree object: 40000 for a folder
	sha  string // "" for a changed folder that is not stored yet
	kids map[string]*treeNode
}

func (n *treeNode) isDir() bool { return n.mode == "40000" }

// kind returns the type of the entry's object.
func (n *treeNode) kind() string {
	switch n.mode {
	case "40000":
		return "tree"
	case "160000":
		return "commit"
	default:
		return "blob"
	}
}

// tree returns the root of a tree, or of the tree of a commit.
func (s looseStore) tree(rev string) (root *treeNode, known bool) {
	if c, ok := s.commit(rev); ok {
		rev = c.Tree
	}
	root = &treeNode{mode: "40000", sha: rev}
	return root, ValidSHA(rev) && s.open(root)
}

// open reads the entries of a folder, unless they were read before. It reports whether it could.
func (s looseStore) open(n *treeNode) bool {
	if n.kids != nil {
		return true
	}
	n.kids = map[string]*treeNode{}
	if n.sha == "" || n.sha == emptyTree {
		return true
	}
	kind, body, known := s.object(n.sha)
	if !known || kind != "tree" {
		return false
	}
	for len(body) > 0 {
		head, rest, ok := bytes.Cut(body, []byte{0})
		mode, name, hasName := strings.Cut(string(head), " ")
		if !ok || !hasName || len(rest) < 20 {
			return false
		}
		n.kids[name] = &treeNode{mode: mode, sha: hex.EncodeToString(rest[:20])}
		body = rest[20:]
	}
	return true
}

// names returns the names of a folder's entries in git's order, in which a folder sorts as if its name ended with a
// slash.
func (n *treeNode) names() []string {
	key := func(name string) string {
		if n.kids[name].isDir() {
			return name + "/"
		}
		return name
	}
	return slices.SortedFunc(maps.Keys(n.kids), func(a, b string) int { return strings.Compare(key(a), key(b)) })
}

// set puts an entry at a path, or deletes the entry there if leaf is nil, unless it is a folder. It reports whether it
// could.
func (s looseStore) set(n *treeNode, path string, leaf *treeNode) bool {
	if !s.open(n) {
		return false
	}
	name, rest, deep := strings.Cut(path, "/")
	kid := n.kids[name]
	if leaf == nil && (kid == nil || kid.isDir() != deep) {
		return true // there is nothing to delete
	}
	n.sha = ""
	if !deep {
		if n.kids[name] = leaf; leaf == nil {
			delete(n.kids, name)
		}
		return true
	}
	if kid == nil || !kid.isDir() {
		kid = &treeNode{mode: "40000"}
		n.kids[name] = kid
	}
	if !s.set(kid, rest, leaf) {
		return false
	}
	if len(kid.kids) == 0 {
		delete(n.kids, name)
	}
	return true
}

// store writes the changed folders and returns the id of the tree.
func (s looseStore) store(n *treeNode) (string, error) {
	if n.sha != "" {
		return n.sha, nil
	}
	var body bytes.Buffer
	for _, name := range n.names() {
		kid := n.kids[name]
		if kid.isDir() {
			sha, err := s.store(kid)
			if err != nil {
				return "", err
			}
			kid.sha = sha
		}
		id, err := hex.DecodeString(kid.sha)
		if err != nil {
			return "", fmt.Errorf("read the id of %s: %w", name, err)
		}
		fmt.Fprintf(&body, "%s %s\x00", kid.mode, name)
		body.Write(id)
	}
	sha, err := s.writeObject("tree", body.Bytes())
	n.sha = sha
	return sha, err
}

// changeTree applies entries to a tree or a commit, or to an empty tree if base is "", and returns the id of the
// result. Names that git may refuse are left to git.
func (s looseStore) changeTree(base string, entries []TreeEntry) (sha string, known bool) {
	root, known := &treeNode{mode: "40000", kids: map[string]*treeNode{}}, true
	if base != "" {
		if root, known = s.tree(base); !known {
			return "", false
		}
	}
	for _, e := range entries {
		leaf, ok := s.leaf(e)
		if !ok || !s.set(root, e.Path, leaf) {
			return "", false
		}
	}
	sha, err := s.store(root)
	return sha, err == nil
}

// leaf returns the node that an entry puts at its path, or nil if it deletes the path.
func (s looseStore) leaf(e TreeEntry) (n *treeNode, known bool) {
	if !validPath(e.Path) || strings.ContainsAny(e.Path, "~\\:") || strings.Contains(strings.ToLower(e.Path), ".git") {
		return nil, false
	}
	sha := ""
	switch {
	case e.Content != nil:
		written, err := s.writeObject("blob", []byte(*e.Content))
		if err != nil {
			return nil, false
		}
		sha = written
	case e.SHA == nil:
		return nil, true
	default:
		sha = *e.SHA
	}
	if !ValidSHA(sha) {
		return nil, false
	}
	switch e.Mode {
	case "040000":
		n, known := s.tree(sha)
		return n, known && n.sha == sha // not a commit
	case "160000":
	case "100644", "100755", "120000":
		if _, err := os.Stat(filepath.Join(s.dir, "objects", sha[:2], sha[2:])); err != nil {
			return nil, false
		}
	default:
		return nil, false
	}
	return &treeNode{mode: e.Mode, sha: sha}, true
}

// list returns the entries of the root of a tree, of a folder (the path ends with a slash) or the one at a path.
func (s looseStore) list(rev string, paths ...string) (list []Entry, known bool) {
	n, known := s.tree(rev)
	if !known || len(paths) > 1 {
		return nil, false
	}
	at := ""
	if len(paths) == 1 {
		path, inside := strings.CutSuffix(paths[0], "/")
		if n, known = s.find(n, path); !known || n == nil {
			return nil, known
		}
		if !inside || !n.isDir() {
			return s.listed(n, path, inside)
		}
		at = path + "/"
	}
	if !s.open(n) {
		return nil, false
	}
	for _, name := range n.names() {
		l, ok := s.listed(n.kids[name], at+name, false)
		if !ok {
			return nil, false
		}
		list = append(list, l...)
	}
	return list, true
}

// at returns the object at a path of a commit, or "" if there is none.
func (s looseStore) at(rev, path string) (sha string, known bool) {
	commit, known := s.resolve(rev)
	if !known || commit == "" {
		return "", known
	}
	n, known := s.tree(commit)
	if known && path != "" {
		n, known = s.find(n, path)
	}
	if !known || n == nil {
		return "", known
	}
	return n.sha, true
}

// find returns the node at a path below a folder, or nil if there is none.
func (s looseStore) find(n *treeNode, path string) (found *treeNode, known bool) {
	if !validPath(path) {
		return nil, false
	}
	for name := range strings.SplitSeq(path, "/") {
		if !n.isDir() {
			return nil, true
		}
		if !s.open(n) {
			return nil, false
		}
		if n = n.kids[name]; n == nil {
			return nil, true
		}
	}
	return n, true
}

// listed returns a node as an entry of a list. A path that ends with a slash but is not a folder is left to git.
func (s looseStore) listed(n *treeNode, path string, asFolder bool) (list []Entry, known bool) {
	if asFolder {
		return nil, false
	}
	l := Entry{Mode: fmt.Sprintf("%06s", n.mode), Kind: n.kind(), SHA: n.sha, Path: path}
	if l.Kind == "blob" {
		_, content, ok := s.object(n.sha)
		if !ok {
			return nil, false
		}
		l.Size = len(content)
	}
	return []Entry{l}, true
}
