package simgithub

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Snapshot is a deep copy of all accounts, repositories and installations, for assertions and for printing.
type Snapshot struct {
	Users         []User
	Repos         []*Repo
	Installations []Installation
}

// Snapshot returns a copy of everything: repositories sorted by name, accounts by id.
func (s *Sim) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out Snapshot
	for _, u := range s.users {
		out.Users = append(out.Users, *u)
	}
	slices.SortFunc(out.Users, func(a, b User) int { return int(a.ID - b.ID) })
	for _, r := range s.repos {
		out.Repos = append(out.Repos, r.clone())
	}
	slices.SortFunc(out.Repos, func(a, b *Repo) int { return strings.Compare(a.FullName(), b.FullName()) })
	for _, in := range s.installs {
		c := *in
		c.RepoIDs = slices.Clone(in.RepoIDs)
		out.Installations = append(out.Installations, c)
	}
	return out
}

// Repo returns a repository of a snapshot by "owner/name".
func (sn Snapshot) Repo(full string) (*Repo, bool) {
	for _, r := range sn.Repos {
		if strings.EqualFold(r.FullName(), full) {
			return r, true
		}
	}
	return nil, false
}

// String lists repositories, issues and pull requests with their comments, one line each.
func (sn Snapshot) String() string {
	var b strings.Builder
	for _, r := range sn.Repos {
		fmt.Fprintf(&b, "%s\n", r.FullName())
		for _, i := range r.IssuesByNumber() {
			kind := "issue"
			if i.Pull != nil {
				kind = "pull request"
			}
			fmt.Fprintf(&b, "  %s #%d %s %q by %s labels=%v assignees=%v\n", kind, i.Number, i.State, i.Title, i.Author, i.Labels, i.Assignees)
			for _, k := range i.Comments {
				first, _, _ := strings.Cut(k.Body, "\n")
				fmt.Fprintf(&b, "    comment %d by %s minimized=%v reactions=%d %q\n", k.ID, k.Author, k.Minimized, len(k.Reactions), first)
			}
		}
	}
	return b.String()
}

// Repos returns the repositories that the person may see.
func (p Person) Repos() (out []*Repo) {
	_ = p.do(func(x *session) error { // listing cannot fail
		for _, r := range x.s.repos {
			if x.sees(r) {
				out = append(out, r.clone())
			}
		}
		return nil
	})
	slices.SortFunc(out, func(a, b *Repo) int { return strings.Compare(a.FullName(), b.FullName()) })
	return out
}

// Repo returns a repository with all its issues and pull requests.
func (p Person) Repo(full string) (out *Repo, err error) {
	err = p.do(func(x *session) error {
		r, err := x.repo(full)
		if err == nil {
			out = r.clone()
		}
		return err
	})
	return out, err
}

// Role returns the role of the person in a repository.
func (p Person) Role(full string) (role Role) {
	role = RoleNone
	_ = p.do(func(x *session) error { // a hidden repository leaves RoleNone
		r, err := x.repo(full)
		if err == nil {
			role = r.RoleOf(p.login)
		}
		return err
	})
	return role
}

// Issue returns an issue or pull request.
func (p Person) Issue(full string, number int) (out *Issue, err error) {
	err = p.onIssue(full, number, func(_ *session, i *Issue) error {
		out = i.clone()
		if out.Pull != nil {
			out.Pull.hidePending(p.login)
		}
		return nil
	})
	return out, err
}

// PullView has the parts of a pull request that are computed.
type PullView struct {
	Files     []git.FileChange
	Commits   []CommitView
	Mergeable bool
	State     string // clean, dirty, blocked, behind, unstable, draft or unknown, as mergeable_state
	Checks    []CheckRun
	Statuses  []Status
	Closes    []int // issues of the same repository that merging will close
}

// CommitView is a commit, with the fields that pages show.
type CommitView struct {
	SHA      string
	Message  string
	Author   string
	Verified bool
	At       time.Time
}

// PullView returns files, commits, checks and mergeability of a pull request.
func (p Person) PullView(full string, number int) (out PullView, err error) {
	err = p.onPull(full, number, func(x *session, pr *Pull) error {
		out, err = x.s.pulls.view(pr)
		return err
	})
	return out, err
}

func (ps pulls) view(p *Pull) (out PullView, err error) {
	if out.Files, err = ps.files(p); err != nil {
		return out, err
	}
	commits, err := ps.commits(p)
	if err != nil {
		return out, err
	}
	for _, k := range commits {
		out.Commits = append(out.Commits, ps.s.commitView(k))
	}
	mergeable, state := ps.mergeability(p)
	out.Mergeable, _ = mergeable.(bool)
	out.State = state
	for _, k := range p.issue.repo.newestRuns(p.HeadSHA) {
		out.Checks = append(out.Checks, *k)
	}
	for _, k := range p.issue.repo.Statuses {
		if k.SHA == p.HeadSHA {
			out.Statuses = append(out.Statuses, *k)
		}
	}
	for _, i := range ps.s.find.closedBy(p) {
		if i.repo == p.issue.repo {
			out.Closes = append(out.Closes, i.Number)
		}
	}
	return out, nil
}

func (s *Sim) commitView(k git.Commit) CommitView {
	return CommitView{SHA: k.SHA, Message: k.Message, Author: k.Author.Name, Verified: s.verified[k.SHA], At: k.Committer.At}
}

// Branches returns the heads of the branches of a repository, by name.
func (p Person) Branches(full string) (out map[string]string, err error) {
	out = map[string]string{}
	err = p.do(func(x *session) error {
		r, err := x.repo(full)
		if err != nil {
			return err
		}
		refs, err := r.Git.Refs("refs/heads/")
		for _, f := range refs {
			out[strings.TrimPrefix(f.Name, "refs/heads/")] = f.SHA
		}
		return err
	})
	return out, err
}

// File returns a file at a branch, tag or commit. If it is missing, the error is a 404 *Error.
func (p Person) File(full, rev, path string) (content []byte, err error) {
	err = p.do(func(x *session) error {
		r, err := x.repo(full)
		if err != nil {
			return err
		}
		sha := r.Git.Resolve(rev)
		if sha == "" {
			return errNotFound()
		}
		list, err := r.Git.List(sha, false, path)
		if err != nil || len(list) != 1 || list[0].Kind != "blob" {
			return errNotFound()
		}
		content, err = r.Git.Blob(list[0].SHA)
		return err
	})
	return content, err
}

// Files returns all paths at a branch, tag or commit.
func (p Person) Files(full, rev string) (paths []string, err error) {
	err = p.do(func(x *session) error {
		r, err := x.repo(full)
		if err != nil {
			return err
		}
		sha := r.Git.Resolve(rev)
		if sha == "" {
			return errNotFound()
		}
		list, err := r.Git.List(sha, true)
		for _, l := range list {
			if l.Kind != "tree" {
				paths = append(paths, l.Path)
			}
		}
		return err
	})
	return paths, err
}

// SetListLag makes lists leave out issues, pull requests and comments that are younger than d, in real time, as if
// GitHub's replicas lagged behind. Single reads are not affected. Older objects are always listed.
func (s *Sim) SetListLag(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listLag = d
	if d == 0 {
		s.born = nil
	} else if s.born == nil {
		s.born = map[int64]time.Time{}
	}
}

// SetMaxTree makes recursive lists of files end after n entries, as GitHub's do after 100,000.
func (s *Sim) SetMaxTree(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxTree = n
}

// listed reports whether lists already show an object. It needs the lock of the Sim.
func (s *Sim) listed(id int64) bool {
	born, ok := s.born[id]
	return !ok || time.Since(born) >= s.listLag
}
