package simgithub

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Repo is a repository. Its git data is the bare repository Git.
type Repo struct {
	ID            int64
	NodeID        string
	Owner         string
	Name          string
	Private       bool
	Archived      bool
	DefaultBranch string
	Git           *git.Repository
	Collaborators map[string]Role // by login; the owner is always admin
	Labels        []Label
	Issues        map[int]*Issue // issues and pull requests, which share their numbers
	CheckRuns     []*CheckRun
	CheckSuites   []*CheckSuite
	Statuses      []*Status
	CreatedAt     time.Time
	UpdatedAt     time.Time
	PushedAt      time.Time

	lastNumber int
	left       map[int]*Issue // what was deleted (nil) or transferred, by its old number
}

// FullName is OWNER/NAME.
func (r *Repo) FullName() string { return r.Owner + "/" + r.Name }

// Label of a repository.
type Label struct {
	ID          int64
	NodeID      string
	Name        string
	Color       string
	Description string
}

// CheckRun is one run of a check on a commit.
type CheckRun struct {
	ID          int64
	SuiteID     int64
	NodeID      string
	Name        string
	HeadSHA     string
	Status      string // queued, in_progress or completed
	Conclusion  string // empty until completed
	DetailsURL  string
	ExternalID  string
	Title       string
	Summary     string
	Text        string
	ByApp       bool // made by the App of this stand-in, else by a CI that is not modelled
	StartedAt   time.Time
	CompletedAt time.Time // zero until completed
}

// Status is a commit status of the older kind.
type Status struct {
	ID          int64
	NodeID      string
	SHA         string
	State       string // error, failure, pending or success
	Context     string
	Description string
	TargetURL   string
	Creator     string
	CreatedAt   time.Time
}

// RoleOf is the highest grant that a login has here: everyone may read a public repository.
func (r *Repo) RoleOf(login string) Role {
	if login == r.Owner {
		return RoleAdmin
	}
	if role, ok := r.Collaborators[login]; ok && role.Rank() > 0 {
		return role
	}
	if r.Private {
		return RoleNone
	}
	return RoleRead
}

// IssuesByNumber lists issues and pull requests, oldest first.
func (r *Repo) IssuesByNumber() []*Issue {
	list := make([]*Issue, 0, len(r.Issues))
	for _, i := range r.Issues {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *Issue) int { return a.Number - b.Number })
	return list
}

// clone copies a repository so deeply that nothing exported is shared with the live one.
func (r *Repo) clone() *Repo {
	c := *r
	c.Collaborators = make(map[string]Role, len(r.Collaborators))
	for k, v := range r.Collaborators {
		c.Collaborators[k] = v
	}
	c.Labels = slices.Clone(r.Labels)
	c.Issues = make(map[int]*Issue, len(r.Issues))
	for n, i := range r.Issues {
		c.Issues[n] = i.clone()
	}
	c.CheckRuns = cloneAll(r.CheckRuns)
	c.CheckSuites = cloneAll(r.CheckSuites)
	c.Statuses = cloneAll(r.Statuses)
	return &c
}

// cloneAll copies each element of a list of flat structs.
func cloneAll[T any](in []*T) []*T {
	out := make([]*T, len(in))
	for i, p := range in {
		v := *p
		out[i] = &v
	}
	return out
}

// Explicit lists the owner and all collaborators by name.
func (r *Repo) Explicit() []string {
	list := []string{r.Owner}
	for login := range r.Collaborators {
		if login != r.Owner {
			list = append(list, login)
		}
	}
	slices.Sort(list)
	return list
}
