package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// File returns a file's content at a ref (empty: the default branch) and its blob id. What does not
// exist, and what is not a file, is ErrNotFound.
func (f *Forge) File(ctx context.Context, r Repo, ref, path string) (content []byte, sha string, err error) {
	op, err := f.client.Read(ctx, r.Installation, "read file", path+" of "+r.FullName())
	if err != nil {
		return nil, "", err
	}
	file, _, _, err := op.GitHub.Repositories.GetContents(op.Ctx, r.Owner, r.Name, path, &github.RepositoryContentGetOptions{Ref: ref})
	if err != nil {
		return nil, "", op.Wrap(err)
	}
	if file == nil || file.GetType() != "file" {
		return nil, "", op.Deleted()
	}
	if file.GetEncoding() == "none" || (file.Content == nil && file.GetSize() > 0) { // over 1 MB
		content, _, err = op.GitHub.Git.GetBlobRaw(op.Ctx, r.Owner, r.Name, file.GetSHA())
		return content, file.GetSHA(), op.Wrap(err)
	}
	text, err := file.GetContent()
	return []byte(text), file.GetSHA(), op.Wrap(err)
}

// orgFile is File for the default branch of OWNER/.github, nil if there is none. The App need not be
// installed there.
func (f *Forge) orgFile(ctx context.Context, r Repo, path string) ([]byte, error) {
	content, _, err := f.File(ctx, Repo{Installation: r.Installation, Owner: r.Owner, Name: ".github"}, "", path)
	if errors.Is(err, ErrNotFound) || client.StatusOf(err) == http.StatusForbidden {
		return nil, nil
	}
	return content, err
}

// Comparison is what head has over base since they parted.
type Comparison struct {
	AheadBy   int // commits of head that base has not
	BehindBy  int // and the other way round
	MergeBase string
	Files     []ChangedFile // at most 300, as GitHub lists them
	Truncated bool          // there are more files than that
}

// ChangedFile is one file of a comparison.
type ChangedFile struct {
	Path    string
	OldPath string // of a renamed file
	Status  string // added, modified, removed, renamed …
	Patch   string // empty for binary and very large files
}

// maxCompared is how many files GitHub lists in a comparison.
const maxCompared = 300

// ChangedSince compares two commits (or branches): what happened from base to head.
func (f *Forge) ChangedSince(ctx context.Context, r Repo, base, head string) (Comparison, error) {
	op, err := f.client.Read(ctx, r.Installation, "compare", fmt.Sprintf("%s with %s in %s", base, head, r.FullName()))
	if err != nil {
		return Comparison{}, err
	}
	got, _, err := op.GitHub.Repositories.CompareCommits(op.Ctx, r.Owner, r.Name, base, head, &github.ListOptions{PerPage: 1})
	if err != nil {
		return Comparison{}, op.Wrap(err)
	}
	out := Comparison{
		AheadBy: got.GetAheadBy(), BehindBy: got.GetBehindBy(), MergeBase: got.GetMergeBaseCommit().GetSHA(),
		Truncated: len(got.Files) >= maxCompared,
	}
	for _, c := range got.Files {
		out.Files = append(out.Files, ChangedFile{Path: c.GetFilename(), OldPath: c.GetPreviousFilename(), Status: c.GetStatus(), Patch: c.GetPatch()})
	}
	return out, nil
}

// Branch is a branch and its head.
type Branch struct {
	Name string
	SHA  string
}

// Branches lists the branches whose names begin with prefix (all of them for the empty one).
func (f *Forge) Branches(ctx context.Context, r Repo, prefix string) ([]Branch, error) {
	op, err := f.client.Read(ctx, r.Installation, "list branches", fmt.Sprintf("%s* of %s", prefix, r.FullName()))
	if err != nil {
		return nil, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.Reference, *github.Response, error) {
		return op.GitHub.Git.ListMatchingRefs(op.Ctx, r.Owner, r.Name, &github.ReferenceListOptions{Ref: "heads/" + prefix, ListOptions: o})
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	var out []Branch
	for _, ref := range list {
		out = append(out, Branch{Name: strings.TrimPrefix(ref.GetRef(), "refs/heads/"), SHA: ref.GetObject().GetSHA()})
	}
	return out, nil
}
