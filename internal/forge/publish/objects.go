package publish

import (
	"context"
	"fmt"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// TreeEntry is the mode and the object of a path in a tree.
type TreeEntry struct {
	Mode string // octal, as in git
	ID   string // of the blob, or of a submodule's commit
}

// maxTreeReads limits the requests for one tree.
const maxTreeReads = 1000

// Tree reads the whole tree of a commit by path: files, symlinks and submodules. It reads a tree that does not fit into
// one response directory by directory, and never returns a part of one.
func (p *Publisher) Tree(ctx context.Context, r client.Repo, commit string) (map[string]TreeEntry, error) {
	if tree := p.cache.cachedEntries(r, commit); tree != nil {
		return tree, nil
	}
	op, err := p.client.Read(ctx, r.Installation, "read tree", fmt.Sprintf("of %s in %s", commit, r.FullName()))
	if err != nil {
		return nil, err
	}
	type folder struct{ path, id string }
	tree := map[string]TreeEntry{}
	todo := []folder{{"", commit}}
	for reads := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		entries, whole, err := listTree(op, r, next.id)
		if err != nil {
			return nil, op.Wrap(err)
		}
		if reads++; reads > maxTreeReads {
			return nil, op.Wrap(errTreeTooLarge)
		}
		for _, e := range entries {
			path := next.path + e.GetPath()
			switch {
			case e.GetType() != "tree":
				tree[path] = TreeEntry{Mode: e.GetMode(), ID: e.GetSHA()}
			case !whole:
				todo = append(todo, folder{path + "/", e.GetSHA()})
			}
		}
	}
	p.cache.rememberListing(r, commit, tree)
	return tree, nil
}

// listTree lists a tree recursively, or only its top level if that does not fit into one response.
func listTree(op *client.Operation, r client.Repo, id string) (entries []*github.TreeEntry, complete bool, err error) {
	for _, recursive := range []bool{true, false} {
		got, _, err := op.GitHub.Git.GetTree(op.Ctx, r.Owner, r.Name, id, recursive)
		if err != nil {
			return nil, false, err
		}
		if !got.GetTruncated() {
			return got.Entries, recursive, nil
		}
	}
	return nil, false, errTreeTooLarge
}

// Blob reads the content of a blob.
func (p *Publisher) Blob(ctx context.Context, r client.Repo, id string) ([]byte, error) {
	op, err := p.client.Read(ctx, r.Installation, "read blob", fmt.Sprintf("%s in %s", id, r.FullName()))
	if err != nil {
		return nil, err
	}
	data, _, err := op.GitHub.Git.GetBlobRaw(op.Ctx, r.Owner, r.Name, id)
	if err != nil {
		return nil, op.Wrap(err)
	}
	return data, nil
}
