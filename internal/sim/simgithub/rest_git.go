package simgithub

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

func gitRoutes() []route {
	const git = "/repos/{owner}/{repo}/git"
	routes := []route{
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
	for i := range routes {
		routes[i].handle = withCommits(routes[i].handle)
	}
	return routes
}

// withCommits answers as the git database of an empty repository does.
func withCommits(handle handler) handler {
	return func(c *call) (any, error) {
		r, err := c.readable()
		if err == nil && r.isEmpty() {
			return nil, &Error{Status: http.StatusConflict, Message: "Git Repository is empty."}
		}
		return handle(c)
	}
}

// isEmpty reports whether a repository has no commits yet.
func (r *Repo) isEmpty() bool {
	if !r.wasEmpty {
		return false
	}
	refs, err := r.Git.Refs("refs/heads/")
	return err == nil && len(refs) == 0
}

// writable returns the repository in the path if the caller may change its contents.
func (c *call) writable() (*Repo, error) {
	r, err := c.repository()
	if err != nil {
		return nil, err
	}
	return r, c.need(r, "contents", "write", RoleWrite)
}

func (c *call) oneRef(r *Repo, name string) (any, error) {
	refs, err := r.Git.Refs(name)
	if err != nil {
		return nil, err
	}
	for _, f := range refs {
		if f.Name == name {
			return c.s.json.ref(r, f), nil
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
	refs, err := r.Git.Refs("refs/")
	if err != nil {
		return nil, err
	}
	var list []git.Ref
	for _, f := range refs {
		if strings.HasPrefix(f.Name, "refs/"+c.vars["ref"]) {
			list = append(list, f)
		}
	}
	return each(page(c, list), func(f git.Ref) obj { return c.s.json.ref(r, f) }), nil
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
	if r.Git.Object(req.Ref) != "" {
		return nil, errUnprocessable("Reference already exists")
	}
	if err := c.refs().update(r, git.RefChange{Name: req.Ref, Before: git.ZeroSHA, After: req.SHA}); err != nil {
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
	if r.Git.Object(name) == "" {
		return nil, errUnprocessable("Reference does not exist")
	}
	if err := c.refs().update(r, git.RefChange{Name: name, After: req.SHA, Force: req.Force}); err != nil {
		return nil, err
	}
	return c.oneRef(r, name)
}

func deleteRef(c *call) (any, error) {
	r, err := c.writable()
	if err != nil {
		return nil, err
	}
	return nil, c.refs().update(r, git.RefChange{Name: "refs/" + c.vars["ref"], After: git.ZeroSHA, Force: true})
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
	sha, err := r.Git.WriteBlob(content)
	if err != nil {
		return nil, err
	}
	return c.created(obj{"sha": sha, "url": c.s.json.api("/repos/%s/git/blobs/%s", r.FullName(), sha)})
}

func getBlob(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	content, err := r.Git.Blob(c.vars["sha"])
	if err != nil || !git.ValidSHA(c.vars["sha"]) {
		return nil, errNotFound()
	}
	if strings.Contains(c.r.Header.Get("Accept"), "raw") {
		c.header.Set("Content-Type", "application/vnd.github.raw; charset=utf-8")
		return content, nil
	}
	return obj{
		"sha": c.vars["sha"], "node_id": nodeID("B", 0) + c.vars["sha"], "size": len(content), "encoding": "base64",
		"url": c.s.json.api("/repos/%s/git/blobs/%s", r.FullName(), c.vars["sha"]), "content": wrapped(content),
	}, nil
}
