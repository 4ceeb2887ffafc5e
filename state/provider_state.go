package state

import (
	"time"
)

// ProviderState is the reason why no run that uses a model provider is started, learned from an answer to a run of any task.
// It survives a restart.
type ProviderState struct {
	Kind   WaitKind  `json:"kind"`   // WaitLimit, or WaitKey
	Detail string    `json:"detail"` // for people; the same for the same cause
	Hint   string    `json:"hint,omitempty"`
	Since  time.Time `json:"since"` // when it was first learned
	// Until is the time at which a limit ends, or at which a refused key is tried again.
	Until time.Time `json:"until"`
	// Tries counts consecutive refusals of the key.
	Tries int `json:"tries,omitempty"`
}

// Waiting returns the wait of a task for this provider.
func (u ProviderState) Waiting() *Waiting {
	return &Waiting{Kind: u.Kind, Detail: u.Detail, Hint: u.Hint, Since: u.Since, Until: u.Until}
}
