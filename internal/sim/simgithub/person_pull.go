package simgithub

import "github.com/errand-bot/errand/internal/sim/simgithub/git"

// OpenPull opens a pull request between two branches.
func (p Person) OpenPull(repo string, in NewPull) (out *Issue, err error) {
	err = p.do(func(x *session) error {
		pr, err := x.openPull(repo, in)
		if err == nil {
			out = pr.issue.clone()
		}
		return err
	})
	return out, err
}

// EditPull changes title, body, state or base.
func (p Person) EditPull(repo string, number int, in PullEdit) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.editPull(pr, in) })
}

// SetDraft converts a pull request to a draft, or marks it ready for review.
func (p Person) SetDraft(repo string, number int, draft bool) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.setDraft(pr, draft) })
}

// RequestReview requests reviews from collaborators.
func (p Person) RequestReview(repo string, number int, logins ...string) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.requestReviewers(pr, logins) })
}

// Review submits a review, with threads at lines of the diff.
func (p Person) Review(repo string, number int, in NewReview) (out *Review, err error) {
	err = p.onPull(repo, number, func(x *session, pr *Pull) error {
		v, err := x.reviews().add(pr, in)
		if err == nil {
			c := *v
			out = &c
		}
		return err
	})
	return out, err
}

// DismissReview dismisses an approval or a request for changes.
func (p Person) DismissReview(repo string, number int, id int64) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error {
		v, ok := x.s.nodes[nodeID("PRR", id)].(*Review)
		if !ok || v.pull != pr {
			return errNotFound()
		}
		return x.reviews().dismiss(v)
	})
}

// CommentOnLine starts a thread at a line with a single comment.
func (p Person) CommentOnLine(repo string, number int, in NewReviewComment) (out *ReviewComment, err error) {
	err = p.onPull(repo, number, func(x *session, pr *Pull) error {
		k, err := x.reviews().startThread(pr, in, "")
		if err == nil {
			c := *k
			out = &c
		}
		return err
	})
	return out, err
}

// ReplyToThread adds a comment to a thread, given by its id.
func (p Person) ReplyToThread(repo string, number int, thread int64, body string) (out *ReviewComment, err error) {
	err = p.onThread(repo, number, thread, func(x *session, t *Thread) error {
		k, err := x.reviews().reply(t, body)
		if err == nil {
			c := *k
			out = &c
		}
		return err
	})
	return out, err
}

// ResolveThread resolves or unresolves a thread.
func (p Person) ResolveThread(repo string, number int, thread int64, resolved bool) error {
	return p.onThread(repo, number, thread, func(x *session, t *Thread) error { return x.reviews().resolve(t, resolved) })
}

func (p Person) onThread(repo string, number int, thread int64, act func(x *session, t *Thread) error) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error {
		t, ok := x.s.nodes[nodeID("PRRT", thread)].(*Thread)
		if !ok || t.pull != pr {
			return errNotFound()
		}
		return act(x, t)
	})
}

// Merge merges a pull request.
func (p Person) Merge(repo string, number int, in Merge) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.refs().merge(pr, in) })
}

// UpdateBranch adds the newest commits of the base to a pull request, like the button Update branch.
func (p Person) UpdateBranch(repo string, number int, in BranchUpdate) error {
	return p.onPull(repo, number, func(x *session, pr *Pull) error { return x.refs().updateBranch(pr, in) })
}

// Commit describes a commit to be pushed to a branch.
type Commit struct {
	Branch  string
	From    string // where a new branch starts; empty: the default branch
	Message string
	Files   map[string]string // path to content
	Modes   map[string]string // path to mode, where it is not 100644: 100755, or 120000 for a link to the content
	Delete  []string          // paths
}

// PushCommit commits to a branch, which it creates if there is none, and returns the id of the commit.
func (p Person) PushCommit(repo string, in Commit) (sha string, err error) {
	err = p.do(func(x *session) error {
		sha, err = x.refs().pushCommit(repo, in)
		return err
	})
	return sha, err
}

// DeleteBranch deletes a branch, which closes its open pull requests.
func (p Person) DeleteBranch(repo, branch string) error {
	return p.do(func(x *session) error {
		r, err := x.repo(repo)
		if err != nil {
			return err
		}
		return x.refs().update(r, git.RefChange{Name: "refs/heads/" + branch, After: git.ZeroSHA, Force: true})
	})
}
