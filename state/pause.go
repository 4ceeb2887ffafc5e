package state

import "time"

// Pause is an operator's order that no new run starts and no VM is created, in one repository or in all of them. Runs that
// work go on, finished work is published, and webhooks are applied. It lasts until the operator resumes, also over restarts.
type Pause struct {
	// Repo is the repository's ID, and Name its OWNER/NAME when it was paused. Both are empty if all repositories are paused.
	Repo   int64     `json:"repo,omitempty"`
	Name   string    `json:"name,omitempty"`
	Since  time.Time `json:"since"`
	By     string    `json:"by"`               // as in the audit log
	Reason string    `json:"reason,omitempty"` // one line for people
	// Restored is when the backup was made from which the store was restored. Then everything is paused, and nothing at all is done:
	// no job is claimed, nothing is posted, published, created or deleted. Zero for other pauses.
	Restored time.Time `json:"restored,omitzero"`
}

// Waiting returns the wait of a task that would start a run.
func (p Pause) Waiting() *Waiting {
	w := &Waiting{
		Kind: WaitPaused, Detail: "the operator paused errand",
		Hint: "The task continues automatically as soon as the operator resumes errand.",
	}
	if p.Repo != 0 {
		w.Detail, w.Hint = "the operator paused this repository", "The task continues automatically as soon as the operator resumes the repository."
	}
	if p.Reason != "" {
		w.Detail += ": " + p.Reason
	}
	return w
}
