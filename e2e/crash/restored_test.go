package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/demo"
)

// TestRestorationHearsPeopleFirst: a plan whose time limits ended while errand's data was lost does not expire, and nobody is reminded of it, if
// it was approved in time, by a 👍 or by a comment: a restored errand reads from GitHub what people did before it acts.
func TestRestorationHearsPeopleFirst(t *testing.T) {
	t.Parallel()
	const limit = 48 * time.Hour
	reacts, writes := &subject{title: "A plan with a 👍"}, &subject{title: "A plan with a comment"}
	err := playLoad(t, "limits: {vms: 8, expire: 48h, remind: 24h}", func(l *load, ctx context.Context) error {
		if err := l.prepare(reacts, writes); err != nil {
			return err
		}
		plans := map[*subject]progress{reacts: planned, writes: planned}
		for _, step := range []func() error{
			func() error { return l.reach(ctx, "the plans", plans) },
			func() error { return l.settle(ctx) },
			func() error { return l.backUp(ctx) },
			l.lose,
			func() error { return reacts.ada().React(demo.Full, reacts.plan, "+1") },
			func() error {
				_, err := writes.ada().Comment(demo.Full, writes.issue, "@errand approve")
				return err
			},
			func() error { l.script.clock.to(l.script.clock.now().Add(limit + time.Hour)); return nil },
			func() error { return l.restore(ctx, l.backups[0].file) },
			func() error { return l.resume(ctx) },
			func() error {
				return l.reach(ctx, "the detailed plans", map[*subject]progress{reacts: detailed, writes: detailed})
			},
			func() error {
				reacts.canceled, writes.canceled = true, true
				return l.finish(ctx)
			},
			func() error { return errors.Join(reacts.wasNotReminded(), writes.wasNotReminded()) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// wasNotReminded returns an error if errand has reminded people of a plan.
func (s *subject) wasNotReminded() error {
	i, err := s.ada().Issue(demo.Full, s.issue)
	if err != nil {
		return err
	}
	for _, c := range i.Comments {
		if strings.Contains(marker.FindString(c.Body), "remind") {
			return fmt.Errorf("people were reminded of a plan that they had approved: %s", c.Body)
		}
	}
	return nil
}
