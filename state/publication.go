package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// TaskChanges holds a task's changes on their way from the VM to the pull request.
type TaskChanges struct {
	Branch Branch      `json:"branch"`
	Work   *Work       `json:"work,omitempty"` // the changeset that is being published
	Saved  []SavedWork `json:"saved,omitempty"`
	// GateRefusals lists the newest refusals of the push gate, oldest first.
	GateRefusals []GateRefusal `json:"gate,omitempty"`
	PR           *PR           `json:"pr,omitempty"`
	Round        int           `json:"round"` // review rounds so far
	// Replaced lists pull requests of earlier lives that this life does not continue, the newest MaxReplaced. They must not be
	// open: errand closes them.
	Replaced []ReplacedPR `json:"replaced,omitempty"`
	// Publications lists the changesets that were published on the branch, oldest first, the newest MaxPublications.
	Publications []Publication `json:"publications,omitempty"`
}

// Limits on stored publications.
const (
	MaxPublications      = 100
	MaxPublishedCommits  = 250 // of all publications together; GitHub lists as many of a pull request
	MaxPublicationChecks = 50
	MaxUnconfirmed       = 5 // publications of which errand does not know whether they happened
)

// Publication is one changeset that was published on the task's branch.
type Publication struct {
	At time.Time `json:"at"` // when errand moved the branch
	// Unconfirmed is set until errand knows that the branch was moved. It stays if the answer was lost, and somebody pushed or the task
	// ended meanwhile.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Gap is set if errand may have published other changesets between the one before and this one, and does not know them: an older
	// version stored none, and a store that was restored from a backup lacks those since.
	Gap   bool   `json:"gap,omitempty"`
	Run   string `json:"run"`
	Round int    `json:"round,omitempty"` // of the review, 0 for the first changes
	// Update is set if GitHub made these commits when errand asked it to add the newest commits of the base to the branch. Then Base is the commit
	// of the base, and Head and Tree are empty until errand knows the result; there are no run, digest, commits and checks.
	Update *BranchUpdate `json:"update,omitempty"`
	// Plan is the hash of the approved plan, and Changes that of the approved changes; both may be empty.
	Plan    string `json:"plan,omitempty"`
	Changes string `json:"changes,omitempty"`
	Base    string `json:"base"`   // the commit on which the changeset is based
	Digest  string `json:"digest"` // of the changeset, as it came from the VM
	Head    string `json:"head"`
	Tree    string `json:"tree"`
	// Commits are the published ones, oldest first. Left is the number of the oldest that are not stored.
	Commits []PublishedCommit `json:"commits,omitempty"`
	Left    int               `json:"left,omitempty"`
	// Checks are the results of the repository's commands, which ran on the VM.
	Checks []PublishedCheck `json:"checks,omitempty"`
	// Title is the agent's title of its work, and Summary the SHA-256 of its description.
	Title   string `json:"title,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// BranchUpdate is a request to GitHub to add the newest commits of the base to the branch of a pull request.
type BranchUpdate struct {
	Method UpdateMethod `json:"method"`
	By     Person       `json:"by,omitzero"` // who asked for it by a command, zero if nobody did
	Before string       `json:"before"`      // the head that GitHub was asked to update
}

// UpdateMethod is how GitHub adds the newest commits of the base to a branch.
type UpdateMethod string

// The methods of updates.
const (
	UpdateMerge  UpdateMethod = "merge"  // GitHub merges the base into the branch
	UpdateRebase UpdateMethod = "rebase" // GitHub puts copies of the branch's commits on the base
)

// PublishedCommit is a commit as it is on GitHub.
type PublishedCommit struct {
	ID   string `json:"id"`
	Tree string `json:"tree"`
}

// PublishedCheck is the result of one of the repository's commands.
type PublishedCheck struct {
	Name    string       `json:"name"`
	Outcome CheckOutcome `json:"outcome"`
	Code    int          `json:"code,omitempty"`
}

// CheckOutcome is how one of the repository's commands ended.
type CheckOutcome string

// The outcomes of the repository's commands.
const (
	CheckPassed   CheckOutcome = "passed"
	CheckFailed   CheckOutcome = "failed"
	CheckTimedOut CheckOutcome = "timed_out"
	CheckSkipped  CheckOutcome = "skipped"
)

// publishedChecks returns the first results, without the output of the commands.
func publishedChecks(list []CheckResult) (out []PublishedCheck) {
	for _, r := range list[:min(len(list), MaxPublicationChecks)] {
		p := PublishedCheck{Name: Truncate(r.Name), Outcome: CheckPassed, Code: r.Code}
		switch {
		case r.TimedOut:
			p.Outcome = CheckTimedOut
		case r.Code != 0:
			p.Outcome = CheckFailed
		case r.Skipped != "":
			p.Outcome = CheckSkipped
		}
		out = append(out, p)
	}
	return out
}

// BeginPublication stores that the branch is about to be moved to the task's changeset. restored is when the store was last restored from a
// backup, zero if it never was. It reports whether there is something to be stored: older versions did not record the commits. Repeated
// calls for the same head change nothing.
func (t *Task) BeginPublication(now, restored time.Time) bool {
	w := t.Work
	if w == nil || len(w.Published) == 0 {
		return false
	}
	n := len(t.Publications)
	if n > 0 && t.Publications[n-1].Head == w.Head {
		return true
	}
	p := Publication{
		At: now, Unconfirmed: true, Run: w.Run, Round: t.Round, Changes: w.Approved, Base: w.Base, Digest: w.Digest, Head: w.Head, Tree: w.Tree,
		Commits: w.Published, Checks: publishedChecks(w.Checks), Title: Truncate(w.Title),
	}
	if n == 0 {
		p.Gap = t.Branch.Head != ""
	} else {
		p.Gap = t.Publications[n-1].At.Before(restored)
	}
	if text := cmp.Or(w.Text, w.Summary); text != "" {
		sum := sha256.Sum256([]byte(text))
		p.Summary = hex.EncodeToString(sum[:])
	}
	if t.Approval != nil {
		p.Plan = t.Approval.Hash
	}
	t.Publications = append(t.Publications, p)
	t.boundPublications()
	return true
}

// AddPublication stores that the branch was moved to the task's changeset.
func (t *Task) AddPublication(now, restored time.Time) {
	if !t.BeginPublication(now, restored) {
		return
	}
	if p := &t.Publications[len(t.Publications)-1]; p.Unconfirmed {
		p.At, p.Unconfirmed = now, false
	}
}

// AddUpdate stores an update of the branch by GitHub, whose Head is empty if its result is not known yet, and reports whether it is new. It replaces
// what was stored about the same request. Nothing is stored about a pull request whose commits are not known.
func (t *Task) AddUpdate(p Publication, restored time.Time) bool {
	if t.LastPublication() == nil || p.Update == nil {
		return false
	}
	p.Unconfirmed = p.Head == ""
	last := &t.Publications[len(t.Publications)-1]
	if last.Update != nil && last.Update.Before == p.Update.Before {
		if p.Unconfirmed || !last.Unconfirmed {
			return false
		}
		p.Gap = last.Gap
		*last = p
		return true
	}
	p.Gap = last.At.Before(restored)
	t.Publications = append(t.Publications, p)
	t.boundPublications()
	return true
}

// PendingUpdate returns the newest publication if it is an update by GitHub whose result is not known yet, otherwise nil.
func (t *Task) PendingUpdate() *Publication {
	if n := len(t.Publications); n > 0 && t.Publications[n-1].Update != nil && t.Publications[n-1].Unconfirmed {
		return &t.Publications[n-1]
	}
	return nil
}

// LastPublication returns the newest publication that is known to have happened, nil if there is none.
func (t *Task) LastPublication() *Publication {
	for i := len(t.Publications) - 1; i >= 0; i-- {
		if p := &t.Publications[i]; !p.Unconfirmed {
			return p
		}
	}
	return nil
}

// boundPublications forgets the oldest publications and commits beyond the limits.
func (t *Task) boundPublications() {
	unconfirmed := 0
	for i := len(t.Publications) - 1; i >= 0; i-- {
		if !t.Publications[i].Unconfirmed {
			continue
		}
		if unconfirmed++; unconfirmed > MaxUnconfirmed {
			t.Publications[i+1].Gap = true // the newest one is never the surplus
			t.Publications = slices.Delete(t.Publications, i, i+1)
		}
	}
	t.Publications = t.Publications[max(0, len(t.Publications)-MaxPublications):]
	room := MaxPublishedCommits
	for i := len(t.Publications) - 1; i >= 0; i-- {
		p := &t.Publications[i]
		if cut := len(p.Commits) - room; cut > 0 {
			p.Commits, p.Left = p.Commits[cut:], p.Left+cut
		}
		room -= len(p.Commits)
	}
}
