package watch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// fakeReactions simulates GitHub's side of the poll.
type fakeReactions struct {
	mu        sync.Mutex
	at        []time.Duration // times of the calls since the first
	begun     time.Time
	asked     [][]string
	by        map[string][]forge.Reaction
	gone      []string
	remaining int
	err       error
}

func (g *fakeReactions) PollReactions(_ context.Context, _ int64, nodes []string) (forge.ReactionPoll, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.begun.IsZero() {
		g.begun = time.Now()
	}
	slices.Sort(nodes)
	g.at, g.asked = append(g.at, time.Since(g.begun)), append(g.asked, nodes)
	return forge.ReactionPoll{Reactions: g.by, Deleted: g.gone, Cost: 1, Remaining: g.remaining}, g.err
}

func (g *fakeReactions) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// calls returns and clears the times of calls.
func (g *fakeReactions) calls() []time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.at
	g.at = nil
	return list
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(*testing.T)) {
	t.Parallel()
	synctest.Test(t, f)
}

// advance advances virtual time and waits until all goroutines are idle.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func polling(t *testing.T, l *storeWorld, g *fakeReactions) *watch.Poller {
	t.Helper()
	p := watch.NewPoller(watch.PollerConfig{Store: l, GitHub: g, Now: time.Now})
	t.Cleanup(watching(t, p.Run))
	return p
}

func TestPollsAreFastForNewPlans(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, g := newLife(t), &fakeReactions{}
		l.waits(task, 7, 100, "IC_1")
		polling(t, l, g)
		advance(61 * time.Second)
		want := []time.Duration{0, 15 * time.Second, 30 * time.Second, 45 * time.Second, time.Minute}
		if diff := cmp.Diff(want, g.calls()); diff != "" {
			t.Errorf("polls of a young plan (-want +got):\n%s", diff)
		}
		advance(10 * time.Minute)
		g.calls()
		advance(5 * time.Minute)
		if n := len(g.calls()); n != 5 {
			t.Errorf("got %d polls of an old plan in 5 minutes, want 5", n)
		}
	})
}

func TestPollsAreSlowNearTheRateLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, g := newLife(t), &fakeReactions{remaining: 999}
		l.waits(task, 7, 100, "IC_1")
		polling(t, l, g)
		advance(121 * time.Second)
		if diff := cmp.Diff([]time.Duration{0, time.Minute, 2 * time.Minute}, g.calls()); diff != "" {
			t.Errorf("polls with few points left (-want +got):\n%s", diff)
		}
		g.set(func() { g.remaining = 4000 })
		advance(time.Minute)
		g.calls()
		advance(time.Minute)
		if n := len(g.calls()); n != 4 {
			t.Errorf("got %d polls in a minute with points again, want 4", n)
		}
	})
}

func TestPokePollsWithinTheMinimumInterval(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, g := newLife(t), &fakeReactions{}
		l.waits(task, 7, 100, "IC_1")
		p := polling(t, l, g)
		advance(5 * time.Second)
		for range 20 {
			p.Poke()
			advance(100 * time.Millisecond)
		}
		got := g.calls()
		if diff := cmp.Diff([]time.Duration{0, 5 * time.Second, 7 * time.Second}, got); diff != "" {
			t.Errorf("polls (-want +got):\n%s", diff)
		}
	})
}

func TestNothingIsPolledWithoutWaitingTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, g := newLife(t), &fakeReactions{}
		polling(t, l, g)
		advance(time.Hour)
		if n := len(g.calls()); n != 0 {
			t.Errorf("got %d polls without a waiting task, want none", n)
		}
		l.waits(task, 7, 100, "IC_1")
		advance(time.Second)
		if n := len(g.calls()); n != 1 {
			t.Errorf("got %d polls within a second after a plan was posted, want 1", n)
		}
		l.happen(event.Event{By: ada, Payload: event.IssueClosed{}})
		advance(time.Minute)
		g.calls()
		advance(time.Hour)
		if n := len(g.calls()); n != 0 {
			t.Errorf("got %d polls after the task ended, want none", n)
		}
	})
}

func TestEveryThumbIsReportedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		plan := l.waits(task, 7, 100, "IC_1").NewestPlan()
		eve := state.Person{ID: 6, Login: "eve"}
		now := time.Now()
		g := &fakeReactions{by: map[string][]forge.Reaction{"IC_1": {{Node: "R_2", By: ada, At: now}, {Node: "R_1", By: eve, At: now.Add(-time.Second)}}}}
		polling(t, l, g)
		advance(5 * time.Minute)
		var got []string
		for _, e := range l.reported(event.KindThumb) {
			got = append(got, e.ID+" "+e.By.Login)
			if c := e.Candidate(); c == nil || c.Comment != plan.Comment || c.Via != state.ViaReaction || !c.Given.Equal(e.At) || c.By != e.By {
				t.Errorf("got candidate %+v", c)
			}
		}
		if diff := cmp.Diff([]string{"thumb:R_1 eve", "thumb:R_2 ada"}, got); diff != "" {
			t.Errorf("oldest first, each once (-want +got):\n%s", diff)
		}
	})
}

// TestThumbsAreReportedAgainAfterAWithdrawal: a 👍 that was ignored because of another approval is reported again when
// that approval is withdrawn.
func TestThumbsAreReportedAgainAfterAWithdrawal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		plan := l.waits(task, 7, 100, "IC_1").NewestPlan()
		g := &fakeReactions{by: map[string][]forge.Reaction{"IC_1": {{Node: "R_1", By: ada, At: time.Now()}}}}
		polling(t, l, g)
		advance(time.Second)
		tick := &state.Candidate{Approval: state.Approval{Kind: plan.Kind, Hash: plan.Hash, By: ada, Permission: state.PermissionWrite, Via: state.ViaBox}}
		approved := l.happen(event.Event{Payload: event.Approved{Candidate: *tick}})
		l.happen(event.Event{Run: approved.Run.ID, Payload: event.ApprovalRejected{Rejection: state.RejectedUnticked, Candidate: *tick}})
		advance(time.Minute)
		if n := len(l.reported(event.KindThumb)); n != 2 {
			t.Errorf("got %d reports, want one before the withdrawal and one after it", n)
		}
	})
}

func TestFailedPollIsRepeated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		l.waits(task, 7, 100, "IC_1")
		g := &fakeReactions{err: errors.New("502"), by: map[string][]forge.Reaction{"IC_1": {{Node: "R_1", By: ada, At: time.Now()}}}}
		polling(t, l, g)
		advance(20 * time.Second)
		if n := len(l.reported(event.KindThumb)); n != 0 {
			t.Fatalf("got %d events of a failed poll, want none", n)
		}
		g.set(func() { g.err = nil })
		advance(20 * time.Second)
		if n := len(l.reported(event.KindThumb)); n != 1 {
			t.Errorf("got %d events after the successful poll, want 1", n)
		}
	})
}

func TestDeletedPlanBecomesStale(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l := newLife(t)
		l.waits(task, 7, 100, "IC_1")
		polling(t, l, &fakeReactions{gone: []string{"IC_1"}})
		advance(time.Minute)
		if p := l.task().NewestPlan(); p.Stale != state.StaleDeleted {
			t.Errorf("got stale plan %q", p.Stale)
		}
		if n := len(l.reported(event.KindPlanStale)); n != 1 {
			t.Errorf("got %d reports", n)
		}
	})
}

// TestNewestRevisionsArePolled: polls cover the newest two revisions, also while the next one is written, and withheld
// texts.
func TestNewestRevisionsArePolled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, g := newLife(t), &fakeReactions{}
		l.waits(task, 7, 100, "IC_1")
		for n, node := range []string{"IC_2", "IC_3"} {
			l.happen(event.Event{By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: int64(n + 1), Body: "Not so."}}})
			advance(2 * time.Minute) // the comments are gathered
			revised := l.happen(event.Event{Payload: event.Due{For: state.DueComments}})
			l.planned(l.launched(revised), int64(101+n), node)
		}
		l.queued(state.TaskKey{Repo: 70, Issue: 2}, 7, "assigned")
		l.happen(event.Event{
			Task: state.TaskKey{Repo: 70, Issue: 2},
			Payload: event.Started{Start: event.Start{Settings: settings.Default(), Context: state.Context{
				Withheld: []state.Withheld{{By: ada, Reason: "outsider"}, {ID: 55, Node: "IC_55", By: ada, Reason: "outsider"}},
			}}},
		})
		polling(t, l, g)
		advance(time.Second)
		if diff := cmp.Diff([][]string{{"IC_2", "IC_3", "IC_55", "I_1"}}, g.asked); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
		l.happen(event.Event{By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 9, Body: "Not so."}}})
		g.set(func() {
			g.by = map[string][]forge.Reaction{"IC_55": {{Node: "R_5", By: ada, At: time.Now()}}, "I_1": {{Node: "R_6", By: ada, At: time.Now()}}}
		})
		advance(time.Minute)
		var got []string
		for _, e := range l.reported(event.KindThumb) {
			if e.Comment() == nil || e.Candidate() != nil {
				t.Fatalf("got event %+v", e)
			}
			got = append(got, e.ID)
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"thumb:R_5:55", "thumb:R_6:0"}, got); diff != "" {
			t.Errorf("👍 on withheld texts (-want +got):\n%s", diff)
		}
	})
}

// TestInstallationsArePolledSeparately: each installation is polled separately, and a failure of one does not affect others.
func TestInstallationsArePolledSeparately(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		l, g := newLife(t), &fakeReactions{err: errors.New("suspended")}
		l.waits(task, 7, 100, "IC_1")
		l.waits(state.TaskKey{Repo: 80, Issue: 3}, 8, 200, "IC_9")
		polling(t, l, g)
		advance(time.Second)
		slices.SortFunc(g.asked, slices.Compare)
		if diff := cmp.Diff([][]string{{"IC_1"}, {"IC_9"}}, g.asked); diff != "" {
			t.Errorf("asked for (-want +got):\n%s", diff)
		}
	})
}
