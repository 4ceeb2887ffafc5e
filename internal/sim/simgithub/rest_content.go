package simgithub

import (
	"encoding/base64"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

func contentRoutes() []route {
	return []route{
		{"GET", "/repos/{owner}/{repo}/contents", getContents},
		{"GET", "/repos/{owner}/{repo}/contents/{path...}", getContents},
		{"GET", "/repos/{owner}/{repo}/compare/{basehead...}", compare},
	}
}

func getContents(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	ref := c.query("ref")
	if ref == "" {
		ref = r.DefaultBranch
	}
	commit := r.Git.Resolve(ref)
	if commit == "" && r.isEmpty() {
		return nil, &Error{Status: 404, Message: "This repository is empty."}
	}
	if commit == "" {
		return nil, &Error{Status: 404, Message: "No commit found for the ref " + ref}
	}
	path := strings.Trim(c.vars["path"], "/")
	if path == "" {
		return c.directory(r, commit, ref, "")
	}
	list, err := r.Git.List(commit, false, path)
	if err != nil || len(list) != 1 {
		return nil, errNotFound()
	}
	if list[0].Kind == "tree" {
		return c.directory(r, commit, ref, path+"/")
	}
	content, err := r.Git.Blob(list[0].SHA)
	if err != nil {
		return nil, errNotFound()
	}
	if strings.Contains(c.r.Header.Get("Accept"), "raw") {
		c.header.Set("Content-Type", "application/vnd.github.raw; charset=utf-8")
		return content, nil
	}
	o := c.entryJSON(r, list[0], ref)
	o["encoding"], o["content"] = "base64", wrapped(content)
	return o, nil
}

// wrapped returns base64 in lines of 60 characters, as GitHub writes it.
func wrapped(content []byte) string {
	enc := base64.StdEncoding.EncodeToString(content)
	var b strings.Builder
	for len(enc) > 60 {
		b.WriteString(enc[:60] + "\n")
		enc = enc[60:]
	}
	b.WriteString(enc + "\n")
	return b.String()
}

func (c *call) directory(r *Repo, commit, ref, prefix string) (any, error) {
	var paths []string
	if prefix != "" {
		paths = []string{prefix}
	}
	list, err := r.Git.List(commit, false, paths...)
	if err != nil {
		return nil, err
	}
	return each(list, func(l git.Entry) obj { return c.entryJSON(r, l, ref) }), nil
}

func (c *call) entryJSON(r *Repo, l git.Entry, ref string) obj {
	kind := map[string]string{"blob": "file", "tree": "dir", "commit": "submodule"}[l.Kind]
	if l.Mode == "120000" {
		kind = "symlink"
	}
	api := c.s.json.api("/repos/%s/contents/%s?ref=%s", r.FullName(), l.Path, ref)
	object := c.s.json.api("/repos/%s/git/%ss/%s", r.FullName(), l.Kind, l.SHA)
	page := c.s.json.html("/%s/blob/%s/%s", r.FullName(), ref, l.Path)
	return obj{
		"name": l.Path[strings.LastIndex(l.Path, "/")+1:], "path": l.Path, "sha": l.SHA, "size": l.Size, "url": api,
		"html_url": page, "git_url": object, "download_url": c.s.json.html("/%s/raw/%s/%s", r.FullName(), ref, l.Path), "type": kind,
		"_links": obj{"self": api, "git": object, "html": page},
	}
}

// compare serves base...head: the distance in commits, the commits and the files.
func compare(c *call) (any, error) {
	r, err := c.readable()
	if err != nil {
		return nil, err
	}
	left, right, ok := strings.Cut(c.vars["basehead"], "...")
	if !ok {
		return nil, errNotFound()
	}
	left, right = strings.TrimPrefix(left, r.Owner+":"), strings.TrimPrefix(right, r.Owner+":")
	base, head := r.Git.Commit(left), r.Git.Commit(right)
	if base == nil || head == nil {
		return nil, errNotFound()
	}
	mergeBase := r.Git.MergeBase(base.SHA, head.SHA)
	if mergeBase == "" {
		return nil, &Error{Status: 404, Message: "No common ancestor between " + left + " and " + right + "."}
	}
	return c.comparison(r, base, head, r.Git.Commit(mergeBase))
}

func (c *call) comparison(r *Repo, base, head, mergeBase *git.Commit) (any, error) {
	ahead, behind, err := r.Git.CountBetween(base.SHA, head.SHA)
	if err != nil {
		return nil, err
	}
	commits, err := r.Git.Commits(250, "--reverse", base.SHA+".."+head.SHA)
	if err != nil {
		return nil, err
	}
	files, err := r.Git.Diff(mergeBase.SHA, head.SHA)
	if err != nil {
		return nil, err
	}
	status := "identical"
	switch {
	case ahead > 0 && behind > 0:
		status = "diverged"
	case ahead > 0:
		status = "ahead"
	case behind > 0:
		status = "behind"
	}
	page := c.s.json.html("/%s/compare/%s...%s", r.FullName(), base.SHA, head.SHA)
	return obj{
		"url":      c.s.json.api("/repos/%s/compare/%s...%s", r.FullName(), base.SHA, head.SHA),
		"html_url": page, "permalink_url": page, "diff_url": page + ".diff", "patch_url": page + ".patch",
		"base_commit": c.s.json.commit(r, base), "merge_base_commit": c.s.json.commit(r, mergeBase), "status": status,
		"ahead_by": ahead, "behind_by": behind, "total_commits": ahead,
		"commits": each(commits, func(k git.Commit) obj { return c.s.json.commit(r, &k) }),
		"files":   each(files, func(f git.FileChange) obj { return c.s.json.file(r, f, head.SHA) }),
	}, nil
}
