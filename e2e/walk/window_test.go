package walk

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// A sweep looks for words whose webhook was lost. That it looks far enough back is held against the truth at the
// moment of the look, whether or not anything was lost: a window that begins after the last good look is a gap.
// A look is good when all that it found was stored; those of a dead process are forgotten with it.

// conversation is what is listed by one call: the comments of an issue or of a pull request, or its reviews.
type conversation struct {
	number int
	what   string
}

// sweep is one comparison of all tasks with GitHub.
type sweep struct {
	nested int // what others do meanwhile, a step of errand's too, is no part of it
	open   []state.TaskKey
	tried  map[int]bool
	lost   bool // the list of repositories: which task is asked about then is not said
	cur    *glance
}

// glance is the comparison of one task.
type glance struct {
	issue, pull int // 0: no pull request was read
	read        map[int]time.Time
	newest      map[conversation]time.Time // what stood there then
	listed      map[conversation]time.Time
	failed      bool
}

// sweeps begins a sweep, and ends it when the function that it returns is called.
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
		for _, t := range m.w.tasks() { // one task that cannot be compared keeps none of the others away
			for _, key := range s.open {
				if t.Key == key && !t.Ended() && !s.tried[key.Issue] {
					m.w.fatalf("window: a sweep has not looked at task %s, which was open all the while", key)
				}
			}
		}
	}
}

// sweeping is the sweep whose call is under way, nil if the call is not a sweep's.
func (m *model) sweeping() *sweep {
	if m.sweep == nil || m.sweep.nested != m.w.nested {
		return nil
	}
	return m.sweep
}

// tries notes that a sweep turns to an issue.
func (m *model) tries(number int) {
	if s := m.sweeping(); s != nil {
		s.tried[number] = true
		m.glanced(&glance{issue: number, read: map[int]time.Time{}, newest: map[conversation]time.Time{}, listed: map[conversation]time.Time{}})
	}
}

// reads notes that a sweep has read an issue or pull request as it is at this instant.
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
	if number != s.cur.issue {
		s.cur.pull = number
	}
}

// lists holds the window of a call against what was looked at before.
func (m *model) lists(number int, what string, since time.Time) {
	s := m.sweeping()
	if s == nil || s.cur == nil {
		m.w.fatalf("window: #%d's %s are listed outside of a sweep", number, what)
	}
	if number != s.cur.issue { // that of the issue is through
		m.looked(s.cur, s.cur.issue)
	}
	from := m.window(conversation{number, what})
	if what == "comments" && since.After(from) {
		m.w.fatalf("window: the %s of #%d are read from %s on, but the last good look at them, or the beginning of the task, was at %s", what, number, since.Sub(began()), from.Sub(began()))
	}
}

// window is since when nobody has looked.
func (m *model) window(c conversation) time.Time {
	from, ok := m.good[c]
	if !ok {
		from = m.w.now.Add(-72 * time.Hour) // deliveries are kept no longer, and errand may have been away for ever
	}
	for _, t := range m.w.tasks() {
		if t.Key.Issue == c.number || t.PR != nil && t.PR.Number == c.number {
			from = later(from, t.Trigger.At.Truncate(time.Second)) // what was said before is in the discussion that the start reads
		}
	}
	return from
}

// listed notes that a call has shown a conversation as it is at this instant.
func (m *model) listed(number int, what string) {
	if s := m.sweeping(); s != nil && s.cur != nil {
		s.cur.listed[conversation{number, what}] = m.w.now
	}
}

// failed notes that a call of a sweep failed, or that the store did not take what it found.
func (m *model) failed() {
	s := m.sweeping()
	if s == nil || s.cur == nil {
		return
	}
	s.cur.failed = true
	clear(s.cur.listed) // what was through before is counted already
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

// looked counts a look at a conversation as good. One that was left out has to have nothing new.
func (m *model) looked(g *glance, number int) {
	for _, c := range m.conversations(number) {
		at, ok := g.listed[c]
		if !ok {
			at = g.read[number]
			if at.IsZero() {
				continue
			}
			if new, from := g.newest[c], m.window(c); !new.Before(from) {
				m.w.fatalf("window: a sweep left the %s of #%d out, but the newest is of %s, and the last good look, or the beginning of the task, was at %s",
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

// newest is when the newest thing of a conversation was said by a person.
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

// sweepStore is the store as the sweeps have it, and sweepInbox where they put what they found: a look that could
// not store all of it was none.
type sweepStore struct {
	sweptStore
	m *model
}

type sweptStore interface {
	watch.Reader
	watch.Applier
	HasDelivery(ctx context.Context, guid string) (bool, error)
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
