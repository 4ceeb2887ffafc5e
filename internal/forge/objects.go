package forge

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-github/v66/github"
)

// TreeEntry is a path's mode and object in a tree.
type TreeEntry struct {
	Mode string // octal, as git writes it
	ID   string // of the blob, or of a submodule's commit
}

// maxTreeReads bounds the requests for one very large tree.
const maxTreeReads = 1000

// errTreeTooLarge is for a repository beyond all measure.
var errTreeTooLarge = errors.New("the tree is too large to be read")

// Tree reads the whole tree of a commit by path: files, symlinks and submodules. A tree that GitHub
// does not list in one answer is read folder by folder; it is never returned in part.
func (f *Forge) Tree(ctx context.Context, r Repo, commit string) (map[string]TreeEntry, error) {
	if tree := f.known.listing(r, commit); tree != nil {
		return tree, nil
	}
	u, err := f.reads(ctx, r.Installation, "read tree", fmt.Sprintf("of %s in %s", commit, r.FullName()))
	if err != nil {
		return nil, err
	}
	type folder struct{ path, id string }
	tree := map[string]TreeEntry{}
	todo := []folder{{"", commit}}
	for reads := 0; len(todo) > 0; {
		next := todo[0]
		todo = todo[1:]
		entries, whole, err := u.listTree(r, next.id)
		if err != nil {
			return nil, u.wrap(err)
		}
		if reads++; reads > maxTreeReads {
			return nil, u.wrap(errTreeTooLarge)
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
	f.known.noteListing(r, commit, tree)
	return tree, nil
}

// listTree lists a tree with all its folders, or, if that is too much for one answer, its top level.
func (u *use) listTree(r Repo, id string) (entries []*github.TreeEntry, whole bool, err error) {
	for _, recursive := range []bool{true, false} {
		got, _, err := u.client.Git.GetTree(u.ctx, r.Owner, r.Name, id, recursive)
		if err != nil {
			return nil, false, err
		}
		if !got.GetTruncated() {
			return got.Entries, recursive, nil
		}
	}
	return nil, false, errTreeTooLarge
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
