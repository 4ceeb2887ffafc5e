package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// maxUnknownOutcomes is the maximum length of Task.UnknownOutcomes.
const maxUnknownOutcomes = 50

// storeUnknownOutcome stores that a job failed with an unknown outcome, so that an equal job checks for its effect first.
func storeUnknownOutcome(c *change) {
	f := of[event.StepFailed](c).Failure
	if f.UnknownSince.IsZero() || c.t == nil {
		return
	}
	if c.t.UnknownOutcomes == nil {
		c.t.UnknownOutcomes = map[string]time.Time{}
	}
	if _, known := c.t.UnknownOutcomes[f.Key]; known {
		return
	}
	if len(c.t.UnknownOutcomes) == maxUnknownOutcomes {
		oldest := slices.MinFunc(slices.Sorted(maps.Keys(c.t.UnknownOutcomes)), func(a, b string) int { return c.t.UnknownOutcomes[a].Compare(c.t.UnknownOutcomes[b]) })
		delete(c.t.UnknownOutcomes, oldest)
	}
	c.t.UnknownOutcomes[f.Key] = f.UnknownSince
}

// unknownSince returns the time since which the effect of a job may exist, or zero. A branch has one pull request, whichever
// job of the task's life opens it: after a retry the job has another key.
func unknownSince(t *state.Task, j state.Job) time.Time {
	since := t.UnknownOutcomes[j.Key]
	if j.Kind != state.JobOpenPR {
		return since
	}
	for key, at := range t.UnknownOutcomes {
		if strings.HasPrefix(key, fmt.Sprintf("%d.%s-", t.Gen, state.JobOpenPR)) && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	return since
}
