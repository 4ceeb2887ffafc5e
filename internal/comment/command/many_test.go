package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state/machine"
)

// TestCommandsBeyondTheLimitAreListed: commands beyond the limit are not executed, but listed.
func TestCommandsBeyondTheLimitAreListed(t *testing.T) {
	t.Parallel()
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("@errand " + strings.ReplaceAll(format, "N", fmt.Sprint(i+1)) + "\n")
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		body   string
		orders int
		left   []string
		listed int
		more   int
	}{
		"at the limit":         {body: lines(10, "budget +N"), orders: 10},
		"one more":             {body: lines(11, "budget +N"), orders: 10, left: []string{"budget +11"}, listed: 1},
		"a message":            {body: lines(10, "budget +N") + "@errand please\n@errand and quickly", orders: 10, left: []string{"please"}, listed: 1},
		"messages are joined":  {body: lines(30, "say N"), orders: 1},
		"a command with words": {body: lines(10, "retry\nhint N"), orders: 10, left: []string{"retry"}, listed: 1},
		"as many as are named": {body: lines(30, "budget +N"), orders: 10, listed: 20},
		"more than are named":  {body: lines(45, "budget +N"), orders: 10, listed: 20, more: 15},
		"a flood":              {body: lines(10_000, "cancel"), orders: 10, listed: 20, more: 9970},
		"long words":           {body: lines(10, "budget +N") + "@errand model " + strings.Repeat("m", 90), orders: 10, listed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Parse(c.body, "errand", false)
			if len(p.Orders) != c.orders || len(p.Left) != c.listed || p.More != c.more {
				t.Errorf("%d orders, left %q and %d more", len(p.Orders), p.Left, p.More)
			}
			if c.left != nil {
				if diff := cmp.Diff(c.left, p.Left); diff != "" {
					t.Error(diff)
				}
			}
			for _, words := range p.Left {
				if len(words) > 70 || strings.Contains(words, "\n") {
					t.Errorf("%q is listed", words)
				}
			}
			if c.orders > machine.MaxOrders {
				t.Error("commands beyond the limit are missing")
			}
		})
	}
}
