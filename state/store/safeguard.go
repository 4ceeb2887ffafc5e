package store

import (
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// Safeguard names something that the store does so that crashes and repetitions do no harm.
type Safeguard string

// The safeguards that Options.Without may leave out.
const (
	SafeguardFencing    Safeguard = "fencing"    // a worker whose lease was lost changes nothing
	SafeguardTombstones Safeguard = "tombstones" // a delivery's GUID outlives it
	SafeguardCoalescing Safeguard = "coalescing" // changes share an edit of the status comment, with pauses between edits
)

func (s *Store) lacks(g Safeguard) bool { return slices.Contains(s.without, g) }

// twin returns the queued job that a new one would repeat, nil if there is none.
func (s *Store) twin(q *queue, job *state.Job) *state.Job {
	if s.lacks(SafeguardCoalescing) && job.Kind == state.JobStatus {
		job.NotBefore = time.Time{}
		return nil
	}
	return q.queued(job.Key)
}
