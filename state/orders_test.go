package state

import (
	"slices"
	"testing"
)

// TestTooManyCommandsAreAnswered: commands beyond the limit, which those who read comments leave out, are named in an answer to whoever
// may give commands.
func TestTooManyCommandsAreAnswered(t *testing.T) {
	t.Parallel()
	orders := func(n int) []Order { return slices.Repeat([]Order{{Verb: VerbBudget, MicroUSD: 1_000_000}}, n) }
	for name, c := range map[string]struct {
		by         Person
		permission Permission
		orders     []Order
		left       []string
		more       int
		raised     int64
		answered   bool
		text       string
	}{
		"at the limit":           {writer, PermissionWrite, orders(MaxOrders), nil, 0, MaxOrders, false, ""},
		"beyond it":              {writer, PermissionWrite, orders(MaxOrders), []string{"cancel"}, 0, MaxOrders, true, ""},
		"and more":               {writer, PermissionAdmin, orders(MaxOrders), []string{"cancel"}, 7, MaxOrders, true, "7"},
		"stored by an older one": {writer, PermissionWrite, orders(MaxOrders + 2), nil, 0, MaxOrders, true, "2"},
		"by a stranger":          {visitor, PermissionRead, orders(MaxOrders), []string{"cancel"}, 7, 0, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			before := l.task.Money.CapMicroUSD
			jobs := l.do(Event{Kind: EventCommented, By: c.by, Permission: c.permission, Comment: &Comment{ID: 60, Mention: true}, Orders: c.orders, Left: c.left, More: c.more})
			if got := (l.task.Money.CapMicroUSD - before) / 1_000_000; got != c.raised {
				t.Errorf("raised by %d, want %d", got, c.raised)
			}
			i := slices.IndexFunc(jobs, func(j Job) bool { return j.Post != nil && j.Post.Reason == ReplyTooMany })
			if (i >= 0) != c.answered {
				t.Fatalf("answered %v", i >= 0)
			}
			if p := l.jobs; c.answered && (!slices.Equal(p[i].Post.Items, c.left) || p[i].Post.Text != c.text || p[i].Post.By != c.by) {
				t.Errorf("answer %+v", p[i].Post)
			}
		})
	}
}
