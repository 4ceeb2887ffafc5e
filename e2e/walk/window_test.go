package walk

import (
	"context"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// A sweep reads comments whose webhooks were lost. Each read must begin early enough, whether or not anything was lost:
// a window that begins after the last successful read leaves a gap. A read is successful when all its results were
// stored; a process forgets its reads when it dies.

// conversation is the subject of one list call: the comments of an issue or of a pull request, or its reviews.
type conversation struct {
	number int
	what   string
}

// sweep is one comparison of all tasks with GitHub.
type sweep struct {
	nested int // calls by others meanwhile, including errand's steps, do not belong to it
	open   []state.TaskKey
	tried  map[int]bool
	lost   bool // the list of repositories, which does not identify the task of the next calls
	cur    *glance
}

// glance is the comparison of one task.
type glance struct {
	issue, pull int // 0: no pull request was read
	read        map[int]time.Time
	newest      map[conversation]time.Time // its state at that time
	listed      map[conversation]time.Time
	failed      bool
}

// sweeps begins a sweep, which ends when the returned function is called.
func (m *model) sweeps() (end func()) {
	s := &sweep{nested: m.w.nested, tried: map[int]bool{}}
	for _, t := range m.w.tasks() {
		if !t.Ended() {
			s.open = append(s.open, t.Key)
		}
	}
	e := m.w.errand
	m.sweep = s
	return func() {
		m.glanced(nil)
		m.sweep = nil
		if m.w.errand != e || !e.up() || s.lost {
			return
		}
		for _, t := range m.w.tasks() { // a failure of one task must not prevent the comparison of others
			for _, key := range s.open {
				if t.Key == key && !t.Ended() && !s.tried[key.Issue] {
					m.w.fatalf("window: a sweep skipped task %s, which was open all the time", key)
				}
			}
		}
	}
}

// sweeping returns the sweep that made the current call, or nil.
func (m *model) sweeping() *sweep {
	if m.sweep == nil || m.sweep.nested != m.w.nested {
		return nil
	}
	return m.sweep
}

// tries records that a sweep begins with an issue.
func (m *model) tries(number int) {
	if s := m.sweeping(); s != nil {
		s.tried[number] = true
		m.glanced(&glance{issue: number, read: map[int]time.Time{}, newest: map[conversation]time.Time{}, listed: map[conversation]time.Time{}})
	}
}

// reads records that a sweep has read the current state of an issue or pull request.
func (m *model) reads(number int) {
	s := m.sweeping()
	if s == nil || s.cur == nil {
		return
	}
	delete(m.unread, number)
	s.cur.read[number] = m.w.now
	for _, c := range m.conversations(number) {
		s.cur.newest[c] = m.newest(c)
	}
	if number != s.cur.issue && m.isFollowed(number) { // a replaced pull request is only looked at
		s.cur.pull = number
	}
}

// lists checks the window of a call against earlier reads.
func (m *model) lists(number int, what string, since time.Time) {
	s := m.sweeping()
	if s == nil || s.cur == nil {
		m.w.fatalf("window: the %[2]s of #%[1]d are listed outside a sweep", number, what)
	}
	if number != s.cur.issue { // the issue's comparison is finished
		m.looked(s.cur, s.cur.issue)
	}
	from := m.window(conversation{number, what})
	if what == "comments" && since.After(from) && m.isFollowed(number) {
		m.w.fatalf("window: the %s of #%d are read since %s, but their last successful read, or the beginning of the task, was at %s", what, number, since.Sub(began()), from.Sub(began()))
	}
}

// window returns the time of the last successful read.
func (m *model) window(c conversation) time.Time {
	from, ok := m.good[c]
	if !ok {
		from = m.w.now.Add(-72 * time.Hour) // deliveries are not kept longer, and errand may have been down for any time
	}
	for _, t := range m.w.tasks() {
		if t.Key.Issue == c.number || t.PR != nil && t.PR.Number == c.number {
			from = later(from, t.Trigger.At.Truncate(time.Second)) // earlier comments are in the discussion that the task reads at its start
		}
	}
	return from
}

// isFollowed reports whether a number is that of a task's issue or pull request. A task may begin again without its pull request
// while a sweep compares it.
func (m *model) isFollowed(number int) bool {
	return slices.ContainsFunc(m.w.tasks(), func(t *state.Task) bool {
		return t.Key.Issue == number || t.PR != nil && t.PR.Number == number
	})
}

// listed records that a call has returned the current state of a conversation.
func (m *model) listed(number int, what string) {
	if s := m.sweeping(); s != nil && s.cur != nil {
		s.cur.listed[conversation{number, what}] = m.w.now
	}
}

// failed records that a call of a sweep failed, or that the store rejected its result.
func (m *model) failed() {
	s := m.sweeping()
	if s == nil || s.cur == nil {
		return
	}
	s.cur.failed = true
	clear(s.cur.listed) // finished reads are already counted
}

// endGlance ends the comparison of tasks: the sweep goes on to issues without a task.
func (m *model) endGlance() {
	if m.sweeping() != nil {
		m.glanced(nil)
	}
}

// glanced ends the comparison of one task, and begins the next.
func (m *model) glanced(next *glance) {
	if g := m.sweep.cur; g != nil && !g.failed && m.w.errand.up() {
		m.looked(g, g.issue)
		if g.pull != 0 {
			m.looked(g, g.pull)
		}
	}
	m.sweep.cur = next
}

// looked counts a read of a conversation as successful. A skipped conversation must have nothing new.
func (m *model) looked(g *glance, number int) {
	if !m.isFollowed(number) {
		return
	}
	for _, c := range m.conversations(number) {
		at, ok := g.listed[c]
		if !ok {
			at = g.read[number]
			if at.IsZero() {
				continue
			}
			if new, from := g.newest[c], m.window(c); !new.Before(from) {
				m.w.fatalf("window: a sweep skipped the %s of #%d, but the newest is of %s, and the last successful read, or the beginning of the task, was at %s",
					c.what, number, new.Sub(began()), from.Sub(began()))
			}
		}
		m.good[c] = at
	}
}

func (m *model) conversations(number int) []conversation {
	out := []conversation{{number, "comments"}}
	if m.w.hub.issues[number].pull != nil {
		out = append(out, conversation{number, "reviews"})
	}
	return out
}

// newest returns the time of the newest entry by a person in a conversation.
func (m *model) newest(c conversation) (newest time.Time) {
	i := m.w.hub.issues[c.number]
	if c.what == "comments" {
		for _, c := range i.comments {
			if c.author != nil && !c.gone {
				newest = later(newest, c.created)
			}
		}
		return newest
	}
	for _, v := range i.pull.reviews {
		newest = later(newest, v.At)
	}
	return newest
}

// sweepStore is the sweeps' store, and sweepInbox their inbox: a read whose results could not be stored completely does
// not count.
type sweepStore struct {
	sweptStore
	m *model
}

type sweptStore interface {
	watch.Reader
	watch.Applier
	HasDelivery(ctx context.Context, guid string) (bool, error)
	Fact(ctx context.Context, name string) ([]byte, error)
	SetFact(ctx context.Context, name string, value []byte) error
}

func (s sweepStore) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	out, err := s.sweptStore.Apply(ctx, e, ack)
	if err != nil {
		s.m.failed()
	}
	return out, err
}

func (s sweepStore) HasDelivery(ctx context.Context, guid string) (bool, error) {
	known, err := s.sweptStore.HasDelivery(ctx, guid)
	if err != nil {
		s.m.failed()
	}
	return known, err
}

type sweepInbox struct {
	to interface {
		Insert(ctx context.Context, guid, event string, payload []byte) error
	}
	m *model
}

func (s sweepInbox) Insert(ctx context.Context, guid, event string, payload []byte) error {
	err := s.to.Insert(ctx, guid, event, payload)
	if err != nil {
		s.m.failed()
	}
	return err
}
