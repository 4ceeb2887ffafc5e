package handlers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// applier records events, passes them to a real store, and fails for some kinds.
type applier struct {
	*store.Store
	mu     sync.Mutex
	events []string
	fail   map[event.Kind]error
}

func (a *applier) Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error) {
	if err := a.fail[e.Kind()]; err != nil {
		return store.Applied{}, err
	}
	applied, err := a.Store.Apply(ctx, e, ack)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, fmt.Sprintf("%s #%d acks %q", e.Kind(), e.Task.Issue, ack.Delivery))
	return applied, err
}

func (a *applier) got() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.events, "\n")
}

// waitUntil waits for a condition.
func waitUntil(t *testing.T, condition string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("got a timeout while waiting for %s", condition)
		case <-tick.C:
		}
	}
}

// running runs an inbox until the test ends.
func running(t *testing.T, a *applier, list *tasks) *handlers.Inbox {
	t.Helper()
	mapper := handlers.NewMapper(handlers.Config{Slug: "errand", BotID: 99, Assignee: "errand-bot", Label: "errand"}, list)
	inbox := handlers.NewInbox(a.Store, a, mapper, zerolog.Nop(), time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inbox.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check(t, <-done)
	})
	return inbox
}

func closed(issue int) []byte {
	return fmt.Appendf(nil, `{"action":"closed","issue":{"number":%d,"title":"t","user":{"id":5,"login":"ada"}},"repository":{"id":70,"name":"slug","owner":{"login":"acme"}},"sender":{"id":5,"login":"ada"}}`, issue)
}

func (a *applier) empty(t *testing.T) func() bool {
	return func() bool {
		list, err := a.PendingDeliveries(t.Context(), 10)
		check(t, err)
		return len(list) == 0
	}
}

func TestInboxWorksInOrder(t *testing.T) {
	t.Parallel()
	a := &applier{Store: newStore(t)}
	list := &tasks{list: []*state.Task{
		{Key: state.TaskKey{Repo: 70, Issue: 8}, TaskPhase: state.TaskPhase{Waiting: &state.Waiting{Kind: state.WaitBlocked}}},
		{Key: state.TaskKey{Repo: 71, Issue: 9}, TaskPhase: state.TaskPhase{Waiting: &state.Waiting{Kind: state.WaitBlocked}}},
	}}
	for n := 1; n <= 60; n++ { // more than one batch, stored before the worker starts
		_, err := a.PutDelivery(t.Context(), store.Delivery{GUID: fmt.Sprintf("g-%03d", n), Event: "issues", Payload: closed(n + 100), Received: time.Unix(int64(n), 0)})
		check(t, err)
	}
	inbox := running(t, a, list)
	waitUntil(t, "an empty inbox", a.empty(t))
	check(t, inbox.Insert(t.Context(), "late", "issues", closed(7)))
	waitUntil(t, "every event", func() bool { return strings.Count(a.got(), "\n") == 3*61-1 })
	var want []string
	for n := 1; n <= 61; n++ {
		guid, issue := fmt.Sprintf("g-%03d", n), n+100
		if n == 61 {
			guid, issue = "late", 7
		}
		want = append(want, fmt.Sprintf(`issue_closed #%d acks ""`, issue), `poked #8 acks ""`, fmt.Sprintf(`poked #9 acks %q`, guid))
	}
	if got := a.got(); got != strings.Join(want, "\n") {
		t.Errorf("got unexpected events:\n%s", got)
	}
	for _, guid := range []string{"g-001", "late"} {
		if known, err := a.HasDelivery(t.Context(), guid); !known || err != nil {
			t.Errorf("%s: got no tombstone (%v)", guid, err)
		}
	}
}

func TestInboxSetsFailingDeliveriesAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, checkFailingDelivery) // the retries are seconds apart
}

func checkFailingDelivery(t *testing.T) {
	a := &applier{Store: newStore(t), fail: map[event.Kind]error{event.KindIssueGone: errors.New("boom")}}
	inbox := running(t, a, &tasks{})
	check(t, inbox.Insert(t.Context(), "1-garbage", "issues", []byte("{")))
	check(t, inbox.Insert(t.Context(), "2-failing", "issues", bytes.Replace(closed(3), []byte("closed"), []byte("deleted"), 1)))
	check(t, inbox.Insert(t.Context(), "good", "issues", closed(4)))
	check(t, inbox.Insert(t.Context(), "nothing", "issues", []byte(`{"action":"pinned","issue":{"number":4},"repository":{"id":70}}`)))
	waitUntil(t, "an empty inbox", a.empty(t))
	waitUntil(t, "the good one's event", func() bool { return a.got() != "" })
	poison, err := a.PoisonDeliveries(t.Context(), 10)
	check(t, err)
	if len(poison) != 2 || poison[0].GUID != "1-garbage" || poison[1].GUID != "2-failing" || poison[0].Failures != store.MaxDeliveryFailures || poison[0].LastError == "" {
		t.Errorf("got deliveries set aside %+v", poison)
	}
	if got := a.got(); got != `issue_closed #4 acks "good"` {
		t.Errorf("got unexpected events:\n%s", got)
	}
}

// An event whose delivery another worker has spent is not a failure.
func TestSpentDeliveryIsNotAFailure(t *testing.T) {
	t.Parallel()
	a := &applier{Store: newStore(t), fail: map[event.Kind]error{event.KindIssueClosed: fmt.Errorf("apply: %w", store.ErrSpent)}}
	inbox := running(t, a, &tasks{})
	check(t, inbox.Insert(t.Context(), "twice", "issues", closed(3)))
	check(t, inbox.Insert(t.Context(), "next", "ping", []byte(`{}`)))
	waitUntil(t, "the next delivery", func() bool {
		list, err := a.PendingDeliveries(t.Context(), 10)
		check(t, err)
		return len(list) == 1 && list[0].GUID == "twice"
	})
	list, err := a.PendingDeliveries(t.Context(), 10)
	check(t, err)
	if list[0].Failures != 0 {
		t.Errorf("got %d failures, want 0", list[0].Failures)
	}
}
