package forge

import (
	"context"
	"fmt"
	"strings"
)

// maxFiles bounds how many files are asked for at once.
const maxFiles = 20

// CommitFiles is what stands at a commit that work begins at.
type CommitFiles struct {
	// Names are those of what is at the root, folders too.
	Names []string
	// Texts are text files by their paths. Those that are not there, are no text or are too large for GitHub to
	// show whole are left out.
	Texts map[string]string
}

// CommitFiles returns what is at the root of a commit, and the files named, at most 20, in one request.
func (f *Forge) CommitFiles(ctx context.Context, r Repo, commit string, files []string) (CommitFiles, error) {
	if len(files) > maxFiles {
		return CommitFiles{}, fmt.Errorf("read files of %s: %d were named, %d can be", r.FullName(), len(files), maxFiles)
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
		Repository map[string]*baseNode `json:"repository"`
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

// baseNode is a file, or the folder at the root.
type baseNode struct {
	blobNode
	Entries []struct {
		Name string `json:"name"`
	} `json:"entries"`
}
