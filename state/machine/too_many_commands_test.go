package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Commands beyond the limit are listed in an answer, if their author has write access.
func TestTooManyCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	orders := func(n int) []state.Order {
		return slices.Repeat([]state.Order{{Verb: state.VerbBudget, MicroUSD: 1_000_000}}, n)
	}
	for name, c := range map[string]struct {
		by         state.Person
		permission state.Permission
		orders     []state.Order
		left       []string
		more       int
		raised     int64
		answered   bool
		text       string
	}{
		"at the limit":           {writer, state.PermissionWrite, orders(MaxOrders), nil, 0, MaxOrders, false, ""},
		"beyond it":              {writer, state.PermissionWrite, orders(MaxOrders), []string{"cancel"}, 0, MaxOrders, true, ""},
		"and more":               {writer, state.PermissionAdmin, orders(MaxOrders), []string{"cancel"}, 7, MaxOrders, true, "7"},
		"stored by an older one": {writer, state.PermissionWrite, orders(MaxOrders + 2), nil, 0, MaxOrders, true, "2"},
		"by a stranger":          {visitor, state.PermissionRead, orders(MaxOrders), []string{"cancel"}, 7, 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			before := l.task.Money.CapMicroUSD
			jobs := l.do(event.Event{By: c.by, Permission: c.permission, Payload: event.Commented{Comment: &state.Comment{ID: 60, Mention: true}, Orders: c.orders, Skipped: c.left, MoreSkipped: c.more}})
			if got := (l.task.Money.CapMicroUSD - before) / 1_000_000; got != c.raised {
				t.Errorf("got a cap raised by %d, want %d", got, c.raised)
			}
			i := slices.IndexFunc(jobs, func(j state.Job) bool { return j.Post != nil && j.Post.Reason == state.ReplyTooMany })
			if (i >= 0) != c.answered {
				t.Fatalf("got answered %v", i >= 0)
			}
			if p := l.jobs; c.answered && (!slices.Equal(p[i].Post.Items, c.left) || p[i].Post.Text != c.text || p[i].Post.By != c.by) {
				t.Errorf("got answer %+v", p[i].Post)
			}
		})
	}
}
