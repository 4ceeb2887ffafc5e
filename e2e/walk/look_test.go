package walk

import (
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Before errand repeats a write whose result is unknown, it must look for the effect. The model checks this at the
// write, so that it need not wait for a duplicate. A write is known once the store accepts the result of a job with its
// key; until then its answer may be lost.

// effect is a comment, a reply or a pull request that a job has made.
type effect struct {
	at  time.Time
	job string // task and key
}

// claimLook is a search for earlier effects within one claim of a job.
type claimLook struct {
	job    string
	claim  int
	marker string
}

func markOf(words string) string { return strings.TrimSpace(marker.FindString(words)) }

// ofTask distinguishes equal markers of two tasks.
func ofTask(j *state.Job, what string) string { return j.Task.String() + " " + what }

// creates checks a write that is about to happen against effects that errand does not know.
func (m *model) creates(what string) {
	if m.blind {
		return
	}
	j := m.w.job
	if j == nil || len(m.untold[ofTask(j, what)]) == 0 {
		return
	}
	m.w.hit("look before a write")
	first := m.untold[ofTask(j, what)][0]
	since, ok := m.looks[claimLook{keyOf(j), j.Attempt, what}]
	switch {
	case !ok:
		m.w.complain("look: job %s of task %s writes %s without looking for it, but it was already written at %s", j.Key, j.Task, what, sub(first.at))
	case since.After(first.at):
		m.w.complain("look: job %s of task %s looked for %s only since %s, but it was already written at %s", j.Key, j.Task, what, sub(since), sub(first.at))
	}
}

// created records a new effect.
func (m *model) created(what string) {
	if j := m.w.job; j != nil {
		m.untold[ofTask(j, what)] = append(m.untold[ofTask(j, what)], effect{m.w.now, keyOf(j)})
	}
}

// recordSearch records a search.
func (m *model) recordSearch(what string, since time.Time) {
	if j := m.w.job; j != nil {
		m.looks[claimLook{keyOf(j), j.Attempt, what}] = since
	}
}

// told records that the store knows the result of a job.
func (m *model) told(j *state.Job, e event.Event) {
	if e.Kind() == event.KindStepFailed {
		return
	}
	for what, list := range m.untold {
		if list[0].job == keyOf(j) {
			delete(m.untold, what)
		}
	}
}

// pullOf is the key of a branch's pull request in one life of its task; that of an earlier life is not a duplicate.
func (m *model) pullOf(branch string) string {
	life := ""
	if m.w.job != nil {
		life, _, _ = strings.Cut(m.w.job.Key, ".")
	}
	return "pull request of life " + life + " from " + branch
}
