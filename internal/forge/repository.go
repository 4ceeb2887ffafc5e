package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/state"
)

// Repo reads a repository by its id, whatever it is called now.
func (f *Forge) Repo(ctx context.Context, installation, id int64) (state.Repo, error) {
	u, err := f.reads(ctx, installation, "read repository", fmt.Sprint(id))
	if err != nil {
		return state.Repo{}, err
	}
	got, _, err := u.client.Repositories.GetByID(u.ctx, id)
	if err != nil {
		return state.Repo{}, u.wrap(err)
	}
	return repoState(got), nil
}

// RepoByName reads a repository by its name.
func (f *Forge) RepoByName(ctx context.Context, installation int64, owner, name string) (state.Repo, error) {
	u, err := f.reads(ctx, installation, "read repository", owner+"/"+name)
	if err != nil {
		return state.Repo{}, err
	}
	got, _, err := u.client.Repositories.Get(u.ctx, owner, name)
	if err != nil {
		return state.Repo{}, u.wrap(err)
	}
	return repoState(got), nil
}

// Head returns the commit that a branch is at. A branch that does not exist is ErrNotFound.
func (f *Forge) Head(ctx context.Context, r Repo, branch string) (sha string, err error) {
	u, err := f.reads(ctx, r.Installation, "read branch", branch+" of "+r.FullName())
	if err != nil {
		return "", err
	}
	sha, err = u.head(r, branch)
	return sha, u.wrap(err)
}

func (u *use) head(r Repo, branch string) (string, error) {
	ref, _, err := u.client.Git.GetRef(u.ctx, r.Owner, r.Name, "heads/"+branch)
	if err != nil {
		return "", err
	}
	return ref.GetObject().GetSHA(), nil
}

// File returns a file's content at a ref (empty: the default branch) and its blob id. What does not
// exist, and what is not a file, is ErrNotFound.
func (f *Forge) File(ctx context.Context, r Repo, ref, path string) (content []byte, sha string, err error) {
	u, err := f.reads(ctx, r.Installation, "read file", path+" of "+r.FullName())
	if err != nil {
		return nil, "", err
	}
	file, _, _, err := u.client.Repositories.GetContents(u.ctx, r.Owner, r.Name, path, &github.RepositoryContentGetOptions{Ref: ref})
	if err != nil {
		return nil, "", u.wrap(err)
	}
	if file == nil || file.GetType() != "file" {
		return nil, "", u.gone()
	}
	if file.GetEncoding() == "none" || (file.Content == nil && file.GetSize() > 0) { // over 1 MB
		content, _, err = u.client.Git.GetBlobRaw(u.ctx, r.Owner, r.Name, file.GetSHA())
		return content, file.GetSHA(), u.wrap(err)
	}
	text, err := file.GetContent()
	return []byte(text), file.GetSHA(), u.wrap(err)
}

// OrgFile is File for the default branch of OWNER/.github. The App need not be installed there.
func (f *Forge) OrgFile(ctx context.Context, r Repo, path string) ([]byte, string, error) {
	content, sha, err := f.File(ctx, Repo{Installation: r.Installation, Owner: r.Owner, Name: ".github"}, "", path)
	if statusOf(err) == http.StatusForbidden {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return content, sha, err
}

// PRTemplate returns the pull-request template that applies at a ref: the repository's own, in the
// places and any spelling that GitHub looks at, else the owner's. Without one it is empty.
func (f *Forge) PRTemplate(ctx context.Context, r Repo, ref string) (string, error) {
	text, err := f.templateIn(ctx, r, ref)
	if err != nil || text != "" {
		return text, err
	}
	text, err = f.templateIn(ctx, Repo{Installation: r.Installation, Owner: r.Owner, Name: ".github"}, "")
	if s := statusOf(err); s == http.StatusForbidden || s == http.StatusNotFound {
		return "", nil
	}
	return text, err
}

func (f *Forge) templateIn(ctx context.Context, r Repo, ref string) (string, error) {
	u, err := f.reads(ctx, r.Installation, "look for a pull-request template", "in "+r.FullName())
	if err != nil {
		return "", err
	}
	for _, dir := range []string{".github", "", "docs"} {
		_, list, _, err := u.client.Repositories.GetContents(u.ctx, r.Owner, r.Name, dir, &github.RepositoryContentGetOptions{Ref: ref})
		if statusOf(err) == http.StatusNotFound {
			continue
		}
		if err != nil {
			return "", u.wrap(err)
		}
		for _, entry := range list {
			name := strings.ToLower(entry.GetName())
			if entry.GetType() != "file" || (name != "pull_request_template.md" && name != "pull_request_template.txt" && name != "pull_request_template") {
				continue
			}
			content, _, err := f.File(ctx, r, ref, entry.GetPath())
			if errors.Is(err, ErrNotFound) {
				continue
			}
			return string(content), err
		}
	}
	return "", nil
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
	u, err := f.reads(ctx, r.Installation, "compare", fmt.Sprintf("%s with %s in %s", base, head, r.FullName()))
	if err != nil {
		return Comparison{}, err
	}
	got, _, err := u.client.Repositories.CompareCommits(u.ctx, r.Owner, r.Name, base, head, &github.ListOptions{PerPage: 1})
	if err != nil {
		return Comparison{}, u.wrap(err)
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
