package state

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state/settings"
)

// PRState is the state of a pull request.
type PRState string

// The states of a pull request.
const (
	PROpen   PRState = "open"
	PRMerged PRState = "merged"
	PRClosed PRState = "closed" // without a merge
)

// PR is the task's pull request.
type PR struct {
	Number int     `json:"number"`
	Node   string  `json:"node"`
	URL    string  `json:"url"`
	Title  string  `json:"title"`
	Draft  bool    `json:"draft,omitempty"`
	State  PRState `json:"state"`
	// Checks is pending, success, failure or unknown; empty if nothing is reported for the head. Success means that it is green:
	// package green decides it.
	Checks string `json:"checks,omitempty"`
	// ChecksReason says why, as a clause for people, and ChecksOptional lists the checks that fail but are not required. Both contain
	// names that other people chose.
	ChecksReason   string `json:"checks_reason,omitempty"`
	ChecksOptional string `json:"checks_optional,omitempty"`

	// Undecided is since when some checks of the head that count are not complete or not reported; zero if all are, or it is unknown.
	Undecided time.Time `json:"undecided,omitzero"`

	// DraftAt is when an event last said whether the pull request is a draft.
	DraftAt time.Time `json:"draft_at,omitzero"`

	// MarkedReady is set once the draft was marked ready for review, by errand or a person, or GitHub has refused that. errand does it once: who makes
	// it a draft again wants to wait. LateAt is when it does so although no check of the present head has started.
	MarkedReady bool      `json:"marked_ready,omitempty"`
	LateAt      time.Time `json:"late_at,omitzero"`
	// MergeWaits is why errand, which is to merge it, has not done so yet: a clause for people, which may contain others' text.
	MergeWaits string `json:"merge_waits,omitempty"`
	// MergeTried is the head that GitHub refused to merge, or that errand added to the merge queue. It is not tried again before the next approval.
	MergeTried string `json:"merge_tried,omitempty"`
	// Queued is set while the pull request may be in the merge queue to which errand added it.
	Queued bool `json:"queued,omitempty"`
	// ApproveAgain is set while GitHub adds the base's commits to what was approved, so that the approval is not of the newest commit any more.
	ApproveAgain bool `json:"approve_again,omitempty"`
	// PreventMerge is set before errand disables auto-merge, or removes the pull request from the merge queue, to push commits that nobody has reviewed.
	PreventMerge bool `json:"prevent_merge,omitempty"`

	// ReviewedAt is when a review by a person with write access was last received.
	ReviewedAt time.Time `json:"reviewed_at,omitzero"`

	Ready bool `json:"ready,omitempty"` // approved, ready to merge
	DCO   bool `json:"dco,omitempty"`   // a check of its commits for sign-offs failed
	// ReadyBy is the login of the person who approved it without text.
	ReadyBy string `json:"ready_by,omitempty"`
	// ClosedAt and ReopenedAt are when it was last closed without a merge, and last reopened, by GitHub's clock.
	ClosedAt   time.Time `json:"closed_at,omitzero"`
	ReopenedAt time.Time `json:"reopened_at,omitzero"`
	// KeptUntil is when a task whose pull request is closed is canceled; zero while it is open.
	KeptUntil time.Time `json:"kept_until,omitzero"`
	// InRound is set when a review round's work is not published because the pull request was closed, or the task ended. The next
	// round continues it.
	InRound bool `json:"in_round,omitempty"`
	// Unread is set if a review could not be read while the task did something else. It is read when that is done.
	Unread bool `json:"unread,omitempty"`
	// Unstated is why the newest statement of provenance is not on the pull request, a sentence; empty if it is, or is about to be. StatementFailures
	// counts how often posting it failed for good.
	Unstated          string `json:"unstated,omitempty"`
	StatementFailures int    `json:"statement_failures,omitempty"`
	// Repair is what errand did about failing checks, nil before anything was done.
	Repair *CIRepair `json:"repair,omitempty"`

	Conflict bool          `json:"conflict,omitempty"` // it cannot be merged, because its base changed the same lines
	Update   UpdateRequest `json:"update,omitzero"`    // the first command that has no answer yet
	// MoreUpdates are the commands that follow it, in their order. There are none without Update.
	MoreUpdates []UpdateRequest `json:"more_updates,omitempty"`
	// Updates counts the updates of the branch, and the rounds because of a conflict, since the last action of a person. It is larger than
	// MaxUpdates once people know that errand stopped.
	Updates int `json:"updates,omitempty"`
}

// MaxUpdates is the maximum of PR.Updates for which errand continues by itself.
const MaxUpdates = 3

// UpdateRequest is a person's command to add the newest commits of the base to the pull request. The zero value is none.
type UpdateRequest struct {
	By      Person `json:"by"`
	Comment int64  `json:"comment,omitempty"` // the comment with the command
	Rebase  bool   `json:"rebase,omitempty"`  // the branch's commits are to be moved onto the base
}

// MaxReplaced is the maximum length of Task.Replaced.
const MaxReplaced = 10

// ReplacedPR is a pull request whose task began anew without it.
type ReplacedPR struct {
	Number int    `json:"number,omitempty"` // 0 while it is not known whether it was opened
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch,omitempty"`
	Closed bool   `json:"closed,omitempty"` // it was seen closed or merged
}

// IsMergeReady reports whether the open pull request is approved and its checks let it be merged.
func (t *Task) IsMergeReady() bool {
	return t.PR != nil && t.PR.State == PROpen && t.PR.Ready && t.PR.Checks == "success"
}

// AwaitsReady reports whether the open pull request is a draft that errand is to mark ready for review.
func (t *Task) AwaitsReady() bool {
	return t.PR != nil && t.PR.State == PROpen && t.PR.Draft && !t.PR.MarkedReady && t.Settings.Draft == settings.DraftUntilGreen
}

// IsMergedByErrand reports whether errand is to merge the open pull request.
func (t *Task) IsMergedByErrand() bool {
	return t.PR != nil && t.PR.State == PROpen && t.Settings.Merge == settings.MergeWhenApproved
}

// CIRepair is what errand did about failing checks of its pull request.
type CIRepair struct {
	// Runs are the agent runs in a row that were to repair them; a person's push, review or command begins a new series.
	Runs int `json:"runs,omitempty"`
	// Tried is the head for which the last of them began. It is not repaired again: the run may have found nothing to change.
	Tried string `json:"tried,omitempty"`
	// HandedOver is set when people were asked to take over. Nothing more is done until one of them acts, or all checks succeed.
	HandedOver bool `json:"handed_over,omitempty"`
	// Series is how often errand began again after people were asked to take over. At most one comment asks them per head and series.
	Series int `json:"series,omitempty"`
	// Waits counts how often errand waited for checks to run again.
	Waits int `json:"waits,omitempty"`
	// Reran are the checks of the present head that errand had run again, or is about to, each at most once.
	Reran []Rerun `json:"reran,omitempty"`
	// Flaky are the names of checks of the present head that failed, and succeeded when run again.
	Flaky []string `json:"flaky,omitempty"`
}

// MaxReruns is the maximum number of checks of one head that errand wants to run again.
const MaxReruns = 20

// Rerun is a check that errand had run again, or is about to.
type Rerun struct {
	Check string    `json:"check"` // green.Check.Key
	Name  string    `json:"name"`
	Head  string    `json:"head"`
	ID    int64     `json:"id"` // of the check run that had failed
	At    time.Time `json:"at"`
	// Intended is set before GitHub is asked, and until it is known that GitHub agreed. If GitHub has a run with another ID, it did.
	Intended bool `json:"intended,omitempty"`
}

// StoreRerun stores a re-run, in the place of the intention.
func (r *CIRepair) StoreRerun(x Rerun) {
	if old := r.RerunOf(x.Check, x.Head); old != nil {
		*old = x
		return
	}
	r.Reran = append(r.Reran, x)
}

// RerunOf returns when and after which run a check of a head was run again, or was to be; nil if it was not.
func (r *CIRepair) RerunOf(check, head string) *Rerun {
	if r == nil {
		return nil
	}
	i := slices.IndexFunc(r.Reran, func(x Rerun) bool { return x.Check == check && x.Head == head })
	if i < 0 {
		return nil
	}
	return &r.Reran[i]
}

// CheckFault is the reason why a failing check is left to people.
type CheckFault string

// The reasons.
const (
	CheckFails      CheckFault = "fails"   // errand may not, or could not, repair it
	CheckBroken     CheckFault = "base"    // it fails on the base branch, too
	CheckUnfinished CheckFault = "result"  // it has not run to its end, such as a canceled one
	CheckSignOff    CheckFault = "dco"     // it wants sign-offs, which an agent cannot give
	CheckPending    CheckFault = "pending" // it does not end: Result is empty if it has not been reported
)

// CheckNote is a failing check that is left to people.
type CheckNote struct {
	Name   string     `json:"name"`
	URL    string     `json:"url,omitempty"`
	Fault  CheckFault `json:"fault"`
	Result string     `json:"result,omitempty"` // GitHub's word, such as "timed out"
	// Rerun is set if running it again might help, but errand lacks the permission.
	Rerun bool `json:"rerun,omitempty"`
}
