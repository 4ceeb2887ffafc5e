package simgithub

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// update moves one reference, with all consequences.
func (u refs) update(r *Repo, c git.RefChange) error {
	return u.updateAll(r, []git.RefChange{c})
}

// updateAll moves all references of a list, or none if one of them is refused.
func (u refs) updateAll(r *Repo, list []git.RefChange) error {
	if err := u.x.need(r, "contents", "write", RoleWrite); err != nil {
		return err
	}
	if err := u.checkAll(r, list); err != nil {
		return err
	}
	if err := r.Git.MoveRefs(list); err != nil {
		return errUnprocessable("Reference cannot be updated")
	}
	for _, c := range list {
		if err := u.moved(r, c.Name, c.Before, c.After); err != nil {
			return err
		}
	}
	return nil
}

// checkAll returns an error if a change is not permitted, and sets the Before of all changes.
func (u refs) checkAll(r *Repo, list []git.RefChange) error {
	for n := range list {
		if err := u.check(r, &list[n]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error if a change is not permitted, and sets its Before.
func (u refs) check(r *Repo, c *git.RefChange) error {
	if !git.ValidRef(c.Name) || strings.HasPrefix(c.Name, "refs/pull/") {
		return errUnprocessable("Reference name is not valid: %s", c.Name)
	}
	now := r.Git.Object(c.Name)
	if now == "" {
		now = git.ZeroSHA
	}
	if c.Before != "" && c.Before != now {
		return errUnprocessable("Reference %s is at %s but expected %s", c.Name, now, c.Before)
	}
	c.Before = now
	if c.After == git.ZeroSHA {
		if now == git.ZeroSHA {
			return errUnprocessable("Reference does not exist")
		}
		if c.Name == "refs/heads/"+r.DefaultBranch {
			return errUnprocessable("Cannot delete the default branch")
		}
		return nil
	}
	if strings.HasPrefix(c.Name, "refs/heads/") && r.Git.Resolve(c.After) != c.After || r.Git.Object(c.After+"^{}") == "" {
		return errUnprocessable("Object does not exist")
	}
	if now != git.ZeroSHA && !c.Force && !r.Git.IsAncestor(now, c.After) {
		return errUnprocessable("Update is not a fast forward")
	}
	return u.guardWorkflows(r, now, c.After)
}

// guardWorkflows returns an error if an installation without the workflows permission changes workflow files.
func (u refs) guardWorkflows(r *Repo, before, after string) error {
	if !u.x.viaApp() || levelRank(u.x.tok.perms["workflows"]) >= levelRank("write") {
		return nil
	}
	args := []string{"log", "--format=", "--name-only", "-m", after, "--not", "--branches", "--tags"}
	if before != git.ZeroSHA {
		args = append(args, before)
	}
	out, err := r.Git.Output(append(args, "--", ".github/workflows")...)
	if err != nil {
		return err
	}
	if out == "" {
		return nil
	}
	file, _, _ := strings.Cut(out, "\n")
	return &Error{Status: http.StatusForbidden, Message: workflowRefusal(file)}
}

func workflowRefusal(file string) string {
	return "refusing to allow a GitHub App to create or update workflow `" + file + "` without `workflows` permission"
}

// moved applies the consequences of a moved reference: it sends webhooks, updates pull requests and closes issues.
func (u refs) moved(r *Repo, name, before, after string) error {
	r.PushedAt, r.UpdatedAt = u.x.s.now(), u.x.s.now()
	if err := u.x.webhooks().push(r, name, before, after); err != nil {
		return err
	}
	branch, ok := strings.CutPrefix(name, "refs/heads/")
	if !ok {
		return nil
	}
	if after != git.ZeroSHA {
		u.x.checks().requestSuite(r, branch, after)
	}
	for _, i := range r.IssuesByNumber() {
		if i.Pull == nil || i.State != "open" {
			continue
		}
		switch branch {
		case i.Pull.Head:
			u.headMoved(i.Pull, before, after)
		case i.Pull.Base:
			u.baseMoved(i.Pull, after)
		}
	}
	u.mergeDue(r)
	if branch == r.DefaultBranch && before != git.ZeroSHA && after != git.ZeroSHA {
		return u.closeByCommits(r, before, after)
	}
	return nil
}

func (u refs) headMoved(p *Pull, before, after string) {
	if after == git.ZeroSHA {
		u.x.event(p.issue, &Event{Event: "head_ref_deleted"})
		_ = u.x.setState(p.issue, "closed", "", "") // "closed" is always a valid state
		return
	}
	u.x.leaveQueue(p, "MANUAL") // as GitHub reports it after a push
	p.HeadSHA, p.issue.UpdatedAt = after, u.x.s.now()
	u.x.s.pulls.updateRef(p)
	for _, t := range p.Threads {
		t.follow(p.issue.repo.Git, before, after)
	}
	if !p.issue.repo.Git.IsAncestor(before, after) {
		u.x.event(p.issue, &Event{Event: "head_ref_force_pushed", CommitID: after})
	}
	u.x.webhooks().pull("synchronize", p, obj{"before": before, "after": after})
}

// baseMoved marks a pull request as merged if its base now contains its head. Otherwise, it compares it with the new
// base from now on, so that merging the base into the head does not add changes.
func (u refs) baseMoved(p *Pull, after string) {
	if after == git.ZeroSHA {
		_ = u.x.setState(p.issue, "closed", "", "") // "closed" is always a valid state
		return
	}
	if p.issue.repo.Git.IsAncestor(p.HeadSHA, after) {
		u.x.leaveQueue(p, "ALREADY_MERGED")
		u.finishMerge(p, after)
		return
	}
	p.BaseSHA = after
}

func (u refs) closeByCommits(r *Repo, before, after string) error {
	out, err := r.Git.Output("log", "--format=%H %B%x00", before+".."+after)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		sha, message, _ := strings.Cut(strings.TrimSpace(entry), " ")
		for _, i := range u.x.s.find.closesByText(r, message) {
			if i.State == "open" {
				_ = u.x.setState(i, "closed", "completed", sha) // "closed" is always a valid state
			}
		}
	}
	return nil
}

// updateRef points refs/pull/N/head at the head, as GitHub does. Best effort: no other part needs it.
func (ps pulls) updateRef(p *Pull) {
	name := fmt.Sprintf("refs/pull/%d/head", p.issue.Number)
	if err := p.issue.repo.Git.UpdateRef(name, p.HeadSHA, ""); err != nil {
		ps.s.log.Warn().Err(err).Msg("failed to update the reference of a pull request")
	}
}

// pushCommit creates one commit and pushes it.
func (u refs) pushCommit(full string, in Commit) (string, error) {
	r, err := u.x.repo(full)
	if err != nil {
		return "", err
	}
	if err := u.x.need(r, "contents", "write", RoleWrite); err != nil {
		return "", err
	}
	if in.From == "" {
		in.From = r.DefaultBranch
	}
	parent := r.Git.Branch(in.Branch)
	before := parent
	if parent == "" {
		before, parent = git.ZeroSHA, r.Git.Branch(in.From)
	}
	entries := make([]git.TreeEntry, 0, len(in.Files)+len(in.Delete))
	for path, content := range in.Files {
		sha, err := r.Git.WriteBlob([]byte(content))
		if err != nil {
			return "", err
		}
		entries = append(entries, git.TreeEntry{Path: path, Mode: cmp.Or(in.Modes[path], "100644"), Type: "blob", SHA: &sha})
	}
	for _, path := range in.Delete {
		entries = append(entries, git.TreeEntry{Path: path, Mode: "100644", Type: "blob"})
	}
	c := git.NewCommit{Message: in.Message, Author: u.x.identity(), Committer: u.x.identity()}
	if parent != "" {
		c.Parents = []string{parent}
	}
	if c.Tree, err = writeTree(r, parent, entries); err != nil {
		return "", err
	}
	sha, err := r.Git.WriteCommit(c)
	if err != nil {
		return "", err
	}
	return sha, u.update(r, git.RefChange{Name: "refs/heads/" + in.Branch, Before: before, After: sha})
}

// writeTree writes a tree; GitHub answers 422 to entries that git refuses.
func writeTree(r *Repo, base string, entries []git.TreeEntry) (string, error) {
	sha, err := r.Git.WriteTree(base, entries)
	var invalid *git.InvalidError
	if errors.As(err, &invalid) {
		return "", errUnprocessable("%s", invalid.Message)
	}
	return sha, err
}
