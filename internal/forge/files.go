package forge

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// maxFiles is the maximum number of files per request.
const maxFiles = 20

// CommitFiles returns the contents of at most 20 text files of a commit, by path, in one request. Files that do not
// exist, are binary, or are too large for one response are omitted.
func (f *Forge) CommitFiles(ctx context.Context, r Repo, commit string, files []string) (map[string]string, error) {
	if len(files) > maxFiles {
		return nil, fmt.Errorf("read files of %s: %d files, but the maximum is %d", r.FullName(), len(files), maxFiles)
	}
	op, err := f.client.Read(ctx, r.Installation, "read files", r.FullName())
	if err != nil {
		return nil, err
	}
	vars := map[string]any{"owner": r.Owner, "name": r.Name, "root": commit + ":"}
	var params, fields strings.Builder
	for i, p := range files {
		fmt.Fprintf(&params, ", $p%d: String!", i)
		fmt.Fprintf(&fields, " f%d: object(expression: $p%d) %s", i, i, blobFields)
		vars[fmt.Sprintf("p%d", i)] = commit + ":" + p
	}
	query := "query($owner: String!, $name: String!, $root: String!" + params.String() + ") { repository(owner: $owner, name: $name) {" +
		" root: object(expression: $root) { __typename }" + fields.String() + " } }"
	var data struct {
		Repository map[string]*blobNode `json:"repository"`
	}
	if err := op.GraphQL(query, vars, &data); err != nil {
		return nil, op.Wrap(err)
	}
	if data.Repository == nil || data.Repository["root"] == nil {
		return nil, op.Deleted()
	}
	texts := map[string]string{}
	for i, p := range files {
		if n := data.Repository[fmt.Sprintf("f%d", i)]; n != nil && n.Type == "Blob" && n.Text != nil && !n.IsTruncated {
			texts[p] = *n.Text
		}
	}
	return texts, nil
}

// Limits on the requests for the files of a commit: their number, and the time after which no further one begins.
const (
	maxTreeReads = 30
	maxTreeTime  = 45 * time.Second
)

// FilePaths returns the paths of the files of a commit, usually in one request. GitHub lists at most 100,000 files at a time: in a
// larger repository the folders are read one by one, those near the root first, and folders beyond these limits are left out.
func (f *Forge) FilePaths(ctx context.Context, r Repo, commit string) ([]string, error) {
	op, err := f.client.Read(ctx, r.Installation, "list files", r.FullName())
	if err != nil {
		return nil, err
	}
	type folder struct{ sha, path string }
	var paths []string
	folders := []folder{{sha: commit}}
	for reads, began := 0, time.Now(); len(folders) > 0 && reads < maxTreeReads && time.Since(began) < maxTreeTime; reads++ {
		at := folders[0]
		folders = folders[1:]
		tree, _, err := op.GitHub.Git.GetTree(op.Ctx, r.Owner, r.Name, at.sha, true)
		whole := err != nil || !tree.GetTruncated()
		if !whole {
			reads++
			tree, _, err = op.GitHub.Git.GetTree(op.Ctx, r.Owner, r.Name, at.sha, false)
		}
		if err != nil {
			return nil, op.Wrap(err)
		}
		for _, e := range tree.Entries {
			switch {
			case e.GetType() == "blob":
				paths = append(paths, at.path+e.GetPath())
			case e.GetType() == "tree" && !whole:
				folders = append(folders, folder{e.GetSHA(), at.path + e.GetPath() + "/"})
			}
		}
	}
	return paths, nil
}
