package simgithub

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// treeEntry is one change of a tree: a blob, a whole tree or a submodule. A nil SHA deletes the path.
type treeEntry struct {
	Path    string
	Mode    string // 100644, 100755, 120000, 040000 or 160000
	Type    string // blob, tree or commit
	SHA     *string
	Content *string // instead of SHA: the text of a new blob
}

// newCommit is a commit to be made.
type newCommit struct {
	tree      string
	parents   []string
	message   string
	author    identity
	committer identity
	signed    bool // GitHub vouches for it
}

func (g gitRunner) writeBlob(r *Repo, content []byte) (string, error) {
	return r.writeObject("blob", content)
}

// writeTree applies entries to a base (a tree or commit; "" for an empty one) and writes the tree that results.
func (g gitRunner) writeTree(r *Repo, base string, entries []treeEntry) (string, error) {
	if sha, known := r.changeTree(base, entries); known {
		return sha, nil
	}
	tmp, err := os.MkdirTemp("", "simgithub-index-")
	if err != nil {
		return "", fmt.Errorf("make index folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env := []string{"GIT_INDEX_FILE=" + filepath.Join(tmp, "index")}
	if base != "" {
		if _, _, err := g.run(gitCmd{dir: r.Dir, env: env, args: []string{"read-tree", base}}); err != nil {
			return "", errUnprocessable("base_tree is not a valid tree oid")
		}
	}
	lines, trees, err := g.indexLines(r, entries)
	if err != nil {
		return "", err
	}
	update := gitCmd{dir: r.Dir, env: env, stdin: []byte(lines), args: []string{"update-index", "-z", "--index-info"}}
	if _, _, err := g.run(update); err != nil {
		return "", errUnprocessable("tree.path contains a malformed path component")
	}
	for _, t := range trees {
		args := []string{"read-tree", "-i", "--prefix=" + t.Path + "/", *t.SHA}
		if _, _, err := g.run(gitCmd{dir: r.Dir, env: env, args: args}); err != nil {
			return "", errUnprocessable("tree.sha %s is not a valid tree", *t.SHA)
		}
	}
	b, _, err := g.run(gitCmd{dir: r.Dir, env: env, args: []string{"write-tree"}})
	if err != nil {
		return "", errUnprocessable("tree.sha is not a valid blob")
	}
	return strings.TrimSpace(string(b)), nil
}

// indexLines turns entries into input for update-index; whole trees are returned apart.
func (g gitRunner) indexLines(r *Repo, entries []treeEntry) (lines string, trees []treeEntry, err error) {
	var b strings.Builder
	for _, e := range entries {
		if !validPath(e.Path) {
			return "", nil, errUnprocessable("tree.path contains a malformed path component")
		}
		if e.Content != nil {
			sha, err := g.writeBlob(r, []byte(*e.Content))
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
			return "", nil, errUnprocessable("tree.sha %s is not a valid object id", *e.SHA)
		}
		switch e.Mode {
		case "040000":
			fmt.Fprintf(&b, "0 %s\t%s\x00", zeroSHA, e.Path)
			trees = append(trees, e)
		case "100644", "100755", "120000", "160000":
			fmt.Fprintf(&b, "%s %s\t%s\x00", e.Mode, *e.SHA, e.Path)
		default:
			return "", nil, errUnprocessable("Must supply a valid tree.mode")
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

// makeCommit writes a commit object. Signed ones are remembered as verified: no real signature is put on.
func (s *Sim) makeCommit(r *Repo, c newCommit) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", c.tree)
	for _, p := range c.parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	for _, who := range []struct {
		role string
		id   identity
	}{{"author", c.author}, {"committer", c.committer}} {
		name := strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(who.id.name)
		email := strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(who.id.email)
		fmt.Fprintf(&b, "%s %s <%s> %d %s\n", who.role, name, email, who.id.at.Unix(), who.id.at.Format("-0700"))
	}
	fmt.Fprintf(&b, "\n%s", c.message)
	sha, err := r.writeObject("commit", []byte(b.String()))
	if err != nil {
		return "", err
	}
	if c.signed {
		s.verified[sha] = true
	}
	return sha, nil
}

// updateRef points a reference at an object; before is what must be there, "" for anything.
func (g gitRunner) updateRef(r *Repo, name, after, before string) error {
	if now, known := r.looseRef(name); known && (before == "" || before == now) && r.writeRef(name, after) {
		return nil
	}
	args := []string{"update-ref", name, after}
	if before != "" {
		args = append(args, before)
	}
	_, err := g.out(r, args...)
	return err
}

// gitCommit is a commit as read from git.
type gitCommit struct {
	SHA, Tree         string
	Parents           []string
	Message           string
	Author, Committer identity
}

// commits reads commits for a rev-list argument list, newest first; max bounds their number.
func (g gitRunner) commits(r *Repo, max int, revs ...string) ([]gitCommit, error) {
	args := []string{"log", fmt.Sprintf("--max-count=%d", max),
		"--format=%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%cn%x1f%ce%x1f%cI%x1f%B%x1e"}
	out, err := g.out(r, append(args, revs...)...)
	if err != nil {
		return nil, err
	}
	var list []gitCommit
	for rec := range strings.SplitSeq(out, "\x1e") {
		f := strings.Split(strings.TrimLeft(rec, "\n"), "\x1f")
		if len(f) != 10 {
			continue
		}
		c := gitCommit{SHA: f[0], Tree: f[1], Parents: strings.Fields(f[2]), Message: strings.TrimRight(f[9], "\n")}
		c.Author = identity{name: f[3], email: f[4], at: parseTime(f[5])}
		c.Committer = identity{name: f[6], email: f[7], at: parseTime(f[8])}
		list = append(list, c)
	}
	return list, nil
}

func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// commit reads one commit; nil if there is none of that name.
func (g gitRunner) commit(r *Repo, rev string) *gitCommit {
	sha := g.resolve(r, rev)
	if sha == "" {
		return nil
	}
	if c, known := r.looseCommit(sha); known {
		return c
	}
	list, err := g.commits(r, 1, sha)
	if err != nil || len(list) == 0 {
		return nil
	}
	return &list[0]
}
