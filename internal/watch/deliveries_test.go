package watch_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state/store"
)

// reads returns the pending webhooks after a sweep of an errand that reads webhooks from GitHub's log.
func (l *sweepWorld) reads() []store.Delivery {
	l.t.Helper()
	l.hooks()
	l.cfg.ReadWebhooks = time.Second
	l.sweeper = watch.NewSweeper(l.cfg)
	check(l.t, l.sweeper.SweepDeliveries(l.t.Context()))
	list, err := l.PendingDeliveries(l.t.Context(), 100)
	check(l.t, err)
	return list
}

// comments counts the webhooks of comments.
func comments(list []store.Delivery) (n int) {
	for _, d := range list {
		if d.Event == "issue_comment" {
			n++
		}
	}
	return n
}

// TestAllWebhooksAreReadFromLog: if GitHub cannot reach errand, every webhook in GitHub's log is stored once, whatever answered
// there.
func TestAllWebhooksAreReadFromLog(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"nobody answers": http.StatusBadGateway, "something else answers": http.StatusOK} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.status.Store(int64(status))
			l.reads() // the store then knows when errand first ran
			checkSwept(t, l.sweeper.SweepState(t.Context()))
			l.ahead.Store(int64(2 * time.Second)) // what follows is in a later second
			l.issue()
			for range 2 {
				check(t, errOf(l.sim.As("eve").Comment(full, 1, "from an outsider")))
			}
			list := l.reads()
			if got := comments(list); got != 2 {
				t.Errorf("got %d comments, want 2", got)
			}
			if again := l.reads(); len(again) != len(list) {
				t.Errorf("got %d webhooks after a second sweep, want %d", len(again), len(list))
			}
			check(t, l.SpendDelivery(t.Context(), list[0].GUID))
			if again := l.reads(); len(again) != len(list)-1 {
				t.Errorf("got %d webhooks after one was processed, want %d", len(again), len(list)-1)
			}
		})
	}
}

// TestWebhooksBeforeFirstRunAreNotRead: a new errand does not repeat what an earlier one with another store did.
func TestWebhooksBeforeFirstRunAreNotRead(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.status.Store(http.StatusBadGateway)
	l.ahead.Store(-int64(time.Hour))
	l.issue()
	check(t, errOf(l.ada.Comment(full, 1, "long ago")))
	l.hooks()
	l.ahead.Store(int64(2 * time.Second))
	check(t, errOf(l.ada.Comment(full, 1, "now")))
	if got := comments(l.reads()); got != 1 {
		t.Errorf("got %d comments, want only the one after the first run", got)
	}
}

// TestReadingWebhooksSurvivesFailures: neither an outage of GitHub nor a webhook that cannot be read keeps the others from being read.
func TestReadingWebhooksSurvivesFailures(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.status.Store(http.StatusBadGateway)
	l.reads()
	l.ahead.Store(int64(2 * time.Second))
	l.issue()
	l.hooks()
	check(t, errOf(l.ada.Comment(full, 1, "one")))
	check(t, errOf(l.ada.Comment(full, 1, "two")))
	l.hooks()
	check(t, l.sim.Fault(simgithub.Fault{Path: "^/app/hook/deliveries$", Status: http.StatusForbidden, Count: 1}))
	check(t, l.sim.Fault(simgithub.Fault{Path: "^/app/hook/deliveries/[0-9]+$", Status: http.StatusNotFound, Count: 1}))
	l.cfg.ReadWebhooks = time.Millisecond
	read := make(chan struct{}, 100)
	l.cfg.Inbox = notifying{inserter{l.storeWorld}, read}
	l.sweeper = watch.NewSweeper(l.cfg)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- l.sweeper.ReadWebhooks(ctx) }()
	for got := 0; got < 2; {
		select {
		case <-read:
		case <-ctx.Done():
			t.Fatalf("got %d of 2 comments", got)
		}
		list, err := l.PendingDeliveries(t.Context(), 100)
		check(t, err)
		got = comments(list)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got error %v at the end", err)
	}
}

// TestUnreadableWebhookDoesNotDelayOthers: the pace of reading stays if single webhooks cannot be read, unless GitHub's rate limit is
// why.
func TestUnreadableWebhookDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault simgithub.Fault
		waits []string
	}{
		"gone":       {simgithub.Fault{Status: http.StatusNotFound}, []string{`"retry_in":1,`, `"retry_in":1,`, `"retry_in":1,`}},
		"rate limit": {simgithub.Fault{Primary: true, Reset: 3600}, []string{`"retry_in":2,`, `"retry_in":4,`, `"retry_in":8,`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.status.Store(http.StatusBadGateway)
			l.reads()
			l.ahead.Store(int64(2 * time.Second))
			l.issue()
			l.hooks()
			c.fault.Path = "^/app/hook/deliveries/[0-9]+$"
			check(t, l.sim.Fault(c.fault))
			lines := make(lineWriter)
			l.cfg.ReadWebhooks, l.cfg.Log = time.Millisecond, zerolog.New(lines)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- watch.NewSweeper(l.cfg).ReadWebhooks(ctx) }()
			for _, want := range c.waits {
				if line := <-lines; !strings.Contains(line, want) {
					t.Errorf("got %q, want %s", line, want)
				}
			}
			cancel()
			for {
				select {
				case <-lines:
				case err := <-ended:
					check(t, err)
					return
				}
			}
		})
	}
}

// lineWriter sends what is written, line by line.
type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// notifying tells when a webhook was stored.
type notifying struct {
	watch.Inserter
	stored chan<- struct{}
}

func (n notifying) Insert(ctx context.Context, guid, event string, payload []byte) error {
	err := n.Inserter.Insert(ctx, guid, event, payload)
	n.stored <- struct{}{}
	return err
}

// TestWebhooksAreNotReadTwice: an errand that GitHub reaches reads only lost webhooks.
func TestWebhooksAreNotReadTwice(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	l.hooks()
	if err := l.sweeper.ReadWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := l.PendingDeliveries(t.Context(), 100); len(list) != 0 || err != nil {
		t.Errorf("got %d webhooks, error %v", len(list), err)
	}
}
