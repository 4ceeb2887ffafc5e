package admin

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"github.com/errand-bot/errand/state"
)

// deck has the cards of the open tasks. Only tasks that have changed since the last look are read.
type deck struct {
	tasks Tasks

	mu    sync.Mutex
	cards map[state.TaskKey]dealt
}

type dealt struct {
	stamp uint64
	card  card
}

func newDeck(tasks Tasks) *deck { return &deck{tasks: tasks} }

// open returns the cards of all open tasks, as a slice of the caller's own.
func (d *deck) open(ctx context.Context) ([]card, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := make(map[state.TaskKey]dealt, len(d.cards))
	list := make([]card, 0, len(d.cards))
	err := d.tasks.EachOpen(ctx, func(l state.Listed) error {
		c, ok := d.cards[l.Key]
		if !ok || c.stamp != l.Stamp {
			t, err := l.Load()
			if err != nil {
				return err
			}
			c = dealt{l.Stamp, newCard(t)}
		}
		now[l.Key] = c
		list = append(list, c.card)
		return nil
	})
	if err != nil { // what was read serves the next look, so that a slow disk is got through in the end
		maps.Copy(now, keepOld(d.cards, now))
		d.cards = now
		return nil, err
	}
	d.cards = now
	return list, nil
}

// keepOld returns the cards that are not among the new ones.
func keepOld(old, now map[state.TaskKey]dealt) map[state.TaskKey]dealt {
	rest := maps.Clone(old)
	maps.DeleteFunc(rest, func(k state.TaskKey, _ dealt) bool { _, ok := now[k]; return ok })
	return rest
}

// The pages of status.json.
const (
	defaultPage = 500
	maxPage     = 5000
)

// page cuts the tasks to those that a query asks for: ?offset=N&limit=N.
func (b *board) page(q url.Values) error {
	limit := defaultPage
	for name, into := range map[string]*int{"offset": &b.Offset, "limit": &limit} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s is a number from 0 on", name)
		}
		*into = n
	}
	from := min(b.Offset, len(b.Tasks))
	b.Tasks = slices.Clip(b.Tasks[from:min(len(b.Tasks), from+min(limit, maxPage))])
	return nil
}
