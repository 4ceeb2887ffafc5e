package simgithub

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// Repo is a repository. Git holds its branches and files.
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
	// RequiredChecks are the checks that branches require. The map and its lists are never changed, only replaced.
	RequiredChecks map[string][]RequiredCheck
	// UpToDate are the branches into which only pull requests can be merged that have their newest commits. The map is never changed, only
	// replaced.
	UpToDate map[string]bool
	// MergeQueues are the branches into which only their merge queue merges pull requests. The map is never changed, only replaced.
	MergeQueues map[string]bool
	AutoMerge   bool // auto-merge can be enabled
	// MergeMethods are the ways to merge pull requests that are allowed: merge, squash and rebase; nil allows all.
	MergeMethods []string
	CreatedAt    time.Time
	UpdatedAt    time.Time
	PushedAt     time.Time

	wasEmpty   bool // it was created without a commit
	lastNumber int
	left       map[int]*Issue // deleted (nil) and transferred issues by their old numbers
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
	ByApp       bool // created by the simulator's App, else by a CI
	StartedAt   time.Time
	CompletedAt time.Time // zero until completed

	job     *Job // as reported by a CI, never changed; nil for a run of the simulator's App
	attempt int  // of the workflow run
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

// RoleOf returns the role of a login: everybody may at least read a public repository.
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

// IssuesByNumber returns issues and pull requests, oldest first.
func (r *Repo) IssuesByNumber() []*Issue {
	list := make([]*Issue, 0, len(r.Issues))
	for _, i := range r.Issues {
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b *Issue) int { return a.Number - b.Number })
	return list
}

// clone returns a deep copy: its exported fields share nothing with the original except Git.
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

// cloneAll returns copies of structs without references.
func cloneAll[T any](in []*T) []*T {
	out := make([]*T, len(in))
	for i, p := range in {
		v := *p
		out[i] = &v
	}
	return out
}

// Explicit returns the owner and all collaborators, sorted by login.
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
