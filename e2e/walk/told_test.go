package walk

import (
	"context"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// Effects on GitHub that the store has as done must exist there. This is checked when the store accepts them, before
// anything else goes wrong.

// shows records the text of a comment that a call is about to write.
func (m *model) shows(id int64, words string) {
	if j := m.w.job; j != nil {
		m.writes[keyOf(j)] = write1{id, words}
	}
}

// write1 is a job's last write.
type write1 struct {
	id    int64
	words string
}

// done compares a job's result with GitHub.
func (m *model) done(r *record, after *state.Task, e event.Event) {
	switch e.Kind() {
	case event.KindStatusSent:
		delete(m.shownAll, e.Task)
		if after != nil && after.Status.Shown >= after.Visible {
			m.shownAll[e.Task] = m.w.now
		}
		w, ok := m.writes[keyOf(r.Job)]
		if c := m.w.hub.byID(event.Of[event.StatusSent](e).Status.Comment); c != nil && ok && w.id == c.id && c.body() != w.words {
			m.w.complain("told: the status comment of task %s counts as updated, but does not have the new text", e.Task)
		}
	case event.KindBranchMoved:
		if after != nil && after.Branch.Head != "" && !m.w.works.heads[after.Branch.Head] {
			m.w.complain("told: branch %s of task %s counts as moved to %.8s, but never was", after.Branch.Name, e.Task, after.Branch.Head)
		}
	case event.KindPROpened:
		m.checkGathered(r, after, e)
	}
	delete(m.writes, keyOf(r.Job))
}

// checkGathered checks that errand reads earlier reviews of a pull request when it learns of the pull request, because
// they are not reported again.
func (m *model) checkGathered(r *record, after *state.Task, e event.Event) {
	if after == nil || after.Phase != state.PhasePROpen || m.w.hub.issues[event.Of[event.PROpened](e).PR.Number] == nil {
		return
	}
	p := m.w.hub.issues[event.Of[event.PROpened](e).PR.Number].pull
	if len(p.reviews) > 0 && !m.w.jobs.queued(after, func(j *state.Job) bool { return j.Kind == state.JobGather }) {
		m.w.complain("told: #%d was reviewed before task %s knew of it, but the review is not read", event.Of[event.PROpened](e).PR.Number, e.Task)
	}
}

// checkPace checks the gap between edits of a status comment. After an edit with the complete state, a job that was
// queued during the edit keeps its time, and shows all changes until then. The first edit of a life need not wait: it may continue
// the comment of the life before.
func (m *model) checkPace(j *state.Job, t *state.Task) {
	if t != nil && !j.Created.After(m.shownAll[t.Key]) {
		return
	}
	if j.Kind != state.JobStatus || t == nil || t.Status.At.IsZero() {
		return
	}
	if gap := machine.DefaultPolicy().StatusGap; m.w.now.Sub(t.Trigger.At) > gap && m.w.now.Before(t.Status.At.Add(gap-time.Second)) {
		m.w.complain("pace: the status comment of task %s is written only %s after its last edit", t.Key, m.w.now.Sub(t.Status.At))
	}
}

// queued reports whether a task has such a job.
func (b *jobs) queued(t *state.Task, match func(*state.Job) bool) bool {
	list, err := b.w.store.Jobs(context.Background(), t.Key)
	if err != nil {
		b.w.complain("store: read the jobs of task %s: %v", t.Key, err)
	}
	for i := range list {
		if match(&list[i]) {
			return true
		}
	}
	return false
}
