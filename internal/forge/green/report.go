// Package green decides whether the checks of a pull request's head let it be merged.
//
// Package forge reads a [Report] from GitHub: check runs and commit statuses, which of them are required, and the names that the
// base branch requires. [Judge] is a pure function of it and of the time. A report that may lack a required check is never green: not
// an empty one, not one with a page missing, and not one of which it is unknown what is required.
//
// docs/checks.md explains the rules to users. Start with [Judge].
package green

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// State is the state of a check, or of all checks of a head together.
type State string

// The states. Tasks store those of heads.
const (
	None    State = "none" // nothing is reported, and nothing is known to be required
	Pending State = "pending"
	Success State = "success" // of a check also neutral and skipped, as for GitHub
	Failure State = "failure"
	Unknown State = "unknown" // nothing failed, but it is not known whether a required check is missing
)

// Check is one check run or commit status.
type Check struct {
	ID   int64 // of a check run: those of later runs are larger; 0 if unknown
	Name string
	App  int64 // ID of the App that reported a check run; 0 for statuses
	// Group and Event tell checks of the same name and App apart: GitHub Actions reports the jobs of all workflows, and of one workflow for
	// each event that starts it. Group is the workflow, or the check suite without one; Event is such as "push".
	Group  string
	Event  string
	Status bool  // a commit status
	State  State // pending, success or failure
	// Result is GitHub's word for the state in lower case, such as "timed out".
	Result string
	// Expected is set for a status that GitHub lists although nobody has reported it yet.
	Expected bool
	Required bool      // GitHub requires it for this pull request
	Started  time.Time // of this run; zero if it only waits for its start
	Changed  time.Time // the last time at which it was added or completed
	URL      string
	Summary  string
}

// Key names the check among those of a commit. Runs of the same check on other commits have the same key where GitHub tells the workflow.
func (c Check) Key() string {
	kind := "run"
	if c.Status {
		kind = "status"
	}
	return fmt.Sprintf("%s/%d/%s/%s/%s", kind, c.App, c.Group, c.Event, c.Name)
}

// Requirement is the name of a check that the base branch requires.
type Requirement struct {
	Name string
	App  int64 // the only App whose check counts; 0: any
}

// Report is what GitHub says about the checks of one commit.
type Report struct {
	Head     string // the pull request's head when the checks were read
	Checks   []Check
	Total    int // the number of checks that GitHub counted
	Required []Requirement
	// Workflows is the number of workflows that rulesets require. The names of their checks are not in Required.
	Workflows int
	// Incomplete is the reason why a required check may be missing from the report, as a clause for people; empty if none may.
	Incomplete string
}

// Requires reports whether a check is required, according to GitHub or to one of the requirements.
func (r Report) Requires(c Check) bool {
	return c.Required || r.names(c)
}

// names reports whether a check is one of those that the requirements name.
func (r Report) names(c Check) bool {
	return slices.ContainsFunc(r.Required, func(q Requirement) bool { return q.IsMetBy(c) })
}

// IsMetBy reports whether a check is one of those that the requirement names. GitHub does not say which App reported a status: one that it
// calls required is taken for the App's.
func (q Requirement) IsMetBy(c Check) bool {
	return q.Name == c.Name && (q.App == 0 || q.App == c.App || c.Status && c.Required)
}

// Newest returns the newest of the checks that have a name, an App, a group and an event in common, by name.
func Newest(all []Check) []Check {
	type key struct {
		name   string
		app    int64
		group  string
		event  string
		status bool
	}
	newest := map[key]Check{}
	for _, c := range all {
		k := key{c.Name, c.App, c.Group, c.Event, c.Status}
		if old, ok := newest[k]; !ok || replaces(c, old) {
			newest[k] = c
		}
	}
	list := make([]Check, 0, len(newest))
	for _, c := range newest {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Check) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.App, b.App), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Event, b.Event),
			compareKinds(a, b))
	})
	return list
}

// replaces reports whether a check is newer than another one with which it has these in common. Without IDs the times decide, which are whole
// seconds: a run that waits for its start is the newest, and of two that began at the same time it is the one that is worse.
func replaces(c, old Check) bool {
	switch {
	case c.ID != 0 && old.ID != 0 && c.ID != old.ID:
		return c.ID > old.ID
	case c.Started.IsZero() != old.Started.IsZero():
		return c.Started.IsZero()
	case !c.Started.Equal(old.Started):
		return c.Started.After(old.Started)
	}
	return badness(c.State) > badness(old.State)
}

func badness(s State) int { return slices.Index([]State{Success, Pending, Failure}, s) }

func compareKinds(a, b Check) int {
	switch {
	case a.Status == b.Status:
		return 0
	case a.Status:
		return 1
	}
	return -1
}
