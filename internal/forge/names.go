package forge

import "context"

// Names returns the names of what is at the root of a commit, folders too.
func (f *Forge) Names(ctx context.Context, r Repo, commit string) ([]string, error) {
	u, err := f.reads(ctx, r.Installation, "list files", commit+" of "+r.FullName())
	if err != nil {
		return nil, err
	}
	got, _, err := u.client.Git.GetTree(u.ctx, r.Owner, r.Name, commit, false)
	if err != nil {
		return nil, u.wrap(err)
	}
	names := make([]string, 0, len(got.Entries))
	for _, e := range got.Entries {
		names = append(names, e.GetPath())
	}
	return names, nil
}
