package simgithub

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// updateRef moves one reference and does all that follows from it.
func (x *session) updateRef(r *Repo, c git.RefChange) error {
	return x.updateRefs(r, []git.RefChange{c})
}

// updateRefs moves references together: all of them, or none and an error.
func (x *session) updateRefs(r *Repo, list []git.RefChange) error {
	if err := x.need(r, "contents", "write", RoleWrite); err != nil {
		return err
	}
	if err := x.checkRefs(r, list); err != nil {
		return err
	}
	if err := r.Git.MoveRefs(list); err != nil {
		return errUnprocessable("Reference cannot be updated")
	}
	for _, c := range list {
		if err := x.refMoved(r, c.Name, c.Before, c.After); err != nil {
			return err
		}
	}
	return nil
}

// checkRefs refuses changes and fills in what is there now.
func (x *session) checkRefs(r *Repo, list []git.RefChange) error {
	for n := range list {
		if err := x.checkRef(r, &list[n]); err != nil {
			return err
		}
	}
	return nil
}

// checkRef refuses a change and fills in what is there now.
func (x *session) checkRef(r *Repo, c *git.RefChange) error {
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
	return x.guardWorkflows(r, now, c.After)
}

// guardWorkflows refuses changes of workflow files by an installation without the workflows permission.
func (x *session) guardWorkflows(r *Repo, before, after string) error {
	if !x.viaApp() || levelRank(x.tok.perms["workflows"]) >= levelRank("write") {
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

// refMoved does what follows when a reference has moved: webhooks, pull requests, issues closed by commits.
func (x *session) refMoved(r *Repo, name, before, after string) error {
	r.PushedAt, r.UpdatedAt = x.s.now(), x.s.now()
	if err := x.emitPush(r, name, before, after); err != nil {
		return err
	}
	branch, ok := strings.CutPrefix(name, "refs/heads/")
	if !ok {
		return nil
	}
	if after != git.ZeroSHA {
		x.requestSuite(r, branch, after)
	}
	for _, i := range r.IssuesByNumber() {
		if i.Pull == nil || i.State != "open" {
			continue
		}
		switch branch {
		case i.Pull.Head:
			x.headMoved(i.Pull, before, after)
		case i.Pull.Base:
			x.baseMoved(i.Pull, after)
		}
	}
	if branch == r.DefaultBranch && before != git.ZeroSHA && after != git.ZeroSHA {
		return x.closeByCommits(r, before, after)
	}
	return nil
}

func (x *session) headMoved(p *Pull, before, after string) {
	if after == git.ZeroSHA {
		x.event(p.issue, &Event{Event: "head_ref_deleted"})
		_ = x.setState(p.issue, "closed", "", "") // "closed" is always a valid state
		return
	}
	p.HeadSHA, p.issue.UpdatedAt = after, x.s.now()
	x.s.updatePullRef(p)
	for _, t := range p.Threads {
		t.follow(p.issue.repo.Git, before, after)
	}
	if !p.issue.repo.Git.IsAncestor(before, after) {
		x.event(p.issue, &Event{Event: "head_ref_force_pushed", CommitID: after})
	}
	x.emitPull("synchronize", p, obj{"before": before, "after": after})
}

// baseMoved merges a pull request whose head has arrived in its base by other ways. Others are from now on compared
// with where the base is now, so that a base merged into the head is no change of theirs.
func (x *session) baseMoved(p *Pull, after string) {
	if after == git.ZeroSHA {
		_ = x.setState(p.issue, "closed", "", "") // "closed" is always a valid state
		return
	}
	if p.issue.repo.Git.IsAncestor(p.HeadSHA, after) {
		x.finishMerge(p, after)
		return
	}
	p.BaseSHA = after
}

func (x *session) closeByCommits(r *Repo, before, after string) error {
	out, err := r.Git.Output("log", "--format=%H %B%x00", before+".."+after)
	if err != nil {
		return err
	}
	for entry := range strings.SplitSeq(out, "\x00") {
		sha, message, _ := strings.Cut(strings.TrimSpace(entry), " ")
		for _, i := range x.s.closes(r, message) {
			if i.State == "open" {
				_ = x.setState(i, "closed", "completed", sha) // "closed" is always a valid state
			}
		}
	}
	return nil
}

// updatePullRef points refs/pull/N/head at the head, as GitHub does. Best effort: nothing of ours depends on it.
func (s *Sim) updatePullRef(p *Pull) {
	name := fmt.Sprintf("refs/pull/%d/head", p.issue.Number)
	if err := p.issue.repo.Git.UpdateRef(name, p.HeadSHA, ""); err != nil {
		s.log.Warn().Err(err).Msg("point the pull request's own reference")
	}
}

// pushCommit makes one commit as a person would, and pushes it.
func (x *session) pushCommit(full string, in Commit) (string, error) {
	r, err := x.repo(full)
	if err != nil {
		return "", err
	}
	if err := x.need(r, "contents", "write", RoleWrite); err != nil {
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
	c := git.NewCommit{Message: in.Message, Author: x.identity(), Committer: x.identity()}
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
	return sha, x.updateRef(r, git.RefChange{Name: "refs/heads/" + in.Branch, Before: before, After: sha})
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
