package simgithub

import (
	"maps"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Now returns the time of the simulator: UTC in whole seconds, as on GitHub.
func (s *Sim) Now() time.Time { return s.now() }

// Users returns all accounts, in the order of their logins.
func (s *Sim) Users() []User {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []User
	for _, login := range slices.Sorted(maps.Keys(s.users)) {
		out = append(out, *s.users[login])
	}
	return out
}

// LastID returns the newest id. It grows with everything that is created.
func (s *Sim) LastID() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastID
}

// CommitView returns a commit with the fields that pages show.
func (s *Sim) CommitView(c git.Commit) CommitView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitView(c)
}

// Assignable returns the accounts that can be assigned to an issue or asked to review a pull request, sorted by login.
// With number 0, it leaves out those who can be assigned only because they commented.
func (p Person) Assignable(full string, number int) (out []string) {
	_ = p.do(func(x *session) error { // a hidden repository has no assignable accounts
		r, err := x.repo(full)
		if err != nil {
			return err
		}
		for login := range x.s.users {
			if i := r.Issues[number]; x.s.find.assignableIn(r, login) || i != nil && x.s.find.assignable(i, login) {
				out = append(out, login)
			}
		}
		return nil
	})
	slices.Sort(out)
	return out
}

// Closes returns the issues of the same repository that merging a pull request will close.
func (p Person) Closes(full string, number int) (out []int, err error) {
	err = p.onPull(full, number, func(x *session, pr *Pull) error {
		for _, i := range x.s.find.closedBy(pr) {
			if i.repo == pr.issue.repo {
				out = append(out, i.Number)
			}
		}
		return nil
	})
	return out, err
}

// CheckLine returns an error if the person cannot comment on a line, and else the head of the pull request.
func (p Person) CheckLine(full string, number int, c NewReviewComment) (head string, err error) {
	err = p.onPull(full, number, func(x *session, pr *Pull) error {
		head = pr.HeadSHA
		if err := x.reviews().check(pr, NewReview{}); err != nil {
			return err
		}
		_, err := x.reviews().newThread(pr, c, head)
		return err
	})
	return head, err
}

// UnrequestReview withdraws review requests.
func (p Person) UnrequestReview(full string, number int, logins ...string) error {
	return p.onPull(full, number, func(x *session, pr *Pull) error { return x.unrequestReviewers(pr, logins) })
}

// Visitor returns the person with a login, as As does, but creates no account. Without one, the person can only read
// public repositories.
func (s *Sim) Visitor(login string) Person { return Person{s: s, login: login} }
