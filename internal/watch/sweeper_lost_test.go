package watch_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestUnreachableIssueEndsTask: a task ends when its issue has been unreachable for long, not after a single denial.
func TestUnreachableIssueEndsTask(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	now := time.Now()
	l.cfg.Now = func() time.Time { return now }
	l.sweeper = watch.NewSweeper(l.cfg)
	l.issue()
	l.begun("mention")
	l.sim.Uninstall("acme")
	for _, c := range []struct {
		after time.Duration
		want  []string
	}{{0, nil}, {59 * time.Minute, nil}, {2 * time.Minute, []string{"gone  by "}}} {
		now = now.Add(c.after)
		if diff := cmp.Diff(c.want, l.kinds()); diff != "" {
			t.Errorf("after another %s (-want +got):\n%s", c.after, diff)
		}
	}
}

// TestLostRename: the sweep updates a renamed repository in its tasks.
func TestLostRename(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	l.begun("mention")
	check(t, l.sim.RenameRepo(full, "snail"))
	for range 2 {
		checkSwept(t, l.sweeper.SweepState(t.Context()))
	}
	if list := l.reported(event.KindRenamed); len(list) != 1 || list[0].Repo.FullName() != "acme/snail" {
		t.Errorf("got events %+v", list)
	}
}

// TestLostVisibility: the sweep updates a repository in its tasks that was made private or public.
func TestLostVisibility(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	l.begun("mention")
	for i, private := range []bool{true, false} {
		check(t, l.sim.SetPrivate(full, private))
		for range 2 {
			checkSwept(t, l.sweeper.SweepState(t.Context()))
		}
		if list := l.reported(event.KindRenamed); len(list) != i+1 || list[i].Repo.Private != private {
			t.Errorf("private %v: got events %+v", private, list)
		}
	}
}

// TestSweepDoesNotApproveLaterEdits: assigning the bot approves the issue text at that time. Changes between the
// assignment and the sweep are not approved.
func TestSweepDoesNotApproveLaterEdits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(l *sweepWorld) error
		want   bool
	}{
		"as it was": {change: func(*sweepWorld) error { return nil }},
		"body edited": {change: func(l *sweepWorld) error {
			return l.ada.EditIssue(full, 1, simgithub.IssueEdit{Body: ptr("Do something else.")})
		}, want: true},
		"title edited": {change: func(l *sweepWorld) error {
			return l.ada.EditIssue(full, 1, simgithub.IssueEdit{Title: ptr("Something else")})
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			check(t, l.ada.Assign(full, 1, "errand-bot"))
			check(t, c.change(l))
			checkSwept(t, l.sweeper.SweepState(t.Context()))
			list := l.reported(event.KindTriggered)
			if len(list) != 1 || list[0].Issue().Unvouched != c.want {
				t.Errorf("got triggers %+v", list)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// TestUnreadableIssueDoesNotHideOthers: an issue whose events are permanently unreadable or incomplete does not prevent the
// sweep from finding others, in any order and with any trigger.
func TestUnreadableIssueDoesNotHideOthers(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]*simgithub.Fault{
		"its events cannot be read": {Path: "^/repos/acme/slug/issues/2/events", Status: http.StatusInternalServerError},
		"its events were deleted":   {Path: "^/repos/acme/slug/issues/2/events", Status: http.StatusGone},
		"it has no events":          {Path: "^/repos/acme/slug/issues/2/events", Status: http.StatusNotFound},
		"nothing is wrong":          nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			for n := 1; n <= 3; n++ {
				l.issue()
				check(t, l.ada.Assign(full, n, "errand-bot"))
			}
			l.issue()
			check(t, l.ada.AddLabels(full, 4, "errand"))
			if fault != nil {
				check(t, l.sim.Fault(*fault))
			}
			var found []int
			checkSwept(t, l.sweeper.SweepState(t.Context()))
			for _, e := range l.reported(event.KindTriggered) {
				found = append(found, e.Task.Issue)
			}
			slices.Sort(found)
			want := []int{1, 3, 4}
			if fault == nil {
				want = []int{1, 2, 3, 4}
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Errorf("found issues (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSweptCloseHasTheIssuesClosingTime: the close event has the issue's own closing time. With errand's
// clock, a trigger shortly before the sweep would count as later than the close.
func TestSweptCloseHasTheIssuesClosingTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		late time.Duration // delay of the trigger after the close
		want int           // expected life of the task
	}{
		"a trigger before the close": {-30 * time.Second, 1},
		"a trigger after it":         {30 * time.Second, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			trigger := func(at time.Time) *state.Task {
				return l.happen(event.Event{
					Task:         l.key,
					By:           ada,
					Permission:   state.PermissionWrite,
					Via:          "mention",
					At:           at,
					Installation: l.inst,
					Repo:         &l.repo,
					Payload:      event.Triggered{Issue: &state.Issue{Node: "I_1", Title: "It breaks", Body: "Always.", Author: ada}},
				})
			}
			trigger(time.Now().Add(-time.Hour))
			check(t, l.ada.Close(full, 1, ""))
			i, err := l.cfg.GitHub.Issue(t.Context(), forge.Repo{Installation: l.inst, ID: l.repo.ID, Owner: "acme", Name: "slug"}, 1)
			check(t, err)
			checkSwept(t, l.sweeper.SweepState(t.Context()))
			events := l.reported(event.KindIssueClosed)
			if len(events) != 1 || !events[0].At.Equal(i.ClosedAt) || i.ClosedAt.IsZero() {
				t.Fatalf("got events %+v, the issue was closed at %s", events, i.ClosedAt)
			}
			if got := trigger(i.ClosedAt.Add(c.late)); got.Gen != c.want {
				t.Errorf("got life %d, want %d", got.Gen, c.want)
			}
		})
	}
}

// TestWebhooksOfALostStoreAreFetched: after the restoration of a backup, webhooks that another errand answered since the backup are fetched
// although GitHub delivered them, and no others.
func TestWebhooksOfALostStoreAreFetched(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	l.hooks()
	for name, c := range map[string]struct {
		from, until time.Duration // since now
		want        int
	}{
		"all":             {-time.Hour, time.Hour, len(l.sim.Deliveries())},
		"before them":     {-2 * time.Hour, -time.Hour, 0},
		"just before":     {-time.Hour, -5 * time.Minute, len(l.sim.Deliveries())},
		"just after":      {5 * time.Minute, time.Hour, len(l.sim.Deliveries())},
		"after them":      {time.Hour, 2 * time.Hour, 0},
		"no restoration ": {},
	} {
		cfg := l.cfg
		cfg.LostFrom, cfg.LostUntil = time.Now().Add(c.from), time.Now().Add(c.until)
		if c.until == 0 {
			cfg.LostFrom, cfg.LostUntil = time.Time{}, time.Time{}
		}
		stored := 0
		cfg.Inbox = countingInserter{&stored}
		check(t, watch.NewSweeper(cfg).SweepDeliveries(t.Context()))
		if stored != c.want {
			t.Errorf("%s: fetched %d webhooks, want %d", name, stored, c.want)
		}
	}
}

// countingInserter counts deliveries.
type countingInserter struct{ n *int }

func (c countingInserter) Insert(context.Context, string, string, []byte) error {
	*c.n++
	return nil
}
