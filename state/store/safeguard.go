package store

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// Safeguard is a measure of the store that makes crashes and repetitions harmless.
type Safeguard string

// The safeguards that Options.DisabledSafeguards can disable.
const (
	SafeguardFencing    Safeguard = "fencing"    // a worker that lost its lease cannot change anything
	SafeguardTombstones Safeguard = "tombstones" // a delivery's GUID is kept longer than the delivery
	SafeguardCoalescing Safeguard = "coalescing" // changes share an edit of the status comment, with pauses between edits
)

func (s *Store) isDisabled(g Safeguard) bool { return slices.Contains(s.disabled, g) }

// findDuplicate returns the queued job that a new one would duplicate, or nil if there is none.
func (s *Store) findDuplicate(q *queue, job *state.Job) *state.Job {
	if s.isDisabled(SafeguardCoalescing) && job.Kind == state.JobStatus {
		job.NotBefore = time.Time{}
		return nil
	}
	return q.findQueued(job.Key)
}
