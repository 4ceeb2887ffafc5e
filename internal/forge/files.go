package forge

import (
	"context"
	"fmt"
	"strings"
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

// FilePaths returns the paths of the files of a commit, in one request. GitHub lists at most 100,000 files.
func (f *Forge) FilePaths(ctx context.Context, r Repo, commit string) ([]string, error) {
	op, err := f.client.Read(ctx, r.Installation, "list files", r.FullName())
	if err != nil {
		return nil, err
	}
	tree, _, err := op.GitHub.Git.GetTree(op.Ctx, r.Owner, r.Name, commit, true)
	if err != nil {
		return nil, op.Wrap(err)
	}
	var paths []string
	for _, e := range tree.Entries {
		if e.GetType() == "blob" {
			paths = append(paths, e.GetPath())
		}
	}
	return paths, nil
}
