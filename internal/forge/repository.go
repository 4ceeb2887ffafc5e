package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// File returns the content of a file at a ref (empty: the default branch) and its blob ID. It returns ErrNotFound if
// there is no file at path.
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

// Found is a repository as the App can reach it.
type Found struct {
	Repo
	DefaultBranch string
	Archived      bool
	Private       bool
	URL           string // its page
}

// FindRepo returns a repository, OWNER/NAME, with the App's installation. It returns ErrNotInstalled if the App is not installed there, or if
// the repository does not exist.
func (f *Forge) FindRepo(ctx context.Context, fullName string) (Found, error) {
	owner, name, _ := strings.Cut(fullName, "/")
	op, err := f.client.Read(ctx, 0, "find the installation", "of "+fullName)
	if err != nil {
		return Found{}, err
	}
	in, _, err := op.GitHub.Apps.FindRepositoryInstallation(op.Ctx, owner, name)
	if client.StatusOf(err) == http.StatusNotFound {
		return Found{}, fmt.Errorf("%w: %s", ErrNotInstalled, fullName)
	}
	if err != nil {
		return Found{}, op.Wrap(err)
	}
	if op, err = f.client.Read(ctx, in.GetID(), "read repository", fullName); err != nil {
		return Found{}, err
	}
	got, _, err := op.GitHub.Repositories.Get(op.Ctx, owner, name)
	if err != nil {
		return Found{}, op.Wrap(err)
	}
	return Found{
		Repo:          Repo{Installation: in.GetID(), Owner: got.GetOwner().GetLogin(), Name: got.GetName(), ID: got.GetID()},
		DefaultBranch: got.GetDefaultBranch(), Archived: got.GetArchived(), Private: got.GetPrivate(), URL: got.GetHTMLURL(),
	}, nil
}

// OrgFile returns a file of the default branch of OWNER/.github, nil if there is none. The App need not be installed
// there.
func (f *Forge) OrgFile(ctx context.Context, r Repo, path string) ([]byte, error) {
	content, _, err := f.File(ctx, orgRepo(r), "", path)
	if errors.Is(err, ErrNotFound) || client.StatusOf(err) == http.StatusForbidden {
		return nil, nil
	}
	return content, err
}

// orgRepo returns OWNER/.github for the owner of a repository.
func orgRepo(r Repo) Repo {
	return Repo{Installation: r.Installation, Owner: r.Owner, Name: ".github"}
}

// Comparison is the difference between two commits, base and head.
type Comparison struct {
	AheadBy   int // commits that only head has
	BehindBy  int // commits that only base has
	MergeBase string
	Files     []ChangedFile // changed since MergeBase; at most 300
	Truncated bool          // there can be more files
}

// ChangedFile is a file of a comparison.
type ChangedFile struct {
	Path    string
	OldPath string // of a renamed file
	Status  string // added, modified, removed, renamed …
	Patch   string // empty for binary and very large files
}

// maxCompared is the maximum number of files that GitHub returns for a comparison.
const maxCompared = 300

// ChangedSince returns the changes from base to head, which are commits or branches.
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
		out.Files = append(out.Files, ChangedFile{
			Path: c.GetFilename(), OldPath: c.GetPreviousFilename(), Status: c.GetStatus(), Patch: c.GetPatch(),
		})
	}
	return out, nil
}

// Commit is a commit, without its files.
type Commit struct {
	ID, Tree          string
	Parents           []string
	Author, Committer state.Person // the accounts; zero if GitHub knows none
}

// Commit reads a commit.
func (f *Forge) Commit(ctx context.Context, r Repo, id string) (Commit, error) {
	op, err := f.client.Read(ctx, r.Installation, "read commit", id+" of "+r.FullName())
	if err != nil {
		return Commit{}, err
	}
	got, _, err := op.GitHub.Repositories.GetCommit(op.Ctx, r.Owner, r.Name, id, &github.ListOptions{PerPage: 1})
	if err != nil {
		return Commit{}, op.Wrap(err)
	}
	out := Commit{ID: got.GetSHA(), Tree: got.GetCommit().GetTree().GetSHA()}
	for _, p := range got.Parents {
		out.Parents = append(out.Parents, p.GetSHA())
	}
	if got.Author != nil {
		out.Author = person(got.Author)
	}
	if got.Committer != nil {
		out.Committer = person(got.Committer)
	}
	return out, nil
}

// Branch is a branch and its head.
type Branch struct {
	Name string
	SHA  string
}

// Branches returns the branches whose names begin with prefix.
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

// HasLabel reports whether a repository has a label.
func (f *Forge) HasLabel(ctx context.Context, r Repo, name string) (bool, error) {
	op, err := f.client.Read(ctx, r.Installation, "read label", name+" of "+r.FullName())
	if err != nil {
		return false, err
	}
	_, _, err = op.GitHub.Issues.GetLabel(op.Ctx, r.Owner, r.Name, url.PathEscape(name))
	if err = op.Wrap(err); errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// CreateLabel creates a label in a repository.
func (f *Forge) CreateLabel(ctx context.Context, r Repo, name, description string) error {
	op, err := f.client.Write(ctx, r.Installation, "create label", name+" in "+r.FullName())
	if err != nil {
		return err
	}
	_, _, err = op.GitHub.Issues.CreateLabel(op.Ctx, r.Owner, r.Name, &github.Label{Name: &name, Description: &description})
	return op.Wrap(err)
}
