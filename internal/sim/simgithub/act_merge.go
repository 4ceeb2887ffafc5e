package simgithub

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Merge describes how to merge a pull request.
type Merge struct {
	Method  string // merge (default), squash or rebase
	Title   string
	Message string
	SHA     string // required head; empty: not checked
}

// merge merges a pull request as the actor.
func (u refs) merge(p *Pull, in Merge) error {
	r := p.issue.repo
	if err := u.x.need(r, "contents", "write", RoleWrite); err != nil {
		return err
	}
	if err := u.mayMerge(p, in); err != nil {
		return err
	}
	return u.complete(p, in)
}

// complete merges a pull request in the bare repository, closes the issues that its text names, and sends the webhooks.
func (u refs) complete(p *Pull, in Merge) error {
	r := p.issue.repo
	base := r.Git.Branch(p.Base)
	var sha string
	tree, err := r.Git.MergeTree(base, p.HeadSHA)
	switch {
	case err == nil && in.Method == "rebase":
		sha, err = u.commitRebased(p, base)
	case err == nil:
		sha, err = u.commitMerge(p, in, base, tree)
	}
	if errors.Is(err, git.ErrConflict) {
		return &Error{Status: http.StatusMethodNotAllowed, Message: "Pull Request is not mergeable"}
	}
	if err != nil {
		return err
	}
	if err := r.Git.UpdateRef("refs/heads/"+p.Base, sha, base); err != nil {
		return err
	}
	u.finishMerge(p, sha)
	return u.moved(r, "refs/heads/"+p.Base, base, sha)
}

func (u refs) mayMerge(p *Pull, in Merge) error {
	refuse := func(msg string) error { return &Error{Status: http.StatusMethodNotAllowed, Message: msg} }
	switch {
	case p.issue.State != "open":
		return refuse("Pull Request is not mergeable")
	case p.Draft:
		return refuse("Pull Request is still a draft")
	}
	if err := u.mayUse(p, in); err != nil {
		return err
	}
	if err := u.mayMergeDirectly(p); err != nil {
		return err
	}
	return u.mayMergeChecks(p)
}

// mayUse returns an error if a pull request has another head than the required one, or if its repository does not allow the method.
func (u refs) mayUse(p *Pull, in Merge) error {
	switch {
	case in.SHA != "" && in.SHA != p.HeadSHA:
		return &Error{Status: http.StatusConflict, Message: "Head branch was modified. Review and try the merge again."}
	case in.Method != "" && in.Method != "merge" && in.Method != "squash" && in.Method != "rebase":
		return errInvalid("PullRequest", "merge_method", "invalid")
	case !p.issue.repo.allows(cmp.Or(in.Method, "merge")):
		method := map[string]string{"squash": "Squash merges", "rebase": "Rebase merges"}[in.Method]
		return &Error{Status: http.StatusMethodNotAllowed, Message: cmp.Or(method, "Merge commits") + " are not allowed on this repository."}
	}
	return nil
}

func (u refs) commitMerge(p *Pull, in Merge, base, tree string) (string, error) {
	r := p.issue.repo
	c := git.NewCommit{Tree: tree, Author: u.x.identity(), Committer: u.x.s.webFlow()}
	if in.Method == "squash" {
		c.Parents = []string{base}
	} else {
		c.Parents = []string{base, p.HeadSHA}
	}
	title, message := in.text(p)
	c.Message = strings.TrimSpace(title + "\n\n" + message)
	sha, err := r.Git.WriteCommit(c)
	if err == nil {
		u.x.s.verified[sha] = true
	}
	return sha, err
}

// text returns title and message of the commit that merges a pull request.
func (in Merge) text(p *Pull) (title, message string) {
	if in.Method == "squash" {
		return cmp.Or(in.Title, fmt.Sprintf("%s (#%d)", p.issue.Title, p.issue.Number)), in.Message
	}
	title = fmt.Sprintf("Merge pull request #%d from %s/%s", p.issue.Number, p.issue.repo.Owner, p.Head)
	return cmp.Or(in.Title, title), cmp.Or(in.Message, p.issue.Title)
}

// commitRebased puts copies of a pull request's commits, without merges, on its base, and returns the last one. GitHub signs none of them.
func (u refs) commitRebased(p *Pull, base string) (string, error) {
	r := p.issue.repo
	list, err := u.x.s.pulls.commits(p)
	if err != nil {
		return "", err
	}
	for _, c := range list {
		if len(c.Parents) > 1 {
			continue
		}
		tree, err := r.Git.CherryPickTree(base, c)
		if err != nil {
			return "", err
		}
		who := u.x.identity()
		if base, err = r.Git.WriteCommit(git.NewCommit{Tree: tree, Parents: []string{base}, Message: c.Message, Author: c.Author, Committer: who}); err != nil {
			return "", err
		}
	}
	return base, nil
}

// finishMerge marks a pull request as merged.
func (u refs) finishMerge(p *Pull, sha string) {
	i := p.issue
	p.Merged, p.MergedAt, p.MergedBy, p.MergeCommit = true, u.x.s.now(), u.x.login(), sha
	u.x.leaveQueue(p, "MERGE")
	i.State, i.ClosedAt, i.ClosedBy, i.UpdatedAt = "closed", u.x.s.now(), u.x.login(), u.x.s.now()
	u.x.event(i, &Event{Event: "merged", CommitID: sha})
	u.x.event(i, &Event{Event: "closed"})
	u.x.webhooks().pull("closed", p, nil)
	for _, target := range u.x.s.find.closedBy(p) {
		if target.State == "open" {
			_ = u.x.setState(target, "closed", "completed", sha) // "closed" is always a valid state
		}
	}
}

// identity returns the actor as the author of a commit.
func (x *session) identity() git.Identity { return x.s.identityOf(x.by) }

func (s *Sim) identityOf(u *User) git.Identity {
	if u == nil {
		return git.Identity{Name: "ghost", Email: "ghost@users.noreply.github.com", At: s.now()}
	}
	return git.Identity{Name: u.Login, Email: fmt.Sprintf("%d+%s@users.noreply.github.com", u.ID, u.Login), At: s.now()}
}

// webFlow returns the committer of commits that GitHub makes and signs on behalf of users.
func (s *Sim) webFlow() git.Identity {
	return git.Identity{Name: "GitHub", Email: "noreply@github.com", At: s.now()}
}
