package simgithub

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// treeItem is an entry of a request. A missing sha and a null sha mean different things.
type treeItem struct {
	Path    string           `json:"path"`
	Mode    string           `json:"mode"`
	Type    string           `json:"type"`
	SHA     *json.RawMessage `json:"sha"`
	Content *string          `json:"content"`
}

func (t treeItem) entry() (git.TreeEntry, error) {
	e := git.TreeEntry{Path: t.Path, Mode: t.Mode, Type: t.Type, Content: t.Content}
	if t.SHA == nil || string(*t.SHA) == "null" {
		return e, nil
	}
	var sha string
	if err := json.Unmarshal(*t.SHA, &sha); err != nil {
		return e, errUnprocessable("tree.sha is not a string")
	}
	e.SHA = &sha
	if e.Content != nil {
		return e, errUnprocessable("Must supply either tree.sha or tree.content, not both")
	}
	return e, nil
}

func createTree(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	var req struct {
		BaseTree string     `json:"base_tree"`
		Tree     []treeItem `json:"tree"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if len(req.Tree) == 0 {
		return nil, errUnprocessable("Invalid tree info")
	}
	var entries []git.TreeEntry
	for _, t := range req.Tree {
		e, err := t.entry()
		if err != nil {
			return nil, err
		}
		if e.SHA == nil && e.Content == nil {
			if list, err := r.Git.List(req.BaseTree, false, e.Path); req.BaseTree == "" || err != nil || len(list) == 0 {
				return nil, errUnprocessable("GitRPC::BadObjectState")
			}
		}
		entries = append(entries, e)
	}
	sha, err := writeTree(r, req.BaseTree, entries)
	if err != nil {
		return nil, err
	}
	o, err := c.treeJSON(r, sha, false)
	if err != nil {
		return nil, err
	}
	return c.created(o)
}

func (c *call) treeJSON(r *Repo, sha string, recursive bool) (obj, error) {
	list, err := r.Git.List(sha, recursive)
	if err != nil {
		return nil, errNotFound()
	}
	api := c.s.json.api("/repos/%s/git", r.FullName())
	truncated := recursive && c.s.maxTree > 0 && len(list) > c.s.maxTree
	if truncated {
		list = list[:c.s.maxTree]
	}
	return obj{"sha": sha, "url": api + "/trees/" + sha, "truncated": truncated, "tree": each(list, func(l git.Entry) obj {
		o := obj{"path": l.Path, "mode": l.Mode, "type": l.Kind, "sha": l.SHA, "url": api + "/" + l.Kind + "s/" + l.SHA}
		if l.Kind == "blob" {
			o["size"] = l.Size
		}
		return o
	})}, nil
}

func getTree(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	sha := r.Git.Object(c.vars["sha"] + "^{tree}")
	if sha == "" || strings.HasPrefix(c.vars["sha"], "-") {
		return nil, errNotFound()
	}
	return c.treeJSON(r, sha, c.query("recursive") != "")
}

// whoSent is the author or committer in a request.
type whoSent struct {
	Name  string     `json:"name"`
	Email string     `json:"email"`
	Date  *time.Time `json:"date"`
}

func (w *whoSent) identity(or git.Identity) git.Identity {
	if w == nil {
		return or
	}
	id := git.Identity{Name: w.Name, Email: w.Email, At: or.At}
	if w.Date != nil {
		id.At = w.Date.Truncate(time.Second)
	}
	return id
}

func createCommit(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	var req struct {
		Message, Tree     string
		Parents           []string
		Author, Committer *whoSent
		Signature         string
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if kind, err := r.Git.Kind(req.Tree); err != nil || kind != "tree" || !git.ValidSHA(req.Tree) {
		return nil, errUnprocessable("Tree SHA does not exist")
	}
	for _, p := range req.Parents {
		if !git.ValidSHA(p) || r.Git.Resolve(p) != p {
			return nil, errUnprocessable("Parent SHA does not exist or is not a commit object")
		}
	}
	n := git.NewCommit{Tree: req.Tree, Parents: req.Parents, Message: req.Message}
	n.Author = req.Author.identity(c.identity())
	n.Committer = req.Committer.identity(n.Author)
	signed := false
	if c.viaApp() && req.Author == nil && req.Committer == nil && req.Signature == "" {
		n.Committer, signed = c.s.webFlow(), true
	}
	sha, err := r.Git.WriteCommit(n)
	if err != nil {
		return nil, err
	}
	if signed {
		c.s.verified[sha] = true
	}
	return c.created(c.s.json.gitCommit(r, r.Git.Commit(sha)))
}

func getGitCommit(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	k := r.Git.Commit(c.vars["sha"])
	if k == nil {
		return nil, errNotFound()
	}
	return c.s.json.gitCommit(r, k), nil
}
