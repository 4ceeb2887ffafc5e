package state

import (
	"time"
)

// Upstream is why no run is started that asks a provider of models, learned from an answer that it gave to a
// run of any task. It outlives a restart.
type Upstream struct {
	Kind   WaitKind  `json:"kind"`   // WaitLimit, or WaitKey
	Detail string    `json:"detail"` // for people, and the same as long as the cause is
	Hint   string    `json:"hint,omitempty"`
	Since  time.Time `json:"since"` // when it was first learned
	// Until is when a limit ends, or when it is looked again whether the key works.
	Until time.Time `json:"until"`
	// Tries counts how often in a row the key was refused.
	Tries int `json:"tries,omitempty"`
}

// Waiting says so as what a task waits for.
func (u Upstream) Waiting() *Waiting {
	return &Waiting{Kind: u.Kind, Detail: u.Detail, Hint: u.Hint, Since: u.Since, Until: u.Until}
}
