package initrepo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/scan"
)

// DefaultBranch is the branch of the pull request.
const DefaultBranch = "errand/init"

// A Request asks for a pull request with a file.
type Request struct {
	Target Target
	Draft  scan.Draft
	File   []byte
	Branch string
	// Force replaces what people changed on the branch, the present settings, and a pull request that people closed.
	Force bool
}

// Published is the result of a Request.
type Published struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	// Opened reports that the pull request is new, and Updated that its file has changed.
	Opened  bool `json:"opened"`
	Updated bool `json:"updated"`
}

// trailer begins the line of a commit message with the digest of the file as errand wrote it.
const trailer = "Errand-Init: "

// CheckBranch returns an error unless a pull request can come from a branch of this name.
func CheckBranch(branch, base string) error {
	invalid := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._/-", c)
	}
	switch {
	case branch == base:
		return fmt.Errorf("--branch %s is the default branch: name another one, such as %s", branch, DefaultBranch)
	case branch == "", len(branch) > 200, strings.ContainsFunc(branch, invalid), strings.Contains(branch, ".."), strings.Contains(branch, "//"), strings.Contains(branch, "/."),
		strings.Trim(branch, "./-") != branch, strings.HasSuffix(branch, ".lock"), strings.HasPrefix(branch, "refs/"):
		return fmt.Errorf("--branch %q is not a name that errand accepts: write letters, digits, dots, dashes and slashes, such as %s", branch, DefaultBranch)
	}
	return nil
}

// Publish puts the file on the request's branch and opens a pull request, or updates the open one. It may be repeated after any
// failure.
func (p *Proposer) Publish(ctx context.Context, q Request) (Published, error) {
	r := q.Target.Repo
	pr, err := p.GitHub.PRByHead(ctx, r, q.Branch)
	if err != nil {
		return Published{}, explained("look for a pull request", err)
	}
	if pr != nil && !pr.Open && !pr.Merged && !q.Force {
		return Published{}, fmt.Errorf("pull request #%d from %s was closed without a merge, so none is opened: %s\nReopen it and run this again, or use --force for a new one", pr.Number, q.Branch, pr.URL)
	}
	head, err := p.GitHub.Head(ctx, r, q.Branch)
	if err != nil && !errors.Is(err, forge.ErrNotFound) {
		return Published{}, explained("read the branch "+q.Branch, err)
	}
	updated, err := p.write(ctx, q, head)
	if err != nil {
		return Published{}, err
	}
	title, body := q.title(), p.body(q)
	if pr != nil && pr.Open {
		got, err := p.GitHub.EditPR(ctx, r, pr.Number, title, body)
		if err != nil {
			return Published{}, explained("update the pull request", err)
		}
		return Published{Number: got.Number, URL: got.URL, Updated: updated}, nil
	}
	got, err := p.GitHub.OpenPR(ctx, r, forge.NewPR{Head: q.Branch, Base: q.Target.DefaultBranch, Title: title, Body: body})
	if err != nil {
		return Published{}, explained("open the pull request", err)
	}
	return Published{Number: got.Number, URL: got.URL, Opened: true, Updated: updated}, nil
}

// write puts the file on the branch, on top of the examined commit, unless it is there already.
func (p *Proposer) write(ctx context.Context, q Request, head string) (updated bool, err error) {
	r, message := q.Target.Repo, q.message()
	if head != "" {
		own, isCurrent, err := p.isOwn(ctx, q, head, message)
		switch {
		case err != nil:
			return false, err
		case isCurrent:
			return false, nil
		case !own && !q.Force:
			return false, fmt.Errorf("people have changed the branch %s of %s, so it was left as it is: merge it, or use --force to replace their changes", q.Branch, r.FullName())
		}
	}
	commit, err := p.GitHub.CommitFile(ctx, r, forge.FileCommit{Onto: q.Target.Commit, Path: scan.SettingsFile, Content: string(q.File), Message: message})
	if err != nil {
		return false, explained("commit the file", err)
	}
	if err := p.GitHub.MoveBranch(ctx, r, q.Branch, head, commit); err != nil {
		return false, explained("write the branch "+q.Branch, err)
	}
	return true, nil
}

// isOwn reports whether a branch has nothing but one commit of errand with the file as errand wrote it, and whether that is the
// commit to be made.
func (p *Proposer) isOwn(ctx context.Context, q Request, head, message string) (own, isCurrent bool, err error) {
	r := q.Target.Repo
	diff, err := p.GitHub.ChangedSince(ctx, r, q.Target.Commit, head)
	if err != nil {
		return false, false, explained("compare the branch "+q.Branch, err)
	}
	if diff.AheadBy == 0 {
		return true, false, nil
	}
	other := func(f forge.ChangedFile) bool { return f.Path != scan.SettingsFile }
	if diff.AheadBy > 1 || len(diff.Files) == 0 || slices.ContainsFunc(diff.Files, other) {
		return false, false, nil
	}
	had, parent, err := p.GitHub.CommitMessage(ctx, r, head)
	if err != nil {
		return false, false, explained("read the branch "+q.Branch, err)
	}
	files, err := p.GitHub.CommitFiles(ctx, r, head, []string{scan.SettingsFile})
	if err != nil {
		return false, false, explained("read the branch "+q.Branch, err)
	}
	own = strings.Contains(had, trailer+digest([]byte(files[scan.SettingsFile])))
	return own, own && strings.TrimSpace(had) == strings.TrimSpace(message) && parent == q.Target.Commit, nil
}

func digest(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// title returns the title of the pull request, which is also the subject of the commit.
func (q Request) title() string {
	verb := "add"
	if q.Draft.HasSettings {
		verb = "replace"
	}
	if q.hasRule("Conventional Commits") {
		return "chore: " + verb + " settings for errand"
	}
	return strings.ToUpper(verb[:1]) + verb[1:] + " settings for errand"
}

func (q Request) hasRule(words string) bool {
	return slices.ContainsFunc(q.Draft.Rules, func(f scan.Fact) bool { return strings.Contains(f.Name, words) })
}

func (q Request) message() string {
	return q.title() + "\n\nProposed by `errand init` from the files of this repository.\n\n" + trailer + digest(q.File) + "\n"
}
