package watch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestThumbIsReportedUntilStored: a 👍 that the store rejected, even repeatedly, is reported again, and
// earlier ones take effect once.
func TestThumbIsReportedUntilStored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		l.waits(task, 7, 100, "IC_1")
		eve, now := state.Person{ID: 6, Login: "eve"}, time.Now()
		g := &fakeReactions{by: map[string][]forge.Reaction{"IC_1": {{Node: "R_2", By: ada, At: now}, {Node: "R_1", By: eve, At: now.Add(-time.Second)}}}}
		failures := 0
		l.refuse = func(e event.Event) error {
			if e.Kind() == event.KindThumb && e.By == ada && failures < 3 {
				failures++
				return errors.New("disk full")
			}
			return nil
		}
		polling(t, l, g)
		advance(5 * time.Minute)
		taken := map[string]int{}
		for _, e := range l.reported(event.KindThumb) {
			taken[e.By.Login]++
		}
		if failures != 3 || taken["ada"] != 1 {
			t.Errorf("after %d failures: got stored %v, want ada's once", failures, taken)
		}
		jobs, err := l.Jobs(t.Context(), task)
		check(t, err)
		checks := map[string]int{}
		for _, j := range jobs {
			if j.Kind == state.JobApprove {
				checks[j.Candidate.By.Login]++
			}
		}
		if diff := cmp.Diff(map[string]int{"ada": 1, "eve": 1}, checks); diff != "" {
			t.Errorf("checks of approvals (-want +got):\n%s", diff)
		}
	})
}

// TestDeletedPlanIsReportedUntilStored: a deleted plan comment is reported until the store accepts the event.
func TestDeletedPlanIsReportedUntilStored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		l.waits(task, 7, 100, "IC_1")
		failures := 0
		l.refuse = func(e event.Event) error {
			if e.Kind() == event.KindPlanStale && failures < 2 {
				failures++
				return errors.New("disk full")
			}
			return nil
		}
		polling(t, l, &fakeReactions{gone: []string{"IC_1"}})
		advance(2 * time.Minute)
		if p := l.task().NewestPlan(); p.Stale != state.StaleDeleted || failures != 2 {
			t.Errorf("after %d failures: got stale plan %q", failures, p.Stale)
		}
	})
}

// failingInbox rejects a number of deliveries.
type failingInbox struct {
	inserter
	left int
}

func (i *failingInbox) Insert(ctx context.Context, guid, event string, payload []byte) error {
	if i.left > 0 {
		i.left--
		return errors.New("disk full")
	}
	return i.inserter.Insert(ctx, guid, event, payload)
}

// reviewable returns a sweepWorld whose task has a pull request, after one sweep that read everything.
func reviewable(t *testing.T, opened func(l *sweepWorld, number int)) (*sweepWorld, int, *time.Time) {
	t.Helper()
	l := longDiscussion(t)
	now := time.Now()
	l.cfg.Now = func() time.Time { return now }
	l.sweeper = watch.NewSweeper(l.cfg)
	check(t, errOf(l.sim.As("bob").PushCommit(full, simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{"a": "b\n"}})))
	p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
	check(t, err)
	repoSettings := settings.Default()
	repoSettings.Plan = settings.PlanNone
	l.happen(event.Event{Task: l.key, Payload: event.Started{Start: event.Start{Settings: repoSettings, Visible: true, Branch: state.Branch{Name: "errand/1", Base: "main"}}}})
	opened(l, p.Number)
	return l, p.Number, &now
}

func openedNow(l *sweepWorld, number int) {
	l.happen(event.Event{Task: l.key, Payload: event.PROpened{PR: state.PR{Number: number, State: "open"}}})
}

// sweepAt advances the clocks of errand and GitHub and sweeps.
func (l *sweepWorld) sweepAt(now *time.Time, after time.Duration) {
	l.t.Helper()
	*now = now.Add(after)
	l.ahead.Add(int64(after))
	checkSwept(l.t, l.sweeper.SweepState(l.t.Context()))
}

func (l *sweepWorld) guids() (list []string) {
	l.t.Helper()
	pending, err := l.PendingDeliveries(l.t.Context(), 10)
	check(l.t, err)
	for _, d := range pending {
		list = append(list, d.GUID)
	}
	return list
}

// TestCommentsAreFoundAfterFailedReads: failed reads do not count: the next successful one finds all comments since
// the last successful one.
func TestCommentsAreFoundAfterFailedReads(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"the issue":            `/issues/1$`,
		"the issue's comments": `/issues/1/comments`,
		"the pull request":     `/pulls/\d+$`,
		"its comments":         `/issues/2/comments`,
		"its reviews":          `/pulls/\d+/reviews`,
		"all that is read":     `/(issues|pulls)/`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, number, now := reviewable(t, openedNow)
			l.sweepAt(now, time.Second)
			l.ahead.Add(int64(10 * time.Second))
			*now = now.Add(10 * time.Second)
			onIssue, err := l.sim.As("bob").Comment(full, 1, "@errand cancel")
			check(t, err)
			onPull, err := l.sim.As("bob").Comment(full, number, "@errand look again")
			check(t, err)
			review, err := l.ada.Review(full, number, simgithub.NewReview{Event: "COMMENT", Body: "Why?"})
			check(t, err)
			check(t, l.sim.Fault(simgithub.Fault{Path: path, Status: http.StatusBadGateway}))
			for range 3 {
				l.sweepAt(now, 15*time.Minute)
			}
			l.sim.ClearFaults()
			l.sweepAt(now, 15*time.Minute)
			want := map[string]bool{
				fmt.Sprintf("swept-issue_comment-%d", onIssue.ID): true, fmt.Sprintf("swept-issue_comment-%d", onPull.ID): true,
				fmt.Sprintf("swept-pull_request_review-%d", review.ID): true,
			}
			got := map[string]bool{}
			for _, guid := range l.guids() {
				got[guid] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCommentsAreFoundAfterStoreFailures: comments that could not be stored are found again.
func TestCommentsAreFoundAfterStoreFailures(t *testing.T) {
	t.Parallel()
	l, number, now := reviewable(t, openedNow)
	inbox := &failingInbox{inserter: inserter{l.storeWorld}, left: 4}
	l.cfg.Inbox = inbox
	l.sweeper = watch.NewSweeper(l.cfg)
	l.sweepAt(now, time.Second)
	k, err := l.sim.As("bob").Comment(full, 1, "@errand cancel")
	check(t, err)
	v, err := l.ada.Review(full, number, simgithub.NewReview{Event: "COMMENT", Body: "Why?"})
	check(t, err)
	for range 6 {
		l.sweepAt(now, 15*time.Minute)
	}
	want := []string{fmt.Sprintf("swept-issue_comment-%d", k.ID), fmt.Sprintf("swept-pull_request_review-%d", v.ID)}
	if diff := cmp.Diff(want, l.guids()); diff != "" || inbox.left != 0 {
		t.Errorf("with %d failures left, stored (-want +got):\n%s", inbox.left, diff)
	}
}

// TestEarlyReviewsAreFound: if the response to opening a pull request was lost, the store learns of it late. Reviews
// made meanwhile are found, however often the issue was read.
func TestEarlyReviewsAreFound(t *testing.T) {
	t.Parallel()
	l, number, now := reviewable(t, func(*sweepWorld, int) {})
	l.sweepAt(now, time.Second)
	k, err := l.sim.As("bob").Comment(full, number, "@errand look again")
	check(t, err)
	v, err := l.ada.Review(full, number, simgithub.NewReview{Event: "COMMENT", Body: "Why?"})
	check(t, err)
	for range 3 {
		l.sweepAt(now, 15*time.Minute)
	}
	openedNow(l, number)
	l.sweepAt(now, 15*time.Minute)
	want := []string{fmt.Sprintf("swept-issue_comment-%d", k.ID), fmt.Sprintf("swept-pull_request_review-%d", v.ID)}
	if diff := cmp.Diff(want, l.guids()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}
