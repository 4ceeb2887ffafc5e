package delivery

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Each case sends the events a, b and c, then releases held ones in reverse order.
func TestFaultsChangeDeliveries(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		faults   []Fault
		hold     bool
		received string
		log      string
	}{
		"none":                 {received: "a b c", log: "a:200 b:200 c:200"},
		"a lost delivery":      {faults: []Fault{{Event: "b", Lose: true}}, received: "a c", log: "a:200 c:200"},
		"a large payload":      {faults: []Fault{{Event: "b", Large: true}}, received: "a c", log: "a:200 c:200"},
		"a failed delivery":    {faults: []Fault{{Event: "a", Fail: true}}, received: "b c", log: "a:502 b:200 c:200"},
		"a duplicate delivery": {faults: []Fault{{Event: "a", Copies: 2}}, received: "a a a b c", log: "a:200 a:200 a:200 b:200 c:200"},
		"a wrong secret":       {faults: []Fault{{Event: "b", BadSignature: true}}, received: "a b c", log: "a:200 c:200"},
		"one held":             {faults: []Fault{{Event: "a", Hold: true}}, received: "b c a", log: "b:200 c:200 a:200"},
		"all held":             {hold: true, received: "c b a", log: "c:200 b:200 a:200"},
		"the second match":     {faults: []Fault{{Nth: 2, Count: 1, Lose: true}}, received: "a c", log: "a:200 c:200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var received []string
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				received = append(received, r.Header.Get("X-GitHub-Event"))
			}))
			t.Cleanup(server.Close)
			q := startQueue(t)
			for _, f := range tt.faults {
				q.Fault(f)
			}
			if tt.hold {
				q.Hold()
			}
			for n, event := range []string{"a", "b", "c"} {
				q.Send(&Delivery{ID: int64(n), GUID: event, Event: event, URL: server.URL, Secret: "s"})
			}
			wait(t, q)
			q.Release(true)
			wait(t, q)
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(tt.received, strings.Join(received, " ")); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
			var log []string
			for _, d := range q.Log() {
				log = append(log, fmt.Sprintf("%s:%d", d.Event, d.StatusCode))
			}
			if diff := cmp.Diff(tt.log, strings.Join(log, " ")); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindReturnsACopy(t *testing.T) {
	t.Parallel()
	q := startQueue(t)
	q.Send(&Delivery{ID: 7, GUID: "g", Event: "a"}) // without an address, the host cannot be reached
	wait(t, q)
	d := q.Find(7)
	if d == nil || d.Status != "failed to connect to host" {
		t.Fatalf("got delivery %+v", d)
	}
	d.Status = "changed"
	if got := q.Find(7).Status; got != "failed to connect to host" {
		t.Errorf("got status %q", got)
	}
	if d := q.Find(8); d != nil {
		t.Errorf("unknown delivery = %+v", d)
	}
}

func startQueue(t *testing.T) *Queue {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	q := New(ctx, Config{Now: time.Now, Timeout: 10 * time.Second, AppID: 1})
	var wg sync.WaitGroup
	wg.Go(q.Run)
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return q
}

func wait(t *testing.T, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := q.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}
