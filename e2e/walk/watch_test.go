package walk

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/state"
)

// Time limits without failures, and after a failure.
const (
	soon     = 30 * time.Second
	after    = 20 * time.Minute
	patience = 20 * time.Minute
)

// watch checks the promises about times and ends. It is called at every instant at which something happened.
func (m *model) watch() {
	if m.blind {
		return
	}
	w := m.w
	for _, g := range m.triggers {
		if g.seen || g.dropped || !g.able || !g.by.canWrite() || g.by.Bot || g.by.lost.After(g.at) {
			continue
		}
		limit := g.at.Add(soon + 5*time.Second + w.coarse)
		if !w.trouble.IsZero() && !w.trouble.Before(g.at.Add(-after)) {
			limit = latest(limit, w.trouble.Add(after+2*w.coarse))
		}
		if w.now.After(limit) && w.errand.up() {
			w.fatalf("silence: @%s triggered #%d at %s without a visible reaction", g.by.Login, g.on.number, g.at.Sub(began()))
		}
	}
	for _, t := range w.tasks() {
		m.life(t)
		m.moves(t)
		m.checkReachable(t)
		m.checkApprovalsTaken(t, false)
		m.checkReasonTold(t, false)
	}
	m.checkQueue()
	m.heard(false)
	m.checkMessages(false)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// life compares a task with its last known state.
func (m *model) life(t *state.Task) {
	w := m.w
	w.hit("phase " + string(t.Phase))
	l := m.lives[t.Key]
	if l == nil || t.Gen > l.gen {
		m.checkBegin(t, l)
		return
	}
	if l.ended && !t.Ended() {
		w.fatalf("end: task %s had ended, but is %s", t.Key, t.Phase)
	}
	if t.Ended() && !l.ended {
		l.ended = true
		for _, e := range slices.Concat(m.ends, m.pullEnds) { // of several acts that end it, the first one that errand learned of
			if e.on.number == t.Key.Issue && e.at.Truncate(time.Second).Equal(t.End.Acted) {
				l.endAct = e.at
				break
			}
		}
		w.note("task %s is %s: %s", t.Key, t.Phase, t.End.Reason)
		if l.endAct.Before(l.trigger) || t.End.Acted.IsZero() { // a sweep does not tell when the act was
			l.endAct, l.byItself = w.now, true
		}
	}
}

// checkBegin checks that every life was started by a person.
func (m *model) checkBegin(t *state.Task, before *life) {
	w := m.w
	var by *trigger
	if before != nil && !before.ended { // its end was not observed: it may be due to any act since its beginning
		for _, e := range m.ends {
			if e.on.number == t.Key.Issue && e.at.After(before.trigger) && e.at.Before(before.endAct) {
				before.endAct = e.at
			}
		}
	}
	for _, g := range m.triggers {
		if g.on.number != t.Key.Issue || g.used || !g.by.mightSince(g.at) || g.by.Bot {
			continue
		}
		if before != nil && g.at.Truncate(time.Second).Before(before.over()) || g.isRemoved(t.History[0].At) {
			continue
		}
		by = g
		break
	}
	if by == nil && before == nil {
		w.fatalf("trust: task %s began without a writer's action", t.Key)
	}
	if by == nil {
		w.fatalf("end: life %d of task %s began without a writer's action since the end of the last one", t.Gen, t.Key)
		return
	}
	for _, g := range m.triggers { // earlier triggers cannot start a later life; another one at the same instant may be a restart
		if g.on == by.on && (g == by || g.at.Before(by.at)) {
			g.used = true
		}
	}
	w.note("task %s begins (life %d) in %s", t.Key, t.Gen, t.Phase)
	m.lives[t.Key] = &life{gen: t.Gen, began: t.Gen, trigger: by.at, version: t.Version, moved: w.now, ended: t.Ended()}
	if before != nil && by.retries {
		m.lives[t.Key].began = before.began
	}
	for _, e := range m.ends { // errand learned of these acts late
		if e.on == by.on && e.at.After(by.at) {
			m.lives[t.Key].endAct = e.at
			break
		}
	}
	if t.Ended() && m.lives[t.Key].endAct.IsZero() {
		m.lives[t.Key].endAct = w.now
	}
}

// over is the instant after which a person must have started the next life. The time of an end by errand is by its
// clock, which may be wrong.
func (l *life) over() time.Time {
	if l.byItself {
		return l.endAct.Add(-2 * time.Minute).Truncate(time.Second)
	}
	return l.endAct.Truncate(time.Second)
}

// moves checks that a task that waits for nothing makes progress.
func (m *model) moves(t *state.Task) {
	w, l := m.w, m.lives[t.Key]
	if t.Version != l.version {
		if t.Phase != "" && len(t.History) > 0 {
			last := t.History[len(t.History)-1]
			if last.At.Equal(w.now.Truncate(0)) {
				w.note("task %s: %s (%s)", t.Key, last.Phase, last.Reason)
			}
		}
		l.version, l.moved = t.Version, w.now
	}
	if why := w.rests(t); why != "" {
		l.moved = w.now
		return
	}
	from := l.moved
	if w.trouble.After(from) {
		from = w.trouble
	}
	if w.errand.up() && w.now.After(from.Add(patience+3*w.coarse)) {
		w.fatalf("moves: task %s has not moved since %s: phase %s, step %q, run %+v, waiting %+v, jobs %v", t.Key, from.Sub(began()), t.Phase, t.Step, t.Run, t.Waiting, w.jobsOf(t))
	}
}

func (w *world) jobsOf(t *state.Task) (out []string) {
	jobs, err := w.store.Jobs(context.Background(), t.Key)
	if err != nil {
		w.fatalf("list jobs: %v", err)
	}
	for _, j := range jobs {
		out = append(out, fmt.Sprintf("%s/%s %s attempt %d at %s: %s", j.Lane, j.Key, j.State, j.Attempt, j.NotBefore.Sub(began()), j.LastError))
	}
	return out
}

// rests returns what a task waits for, or "".
func (w *world) rests(t *state.Task) string {
	switch {
	case t.Ended() && t.Run == nil && t.VM == nil:
		return "over"
	case t.Phase == state.PhaseFailed || t.Phase == state.PhaseAwaitingAnswer || t.Phase == state.PhasePROpen || t.Phase == state.PhasePRClosed && t.Step == "":
		return "people"
	case t.Phase.AwaitsApproval():
		if t.NewestPlan().Posted() {
			return "people"
		}
	case t.Waiting != nil && (t.Waiting.Until.IsZero() || w.now.Before(t.Waiting.Until.Add(time.Minute))):
		return string(t.Waiting.Kind)
	case t.Run != nil && t.Run.State == state.RunActive:
		for _, o := range w.machines.list {
			if r := o.run(t.Run.ID); r != nil && r.exit == nil {
				return "its run"
			}
		}
	}
	return ""
}

var marker = regexp.MustCompile(`<!-- errand:\S+ -->\s*$`)

// final ends all failures, lets time pass and checks the promises about ends.
func (m *model) final() {
	w := m.w
	w.lag, w.armed, w.chains, w.mishap, w.out, w.downUntil, w.machines.full, w.mood = 0, nil, nil, mishap{}, time.Time{}, time.Time{}, time.Time{}, ""
	w.grants()
	for _, o := range w.machines.list {
		o.deaf = time.Time{}
	}
	w.pass(3 * time.Minute)
	w.pass(40 * time.Minute)
	w.pass(4 * time.Hour)
	for range 4 { // the status comment is edited some seconds after the last event, a failed edit is repeated after minutes
		if !slices.ContainsFunc(w.tasks(), func(t *state.Task) bool { return !outOfReach(t) && t.Status.Shown < t.Visible }) {
			break
		}
		w.pass(20 * time.Second)
	}
	m.sound()
	for _, t := range w.tasks() {
		if w.rests(t) == "" {
			w.fatalf("moves: at the end task %s is %s and waits for nothing: step %q, jobs %v", t.Key, t.Phase, t.Step, w.jobsOf(t))
		}
		m.shownStatus(t)
		m.checkApprovalsTaken(t, true)
		m.checkReasonTold(t, true)
		m.checkComments(t)
		m.threads(t)
		m.checkBaseAtEnd(t)
	}
	m.heard(true)
	m.checkMessages(true)
	w.storage.all()
	m.pulls()
	m.onePull()
	m.comments()
	for _, o := range w.machines.list {
		if !o.ended && !w.owned(o) {
			w.fatalf("VMs: %s belongs to no task", o.name)
		}
	}
}

func (m *model) sound() {
	bad, err := m.w.store.Check(context.Background())
	if err != nil || len(bad) > 0 {
		m.w.fatalf("store: %v %q", err, bad)
	}
}

func (w *world) owned(o *walkVM) bool {
	for _, t := range w.tasks() {
		if t.VM != nil && t.VM.Name == o.name {
			return true
		}
	}
	return false
}

// shownStatus checks that the status comment shows the task's current state.
func (m *model) shownStatus(t *state.Task) {
	if !outOfReach(t) && (t.Status.Shown < t.Visible || m.w.hub.byID(t.Status.Comment) == nil) {
		m.w.fatalf("silence: the status comment of task %s (%s) shows version %d, want %d, jobs %v", t.Key, t.Phase, t.Status.Shown, t.Visible, m.w.jobsOf(t))
	}
}

// pulls checks that each branch has one pull request.
func (m *model) pulls() {
	heads := map[string]int{}
	for n := 1; n <= m.w.hub.last; n++ {
		p := m.w.hub.issues[n].pull
		if p == nil || p.unknown {
			continue
		}
		if other := heads[p.head]; other != 0 {
			m.w.fatalf("twice: pull requests #%d and #%d both have branch %s", other, n, p.head)
		}
		heads[p.head] = n
	}
}

// onePull checks that no issue has two open pull requests of errand's. Those of a branch belong to the issue that its name has.
func (m *model) onePull() {
	open := map[string]int{}
	for n := 1; n <= m.w.hub.last; n++ {
		p := m.w.hub.issues[n].pull
		if p == nil || !p.open || !p.ours {
			continue
		}
		issue, _, _ := strings.Cut(strings.TrimPrefix(p.head, "errand/"), "-")
		if other := open[issue]; other != 0 {
			m.w.fatalf("pulls: #%d and #%d are both open for issue #%s", other, n, issue)
		}
		open[issue] = n
	}
}

// comments checks that errand posted no comment twice.
func (m *model) comments() {
	for n := 1; n <= m.w.hub.last; n++ {
		i := m.w.hub.issues[n]
		lists := [][]*comment{i.comments}
		if i.pull != nil {
			m.reviews(i)
			for _, th := range i.pull.threads {
				lists = append(lists, th.comments)
			}
		}
		for _, list := range lists {
			m.once(n, list)
		}
	}
}

// needsNoTask reports whether a marker is that of a reply to a command on an issue without a task. No store knows of these.
func needsNoTask(mark string) bool { return strings.Contains(mark, ".reply-no_task") }

func (m *model) once(n int, list []*comment) {
	var replies []time.Time                                                                     // to commands on the issue before it had a task
	marks, texts, credit := map[string]bool{}, map[string]bool{}, len(m.w.hub.issues[n].events) // a repeated assignment gets a repeated answer
	for _, c := range list {
		if c.author != nil {
			credit++ // a repeated comment may get the same answer
			if m.updates[c.id].by != 0 {
				credit++ // such a command may be told that it waits, too
			}
		}
		if c.author != nil || c.gone || c.undeletable {
			continue
		}
		mark := marker.FindString(c.bodies[0].text)
		words := strings.TrimSpace(strings.TrimSuffix(c.bodies[0].text, mark))
		life, _, _ := strings.Cut(mark, ".")
		switch {
		case mark == "":
			m.w.fatalf("twice: a comment on #%d has no marker: %s", n, words)
		case needsNoTask(mark): // after an unknown outcome there may be two: no task remembers to look for the second one later
			if replies = append(replies, c.created); len(replies) > 2 && c.created.Sub(replies[len(replies)-3]) < 24*time.Hour {
				m.w.fatalf("twice: within a day three comments on #%d say that it has no task", n)
			}
			continue
		case marks[mark] && !m.jobGaveUp(n, mark):
			m.w.fatalf("twice: two comments on #%d have the marker %s", n, mark)
		case texts[life+words] && credit > 0:
			credit--
		case texts[life+words]:
			m.w.fatalf("twice: two comments on #%d have the same text: %s", n, words)
		}
		marks[mark], texts[life+words] = true, true
	}
}
