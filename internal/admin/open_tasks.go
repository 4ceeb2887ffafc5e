package admin

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// openTask is the data that the pages cache of an open task.
type openTask struct {
	key  state.TaskKey
	name string // formatted by nameOf
	card *card
	used tally
}

// openTasks caches the open tasks and rereads only the changed ones.
type openTasks = store.Digest[openTask]

func newOpenTasks(tasks Tasks) *openTasks {
	return store.NewDigest(tasks, func(t *state.Task) openTask {
		c := newCard(t)
		return openTask{key: t.Key, name: nameOf(t.Repo.Owner, t.Repo.Name, t.Key.Issue), card: &c, used: tallyOf(t)}
	})
}

// Page sizes of status.json.
const (
	defaultPage = 500
	maxPage     = 5000
)

// page reduces the tasks to those that a query requests with ?repo=OWNER/NAME&offset=N&limit=N.
func (b *board) page(q url.Values) error {
	if repo := q.Get("repo"); repo != "" {
		b.Tasks = slices.DeleteFunc(b.Tasks, func(c *card) bool { return !strings.EqualFold(c.Repo, repo) })
		b.Ended = slices.DeleteFunc(b.Ended, func(c card) bool { return !strings.EqualFold(c.Repo, repo) })
		b.Open = len(b.Tasks)
	}
	limit := defaultPage
	for name, into := range map[string]*int{"offset": &b.Offset, "limit": &limit} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%s must be a number from 0 on", name)
		}
		*into = n
	}
	from := min(b.Offset, len(b.Tasks))
	b.Tasks = slices.Clip(b.Tasks[from:min(len(b.Tasks), from+min(limit, maxPage))])
	return nil
}
