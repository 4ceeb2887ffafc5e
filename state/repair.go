package state

import (
	"slices"
	"time"
)

// CIRepair is what errand did about failing checks of its pull request.
type CIRepair struct {
	// Runs are the agent runs in a row that were to repair them; a person's push, review or command begins a new row.
	Runs int `json:"runs,omitempty"`
	// Tried is the head for which the last of them began. It is not repaired again: the run may have found nothing to change.
	Tried string `json:"tried,omitempty"`
	// HandedOver is set when people were asked to take over. Nothing more is done in this row.
	HandedOver bool `json:"handed_over,omitempty"`
	// Reran are the checks of the present head that errand had run again, each at most once.
	Reran []Rerun `json:"reran,omitempty"`
	// Flaky are the names of checks of the present head that failed, and succeeded when run again.
	Flaky []string `json:"flaky,omitempty"`
}

// MaxReruns is the maximum number of checks of one head that are run again.
const MaxReruns = 20

// Rerun is a check that errand had run again.
type Rerun struct {
	Check string    `json:"check"` // green.Check.Key
	Name  string    `json:"name"`
	Head  string    `json:"head"`
	ID    int64     `json:"id"` // of the check run that had failed
	At    time.Time `json:"at"`
}

// RerunOf returns when and after which run a check of a head was run again, nil if it was not.
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
	CheckFails      CheckFault = "fails"  // errand may not, or could not, repair it
	CheckBroken     CheckFault = "base"   // it fails on the base branch, too
	CheckUnfinished CheckFault = "result" // it has not run to its end, such as a canceled one
	CheckSignOff    CheckFault = "dco"    // it wants sign-offs, which an agent cannot give
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
