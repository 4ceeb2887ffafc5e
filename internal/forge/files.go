package forge

import (
	"context"
	"fmt"
	"strings"
)

// maxFiles is the maximum number of files per request.
const maxFiles = 20

// CommitFiles are files of a commit.
type CommitFiles struct {
	// Names are the names of the files and directories at the root.
	Names []string
	// Texts are the contents of the requested text files, by path. Files that do not exist, are binary, or are too
	// large for one response are omitted.
	Texts map[string]string
}

// CommitFiles returns the names at the root of a commit and the contents of at most 20 files, in one request.
func (f *Forge) CommitFiles(ctx context.Context, r Repo, commit string, files []string) (CommitFiles, error) {
	if len(files) > maxFiles {
		return CommitFiles{}, fmt.Errorf("read files of %s: %d files, but the maximum is %d", r.FullName(), len(files), maxFiles)
	}
	op, err := f.client.Read(ctx, r.Installation, "read files", r.FullName())
	if err != nil {
		return CommitFiles{}, err
	}
	vars := map[string]any{"owner": r.Owner, "name": r.Name, "root": commit + ":"}
	var params, fields strings.Builder
	for i, p := range files {
		fmt.Fprintf(&params, ", $p%d: String!", i)
		fmt.Fprintf(&fields, " f%d: object(expression: $p%d) %s", i, i, blobFields)
		vars[fmt.Sprintf("p%d", i)] = commit + ":" + p
	}
	query := "query($owner: String!, $name: String!, $root: String!" + params.String() + ") { repository(owner: $owner, name: $name) {" +
		" root: object(expression: $root) { __typename ... on Tree { entries { name } } }" + fields.String() + " } }"
	var data struct {
		Repository map[string]*fileNode `json:"repository"`
	}
	if err := op.GraphQL(query, vars, &data); err != nil {
		return CommitFiles{}, op.Wrap(err)
	}
	if data.Repository == nil || data.Repository["root"] == nil {
		return CommitFiles{}, op.Deleted()
	}
	b := CommitFiles{Texts: map[string]string{}}
	for _, e := range data.Repository["root"].Entries {
		b.Names = append(b.Names, e.Name)
	}
	for i, p := range files {
		if n := data.Repository[fmt.Sprintf("f%d", i)]; n != nil && n.Type == "Blob" && n.Text != nil && !n.IsTruncated {
			b.Texts[p] = *n.Text
		}
	}
	return b, nil
}

// fileNode is a file, or the directory at the root.
type fileNode struct {
	blobNode
	Entries []struct {
		Name string `json:"name"`
	} `json:"entries"`
}
