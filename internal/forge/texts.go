package forge

import (
	"context"
	"fmt"
	"strings"
)

// maxTexts bounds how many files are asked for at once.
const maxTexts = 20

// Texts returns text files of a commit by their paths, in one request. Those that are not there, are no text or
// are too large for GitHub to show whole are left out.
func (f *Forge) Texts(ctx context.Context, r Repo, rev string, paths []string) (map[string]string, error) {
	if len(paths) == 0 || len(paths) > maxTexts {
		return nil, fmt.Errorf("read files of %s: %d were named, between 1 and %d can be", r.FullName(), len(paths), maxTexts)
	}
	u, err := f.reads(ctx, r.Installation, "read files", r.FullName())
	if err != nil {
		return nil, err
	}
	vars := map[string]any{"owner": r.Owner, "name": r.Name}
	var params, fields strings.Builder
	for i, p := range paths {
		fmt.Fprintf(&params, ", $p%d: String!", i)
		fmt.Fprintf(&fields, " f%d: object(expression: $p%d) %s", i, i, blobFields)
		vars[fmt.Sprintf("p%d", i)] = rev + ":" + p
	}
	query := "query($owner: String!, $name: String!" + params.String() + ") { repository(owner: $owner, name: $name) {" + fields.String() + " } }"
	var data struct {
		Repository map[string]*blobNode `json:"repository"`
	}
	if err := f.graphql(u, query, vars, &data); err != nil {
		return nil, u.wrap(err)
	}
	if data.Repository == nil {
		return nil, u.gone()
	}
	texts := map[string]string{}
	for i, p := range paths {
		if b := data.Repository[fmt.Sprintf("f%d", i)]; b != nil && b.Type == "Blob" && b.Text != nil && !b.IsTruncated {
			texts[p] = *b.Text
		}
	}
	return texts, nil
}
