package forge

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// templateQuery lists the directories in which GitHub looks for a pull request template, in this order: those of the
// repository at a ref, then those of OWNER/.github.
const templateQuery = `query($owner: String!, $name: String!, $github: String!, $root: String!, $docs: String!) {
  repository(owner: $owner, name: $name) {
    github: object(expression: $github) ` + folderFields + `
    root: object(expression: $root) ` + folderFields + `
    docs: object(expression: $docs) ` + folderFields + `
  }
  org: repository(owner: $owner, name: ".github") {
    github: object(expression: "HEAD:.github") ` + folderFields + `
    root: object(expression: "HEAD:") ` + folderFields + `
    docs: object(expression: "HEAD:docs") ` + folderFields + `
  }
}`

const folderFields = `{ __typename ... on Tree { entries { name type } } }`

// templateFolders are the directories of one repository, nil if they do not exist.
type templateFolders struct {
	GitHub *folderNode `json:"github"`
	Root   *folderNode `json:"root"`
	Docs   *folderNode `json:"docs"`
}

type folderNode struct {
	Entries []struct {
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"entries"`
}

// path returns the path of the template, empty if there is none.
func (t *templateFolders) path() string {
	if t == nil {
		return ""
	}
	for _, place := range []struct {
		dir    string
		folder *folderNode
	}{{".github/", t.GitHub}, {"", t.Root}, {"docs/", t.Docs}} {
		if place.folder == nil {
			continue
		}
		for _, e := range place.folder.Entries {
			if e.Type == "blob" && isTemplate(e.Name) {
				return place.dir + e.Name
			}
		}
	}
	return ""
}

// isTemplate reports whether name is the name of a pull request template.
func isTemplate(name string) bool {
	switch strings.ToLower(name) {
	case "pull_request_template.md", "pull_request_template.txt", "pull_request_template":
		return true
	}
	return false
}

// PRTemplate returns the pull request template that applies at a ref (empty: the default branch): the one of the
// repository, or else of OWNER/.github. It is empty if there is none.
func (f *Forge) PRTemplate(ctx context.Context, r Repo, ref string) (string, error) {
	op, err := f.client.Read(ctx, r.Installation, "look for a pull-request template", "in "+r.FullName())
	if err != nil {
		return "", err
	}
	at := ref
	if at == "" {
		at = "HEAD"
	}
	var data struct {
		Repository *templateFolders `json:"repository"`
		Org        *templateFolders `json:"org"`
	}
	queryErr := op.GraphQL(templateQuery, map[string]any{
		"owner": r.Owner, "name": r.Name, "github": at + ":.github", "root": at + ":", "docs": at + ":docs",
	}, &data)
	if err := client.IgnoreMissing(queryErr, "org"); err != nil {
		return "", op.Wrap(err)
	}
	if path := data.Repository.path(); path != "" {
		content, _, err := f.File(ctx, r, ref, path)
		return string(content), notFoundIsNone(err)
	}
	org := orgRepo(r)
	if path := data.Org.path(); path != "" {
		content, _, err := f.File(ctx, org, "", path)
		return string(content), notFoundIsNone(err)
	}
	if data.Org == nil && client.Forbidden(queryErr) { // GraphQL may be stricter than REST about what is public
		return f.templateIn(op, org)
	}
	return "", nil
}

// notFoundIsNone returns nil for ErrNotFound, and other errors unchanged.
func notFoundIsNone(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// templateIn looks for a template in the directories of a repository one by one.
func (f *Forge) templateIn(op *client.Operation, r Repo) (string, error) {
	for _, dir := range []string{".github", "", "docs"} {
		_, list, _, err := op.GitHub.Repositories.GetContents(op.Ctx, r.Owner, r.Name, dir, &github.RepositoryContentGetOptions{})
		if s := client.StatusOf(err); s == http.StatusForbidden || s == http.StatusNotFound {
			continue
		}
		if err != nil {
			return "", op.Wrap(err)
		}
		for _, entry := range list {
			if entry.GetType() == "file" && isTemplate(entry.GetName()) {
				content, _, err := f.File(op.Ctx, r, "", entry.GetPath())
				return string(content), notFoundIsNone(err)
			}
		}
	}
	return "", nil
}
