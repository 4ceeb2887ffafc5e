package simgithub

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

func gitRoutes() []route {
	const git = "/repos/{owner}/{repo}/git"
	return []route{
		{"GET", git + "/ref/{ref...}", getRef},
		{"GET", git + "/refs/{ref...}", getRef},
		{"GET", git + "/matching-refs/{ref...}", matchingRefs},
		{"POST", git + "/refs", createRef},
		{"PATCH", git + "/refs/{ref...}", patchRef},
		{"DELETE", git + "/refs/{ref...}", deleteRef},
		{"POST", git + "/blobs", createBlob},
		{"GET", git + "/blobs/{sha}", getBlob},
		{"POST", git + "/trees", createTree},
		{"GET", git + "/trees/{sha...}", getTree},
		{"POST", git + "/commits", createCommit},
		{"GET", git + "/commits/{sha}", getGitCommit},
	}
}

// writable finds a repository whose contents the caller may change.
func (c *call) writable() (*Repo, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	return r, c.need(r, "contents", "write", RoleWrite)
}

func (c *call) oneRef(r *Repo, name string) (any, error) {
	refs, err := c.s.git.refs(r, name)
	if err != nil {
		return nil, err
	}
	for _, f := range refs {
		if f.Name == name {
			return c.s.refJSON(r, f), nil
		}
	}
	return nil, errNotFound()
}

func getRef(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	return c.oneRef(r, "refs/"+c.vars["ref"])
}

func matchingRefs(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	refs, err := c.s.git.refs(r, "refs/")
	if err != nil {
		return nil, err
	}
	var list []gitRef
	for _, f := range refs {
		if strings.HasPrefix(f.Name, "refs/"+c.vars["ref"]) {
			list = append(list, f)
		}
	}
	return each(page(c, list), func(f gitRef) obj { return c.s.refJSON(r, f) }), nil
}

func createRef(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	var req struct{ Ref, SHA string }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if c.s.git.ref(r, req.Ref) != "" {
		return nil, errUnprocessable("Reference already exists")
	}
	if err := c.updateRef(r, refChange{Name: req.Ref, Before: zeroSHA, After: req.SHA}); err != nil {
		return nil, err
	}
	o, err := c.oneRef(r, req.Ref)
	if err != nil {
		return nil, err
	}
	return c.created(o)
}

func patchRef(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	var req struct {
		SHA   string
		Force bool
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	name := "refs/" + c.vars["ref"]
	if c.s.git.ref(r, name) == "" {
		return nil, errUnprocessable("Reference does not exist")
	}
	if err := c.updateRef(r, refChange{Name: name, After: req.SHA, Force: req.Force}); err != nil {
		return nil, err
	}
	return c.oneRef(r, name)
}

func deleteRef(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	return nil, c.updateRef(r, refChange{Name: "refs/" + c.vars["ref"], After: zeroSHA, Force: true})
}

func createBlob(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	var req struct{ Content, Encoding string }
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	content := []byte(req.Content)
	if req.Encoding == "base64" {
		if content, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(req.Content, "\n", "")); err != nil {
			return nil, errUnprocessable("content is not valid Base64")
		}
	}
	sha, err := c.s.git.writeBlob(r, content)
	if err != nil {
		return nil, err
	}
	return c.created(obj{"sha": sha, "url": c.s.api("/repos/%s/git/blobs/%s", r.FullName(), sha)})
}

func getBlob(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	content, err := c.s.git.blob(r, c.vars["sha"])
	if err != nil || !validSHA(c.vars["sha"]) {
		return nil, errNotFound()
	}
	if strings.Contains(c.r.Header.Get("Accept"), "raw") {
		c.header.Set("Content-Type", "application/vnd.github.raw; charset=utf-8")
		return content, nil
	}
	return obj{
		"sha": c.vars["sha"], "node_id": nodeID("B", 0) + c.vars["sha"], "size": len(content), "encoding": "base64",
		"url": c.s.api("/repos/%s/git/blobs/%s", r.FullName(), c.vars["sha"]), "content": wrapped(content),
	}, nil
}

// treeItem is an entry as sent: the difference between no sha and a null sha counts.
type treeItem struct {
	Path    string           `json:"path"`
	Mode    string           `json:"mode"`
	Type    string           `json:"type"`
	SHA     *json.RawMessage `json:"sha"`
	Content *string          `json:"content"`
}

func (t treeItem) entry() (treeEntry, error) {
	e := treeEntry{Path: t.Path, Mode: t.Mode, Type: t.Type, Content: t.Content}
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
	var entries []treeEntry
	for _, t := range req.Tree {
		e, err := t.entry()
		if err != nil {
			return nil, err
		}
		if e.SHA == nil && e.Content == nil {
			if list, err := c.s.git.list(r, req.BaseTree, false, e.Path); req.BaseTree == "" || err != nil || len(list) == 0 {
				return nil, errUnprocessable("GitRPC::BadObjectState")
			}
		}
		entries = append(entries, e)
	}
	sha, err := c.s.git.writeTree(r, req.BaseTree, entries)
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
	list, err := c.s.git.list(r, sha, recursive)
	if err != nil {
		return nil, errNotFound()
	}
	api := c.s.api("/repos/%s/git", r.FullName())
	return obj{"sha": sha, "url": api + "/trees/" + sha, "truncated": false, "tree": each(list, func(l listing) obj {
		o := obj{"path": l.path, "mode": l.mode, "type": l.kind, "sha": l.sha, "url": api + "/" + l.kind + "s/" + l.sha}
		if l.kind == "blob" {
			o["size"] = l.size
		}
		return o
	})}, nil
}

func getTree(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	sha := c.s.git.ref(r, c.vars["sha"]+"^{tree}")
	if sha == "" || strings.HasPrefix(c.vars["sha"], "-") {
		return nil, errNotFound()
	}
	return c.treeJSON(r, sha, c.query("recursive") != "")
}

// whoSent is an author or committer as sent.
type whoSent struct {
	Name  string     `json:"name"`
	Email string     `json:"email"`
	Date  *time.Time `json:"date"`
}

func (w *whoSent) identity(or identity) identity {
	if w == nil {
		return or
	}
	id := identity{name: w.Name, email: w.Email, at: or.at}
	if w.Date != nil {
		id.at = w.Date.Truncate(time.Second)
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
	if kind, err := c.s.git.out(r, "cat-file", "-t", req.Tree); err != nil || kind != "tree" || !validSHA(req.Tree) {
		return nil, errUnprocessable("Tree SHA does not exist")
	}
	for _, p := range req.Parents {
		if !validSHA(p) || c.s.git.resolve(r, p) != p {
			return nil, errUnprocessable("Parent SHA does not exist or is not a commit object")
		}
	}
	n := newCommit{tree: req.Tree, parents: req.Parents, message: req.Message}
	n.author = req.Author.identity(c.identity())
	n.committer = req.Committer.identity(n.author)
	if c.viaApp() && req.Author == nil && req.Committer == nil && req.Signature == "" {
		n.committer, n.signed = c.s.webFlow(), true
	}
	sha, err := c.s.makeCommit(r, n)
	if err != nil {
		return nil, err
	}
	return c.created(c.s.gitCommitJSON(r, c.s.git.commit(r, sha)))
}

func getGitCommit(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	k := c.s.git.commit(r, c.vars["sha"])
	if k == nil {
		return nil, errNotFound()
	}
	return c.s.gitCommitJSON(r, k), nil
}
