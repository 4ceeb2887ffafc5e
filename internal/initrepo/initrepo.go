// Package initrepo proposes a repository's settings: it examines the files of the default branch through GitHub's API, tries the
// commands in a sandbox, and opens a pull request with a commented `.errand.yml`.
//
// Nothing of the repository runs on the host: its files are only read, and its commands run in a sandbox with separate files,
// processes and network, or not at all. The pull request's branch is replaced only if errand wrote all that is on it.
//
// Start with Proposer.
package initrepo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/scan"
	"github.com/errand-bot/errand/state/settings"
)

// GitHub has the calls of GitHub's API that a Proposer needs.
type GitHub interface {
	FindRepo(ctx context.Context, fullName string) (forge.Found, error)
	Installation(ctx context.Context, id int64) (forge.Installation, error)
	Head(ctx context.Context, r forge.Repo, branch string) (string, error)
	FilePaths(ctx context.Context, r forge.Repo, commit string) ([]string, error)
	CommitFiles(ctx context.Context, r forge.Repo, commit string, files []string) (map[string]string, error)
	OrgFile(ctx context.Context, r forge.Repo, path string) ([]byte, error)
	ChangedSince(ctx context.Context, r forge.Repo, base, head string) (forge.Comparison, error)
	CommitMessage(ctx context.Context, r forge.Repo, commit string) (message, parent string, err error)
	RecentMessages(ctx context.Context, r forge.Repo, commit string) ([]string, error)
	CommitFile(ctx context.Context, r forge.Repo, c forge.FileCommit) (string, error)
	MoveBranch(ctx context.Context, r forge.Repo, branch, before, after string) error
	PRByHead(ctx context.Context, r forge.Repo, branch string) (*forge.PR, error)
	OpenPR(ctx context.Context, r forge.Repo, want forge.NewPR) (forge.PR, error)
	EditPR(ctx context.Context, r forge.Repo, number int, title, body string) (forge.PR, error)
}

var _ GitHub = (*forge.Forge)(nil)

// A Proposer proposes settings of repositories.
type Proposer struct {
	GitHub GitHub
	// Parse reads a `.errand.yml` over the operator's defaults.
	Parse func(file []byte) (settings.Settings, error)
	// Plan is the operator's default.
	Plan settings.PlanMode
	// Start tells people how to give errand an issue, in one sentence.
	Start string
}

// A Target is the repository and the commit that is examined.
type Target struct {
	forge.Found
	Commit string // of the default branch
	// Present is the `.errand.yml` of the commit, empty if it has none.
	Present string
}

// Find returns the newest commit of a repository's default branch. Unless readOnly is set, the App must be able to open a pull
// request there.
func (p *Proposer) Find(ctx context.Context, name string, readOnly bool) (Target, error) {
	found, err := p.GitHub.FindRepo(ctx, name)
	switch {
	case errors.Is(err, forge.ErrNotInstalled):
		return Target{}, fmt.Errorf("errand has no access to %s: check the name, or install the App there", name)
	case err != nil:
		return Target{}, explained("find the repository", err)
	case found.Archived && !readOnly:
		return Target{}, fmt.Errorf("%s is archived, so nothing can be changed there: unarchive it in its settings first, or use --dry-run", found.FullName())
	}
	in, err := p.GitHub.Installation(ctx, found.Installation)
	if err != nil {
		return Target{}, explained("read the App's permissions", err)
	}
	if lacking := lackingPermissions(in, readOnly); len(lacking) > 0 {
		return Target{}, fmt.Errorf("the App lacks permissions on %s: %s\nAn owner of %s grants them at %s", found.FullName(), strings.Join(lacking, ", "), found.Owner, in.URL)
	}
	t := Target{Found: found}
	t.Commit, err = p.GitHub.Head(ctx, found.Repo, found.DefaultBranch)
	if isEmpty(err) {
		return t, fmt.Errorf("%s has no commits on %s yet: push a first commit, then run this again", found.FullName(), cmp.Or(found.DefaultBranch, "its default branch"))
	}
	if err != nil {
		return t, explained("read the default branch", err)
	}
	return t, nil
}

// isEmpty reports whether a branch could not be read because it does not exist. GitHub answers 409 if the repository has no commits.
func isEmpty(err error) bool {
	var e *forge.Error
	return errors.Is(err, forge.ErrNotFound) || errors.As(err, &e) && e.Status == 409
}

// lackingPermissions returns the permissions that a pull request needs and that are not granted.
func lackingPermissions(in forge.Installation, readOnly bool) (list []string) {
	for _, m := range in.MissingPermissions() {
		needed := m.Permission == "contents" || m.Permission == "pull_requests" && !readOnly
		if needed && !(readOnly && m.Granted == "read") {
			list = append(list, strings.ReplaceAll(m.String(), "`", ""))
		}
	}
	return list
}

// filesAtOnce is the number of files that one request may read.
const filesAtOnce = 20

// manyFiles is the number of files from which GitHub may not have listed all.
const manyFiles = 100_000

// Examine reads the files of a target that matter, and reports what they say.
func (p *Proposer) Examine(ctx context.Context, t *Target) (scan.Report, error) {
	paths, err := p.GitHub.FilePaths(ctx, t.Repo, t.Commit)
	if err != nil {
		return scan.Report{}, explained("list the files", err)
	}
	tree := scan.Tree{Paths: paths, Files: map[string]string{}}
	if tree.Messages, err = p.GitHub.RecentMessages(ctx, t.Repo, t.Commit); err != nil {
		return scan.Report{}, explained("list the newest commits", err)
	}
	for part := range slices.Chunk(scan.Wanted(paths), filesAtOnce) {
		texts, err := p.GitHub.CommitFiles(ctx, t.Repo, t.Commit, part)
		if err != nil {
			return scan.Report{}, explained("read files", err)
		}
		for path, text := range texts {
			tree.Files[path] = text
		}
	}
	t.Present = tree.Files[scan.SettingsFile]
	r := scan.Scan(tree)
	if !r.HasSettings {
		shared, err := p.GitHub.OrgFile(ctx, t.Repo, scan.SettingsFile)
		if err != nil {
			return r, explained("read the organization's settings", err)
		}
		if shared != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("The settings in %s/.github apply to this repository now. A file of its own replaces all of them: copy what you need.", t.Owner))
		}
	}
	if len(paths) >= manyFiles {
		r.Notes = append(r.Notes, "The repository has so many files that perhaps only those near its root were examined.")
	}
	return r, nil
}

// Draft returns the proposed file, after a check that errand accepts it.
func (p *Proposer) Draft(t Target, r scan.Report, tried string) (scan.Draft, []byte, error) {
	d := scan.Draft{Report: r, Commit: t.Commit, Tried: tried}
	if p.Plan == settings.PlanNone {
		d.NoSignOff = "the operator's plan is none, and a sign-off needs a plan that people approve; add plan: one-step with it."
	}
	file := d.File()
	if _, err := p.Parse(file); err != nil {
		return d, file, fmt.Errorf("the proposed file is invalid, which is a bug of errand: %w", err)
	}
	return d, file, nil
}

// explained adds the reason and the hint of a failed call.
func explained(action string, err error) error {
	reason, hint := forge.Explain(err)
	return fmt.Errorf("%s: %w\n%s", action, err, strings.TrimSpace(reason+" "+hint))
}
