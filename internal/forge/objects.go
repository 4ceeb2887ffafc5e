package forge

import (
	"context"
	"fmt"
)

// TreeEntry is a path's mode and object in a tree.
type TreeEntry struct {
	Mode string // octal, as git writes it
	ID   string // of the blob, or of a submodule's commit
}

// Tree reads the whole tree of a commit by path: files, symlinks and submodules. A tree that is too
// large for GitHub to list whole is read as far as it goes.
func (f *Forge) Tree(ctx context.Context, r Repo, commit string) (map[string]TreeEntry, error) {
	u, err := f.reads(ctx, r.Installation, "read tree", fmt.Sprintf("of %s in %s", commit, r.FullName()))
	if err != nil {
		return nil, err
	}
	got, _, err := u.client.Git.GetTree(u.ctx, r.Owner, r.Name, commit, true)
	if err != nil {
		return nil, u.wrap(err)
	}
	tree := make(map[string]TreeEntry, len(got.Entries))
	for _, e := range got.Entries {
		if e.GetType() != "tree" {
			tree[e.GetPath()] = TreeEntry{Mode: e.GetMode(), ID: e.GetSHA()}
		}
	}
	return tree, nil
}

// Blob reads a blob's content.
func (f *Forge) Blob(ctx context.Context, r Repo, id string) ([]byte, error) {
	u, err := f.reads(ctx, r.Installation, "read blob", fmt.Sprintf("%s in %s", id, r.FullName()))
	if err != nil {
		return nil, err
	}
	data, _, err := u.client.Git.GetBlobRaw(u.ctx, r.Owner, r.Name, id)
	if err != nil {
		return nil, u.wrap(err)
	}
	return data, nil
}
