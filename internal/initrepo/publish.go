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

// A standing is what is on the branch of a request.
type standing struct {
	pr   *forge.PR
	head string // "" if the branch does not exist
	// message and parent are those of the head.
	message, parent string
	// written is the file of the head if the branch has nothing else and the message has its digest, so that nobody changed it.
	written string
	// own reports that the message is errand's, too: nobody signed the commit off.
	own bool
	// began reports that a commit of errand is among the newest of the branch.
	began bool
}

// MayPublish returns why Publish would refuse a request, as far as that does not depend on its file. It changes nothing.
func (p *Proposer) MayPublish(ctx context.Context, q Request) error {
	s, err := p.look(ctx, q)
	if err != nil || s.written != "" {
		return err
	}
	return s.refusal(q)
}

// Publish puts the file on the request's branch and opens a pull request, or updates the open one. It may be repeated after any
// failure.
func (p *Proposer) Publish(ctx context.Context, q Request) (Published, error) {
	r := q.Target.Repo
	s, err := p.look(ctx, q)
	if err != nil {
		return Published{}, err
	}
	updated, err := p.write(ctx, q, s)
	if err != nil {
		return Published{}, err
	}
	title, body := q.title(), p.body(q)
	if s.pr != nil && s.pr.Open {
		got, err := p.GitHub.EditPR(ctx, r, s.pr.Number, title, body)
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
func (p *Proposer) write(ctx context.Context, q Request, s standing) (updated bool, err error) {
	r, message := q.Target.Repo, q.message()
	switch same := s.written != "" && s.written == string(q.File); {
	case same && !s.own: // a person's sign-off
		return false, nil
	case same && sameText(s.message, message) && s.parent == q.Target.Commit:
		return false, nil
	}
	if err := s.refusal(q); err != nil {
		return false, err
	}
	commit, err := p.GitHub.CommitFile(ctx, r, forge.FileCommit{Onto: q.Target.Commit, Path: scan.SettingsFile, Content: string(q.File), Message: message})
	if err != nil {
		return false, explained("commit the file", err)
	}
	if err := p.GitHub.MoveBranch(ctx, r, q.Branch, s.head, commit); err != nil {
		return false, explained("write the branch "+q.Branch, err)
	}
	return true, nil
}

// refusal returns an error if the branch may not be replaced.
func (s standing) refusal(q Request) error {
	switch {
	case s.head == "" || s.own:
		return nil
	case !s.began && q.Branch != DefaultBranch:
		return fmt.Errorf("the branch %s of %s is not errand's, so it was left as it is, also with --force: name one that does not exist, or leave out --branch", q.Branch, q.Target.FullName())
	case !q.Force:
		return fmt.Errorf("people have changed the branch %s of %s, so it was left as it is: merge it, or use --force to replace their changes", q.Branch, q.Target.FullName())
	}
	return nil
}

// look reads what is on the branch. It returns an error if people closed its pull request, unless that is to be overridden.
func (p *Proposer) look(ctx context.Context, q Request) (s standing, err error) {
	r := q.Target.Repo
	if s.pr, err = p.GitHub.PRByHead(ctx, r, q.Branch); err != nil {
		return s, explained("look for a pull request", err)
	}
	if pr := s.pr; pr != nil && !pr.Open && !pr.Merged && !q.Force {
		return s, fmt.Errorf("pull request #%d from %s was closed without a merge, so none is opened: %s\nReopen it and run this again, or use --force for a new one", pr.Number, q.Branch, pr.URL)
	}
	s.head, err = p.GitHub.Head(ctx, r, q.Branch)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		s.head = ""
		return s, nil
	case err != nil:
		return s, explained("read the branch "+q.Branch, err)
	}
	diff, err := p.GitHub.ChangedSince(ctx, r, q.Target.Commit, s.head)
	if err != nil {
		return s, explained("compare the branch "+q.Branch, err)
	}
	if s.message, s.parent, err = p.GitHub.CommitMessage(ctx, r, s.head); err != nil {
		return s, explained("read the branch "+q.Branch, err)
	}
	if s.began, err = p.began(ctx, q, s, diff.AheadBy); err != nil {
		return s, explained("read the branch "+q.Branch, err)
	}
	other := func(f forge.ChangedFile) bool { return f.Path != scan.SettingsFile }
	if diff.AheadBy > 1 || slices.ContainsFunc(diff.Files, other) {
		return s, nil
	}
	files, err := p.GitHub.CommitFiles(ctx, r, s.head, []string{scan.SettingsFile})
	if err != nil {
		return s, explained("read the branch "+q.Branch, err)
	}
	if file := files[scan.SettingsFile]; strings.Contains(s.message, trailer+digest([]byte(file))) {
		s.written, s.own = file, isMessage(s.message, []byte(file))
	}
	return s, nil
}

// maxCommits is the number of commits of a branch that are read.
const maxCommits = 20

// began reports whether one of the commits that only the branch has is errand's, or else its head.
func (p *Proposer) began(ctx context.Context, q Request, s standing, ahead int) (bool, error) {
	message, parent := s.message, s.parent
	for i := 1; !strings.Contains(message, "\n"+trailer); i++ {
		if i >= min(ahead, maxCommits) || parent == "" {
			return false, nil
		}
		var err error
		if message, parent, err = p.GitHub.CommitMessage(ctx, q.Target.Repo, parent); err != nil {
			return false, err
		}
	}
	return true, nil
}

func digest(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// title returns the title of the pull request, which is also the subject of the commit.
func (q Request) title() string {
	return titleOf(q.Draft.HasSettings, q.hasRule("Conventional Commits"))
}

func titleOf(replaces, conventional bool) string {
	verb := "add"
	if replaces {
		verb = "replace"
	}
	if conventional {
		return "chore: " + verb + " settings for errand"
	}
	return strings.ToUpper(verb[:1]) + verb[1:] + " settings for errand"
}

func (q Request) hasRule(words string) bool {
	return slices.ContainsFunc(q.Draft.Rules, func(f scan.Fact) bool { return strings.Contains(f.Name, words) })
}

func (q Request) message() string { return messageOf(q.title(), q.File) }

func messageOf(title string, file []byte) string {
	return title + "\n\nProposed by `errand init` from the files of this repository.\n\n" + trailer + digest(file) + "\n"
}

// isMessage reports whether a commit's message is the one that errand writes for a file, and nothing more.
func isMessage(had string, file []byte) bool {
	for _, replaces := range []bool{false, true} {
		for _, conventional := range []bool{false, true} {
			if sameText(had, messageOf(titleOf(replaces, conventional), file)) {
				return true
			}
		}
	}
	return false
}

func sameText(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }
