package handlers_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

func newStore(t *testing.T) *state.Store {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	store, err := state.Open(t.Context(), db, state.Options{})
	check(t, err)
	return store
}

// refusing is a store that cannot write.
type refusing struct{ *state.Store }

func (refusing) PutDelivery(context.Context, state.Delivery) (bool, error) {
	return false, errors.New("disk full")
}

const secret = "s3cret"

// request is a webhook as GitHub sends it; change bends it.
func request(body []byte, change func(*http.Request)) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/github/hook", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-GitHub-Event", "issues")
	r.Header.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	r.Header.Set("X-Hub-Signature-256", "sha256="+sign(body, secret))
	if change != nil {
		change(r)
	}
	return r
}

func sign(body []byte, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func TestFront(t *testing.T) {
	t.Parallel()
	body := []byte(`{"action":"opened"}`)
	large := []byte(`{"action":"opened","x":"` + strings.Repeat("x", 300_000) + `"}`)
	for name, c := range map[string]struct {
		body   []byte
		change func(*http.Request)
		broken bool
		status int
		stored int
	}{
		"good":     {body: body, status: http.StatusOK, stored: 1},
		"GET":      {body: body, change: func(r *http.Request) { r.Method = http.MethodGet }, status: http.StatusMethodNotAllowed},
		"unsigned": {body: body, change: func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, status: http.StatusBadRequest},
		"SHA-1 only": {body: body, change: func(r *http.Request) {
			mac := hmac.New(sha1.New, []byte(secret))
			mac.Write(body)
			r.Header.Del("X-Hub-Signature-256")
			r.Header.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(mac.Sum(nil)))
		}, status: http.StatusBadRequest},
		"SHA-1 in the place of SHA-256": {body: body, change: func(r *http.Request) {
			mac := hmac.New(sha1.New, []byte(secret))
			mac.Write(body)
			r.Header.Set("X-Hub-Signature-256", "sha1="+hex.EncodeToString(mac.Sum(nil)))
		}, status: http.StatusBadRequest},
		"another secret":      {body: body, change: func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+sign(body, "other")) }, status: http.StatusBadRequest},
		"another body":        {body: []byte(`{"action":"closed"}`), change: func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+sign(body, secret)) }, status: http.StatusBadRequest},
		"no GUID":             {body: body, change: func(r *http.Request) { r.Header.Del("X-GitHub-Delivery") }, status: http.StatusBadRequest},
		"no event":            {body: body, change: func(r *http.Request) { r.Header.Del("X-GitHub-Event") }, status: http.StatusBadRequest},
		"unknown event":       {body: body, change: func(r *http.Request) { r.Header.Set("X-GitHub-Event", "star") }, status: http.StatusAccepted},
		"a name with a digit": {body: body, change: func(r *http.Request) { r.Header.Set("X-GitHub-Event", "projects_v2_item") }, status: http.StatusAccepted},
		"too large":           {body: append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 27<<20)...), status: http.StatusRequestEntityTooLarge},
		"too large, without a length": {
			body: append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 27<<20)...), change: func(r *http.Request) { r.ContentLength = -1 }, status: http.StatusRequestEntityTooLarge,
		},
		"without a length": {body: body, change: func(r *http.Request) { r.ContentLength = -1 }, status: http.StatusOK, stored: 1},
		"large":            {body: large, status: http.StatusOK, stored: 1},
		"cut short": {body: body, change: func(r *http.Request) {
			r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:5]), iotest.ErrReader(io.ErrUnexpectedEOF)))
		}, status: http.StatusBadRequest},
		"as a form": {body: []byte("payload=" + url.QueryEscape(string(body))), change: func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, status: http.StatusOK, stored: 1},
		"store error": {body: body, broken: true, status: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			var deliveries handlers.Deliveries = store
			if c.broken {
				deliveries = refusing{store}
			}
			front, err := handlers.Front(secret, handlers.NewInbox(deliveries, store, nil, zerolog.Nop(), time.Now))
			check(t, err)
			w := httptest.NewRecorder()
			front.ServeHTTP(w, request(c.body, c.change))
			list, err := store.PendingDeliveries(t.Context(), 10)
			check(t, err)
			if w.Code != c.status || len(list) != c.stored {
				t.Errorf("answered %d %s, stored %d; want %d and %d", w.Code, strings.TrimSpace(w.Body.String()), len(list), c.status, c.stored)
			}
			if strings.Contains(w.Body.String(), "disk full") {
				t.Error("the answer tells a stranger about our disk")
			}
		})
	}
}

// unreadable fails the test if a body is read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestFrontReadsNoBodyWithoutTheHeadersOfAWebhook: whatever strangers announce, none of it takes memory.
func TestFrontReadsNoBodyWithoutTheHeadersOfAWebhook(t *testing.T) {
	t.Parallel()
	set := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = values }
	}
	zeros := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"GET":                       {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"PUT":                       {func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
		"no signature":              {set("X-Hub-Signature-256"), http.StatusBadRequest},
		"an empty signature":        {set("X-Hub-Signature-256", "sha256="), http.StatusBadRequest},
		"a short signature":         {set("X-Hub-Signature-256", "sha256="+zeros[1:]), http.StatusBadRequest},
		"a long signature":          {set("X-Hub-Signature-256", "sha256="+zeros+"0"), http.StatusBadRequest},
		"a signature of SHA-1":      {set("X-Hub-Signature-256", "sha1="+zeros[:40]), http.StatusBadRequest},
		"a signature of no digits":  {set("X-Hub-Signature-256", "sha256="+strings.Repeat("z", 64)), http.StatusBadRequest},
		"a signature with a line":   {set("X-Hub-Signature-256", "sha256="+zeros+"\n"), http.StatusBadRequest},
		"two signatures":            {set("X-Hub-Signature-256", "sha256="+zeros, "sha256="+zeros), http.StatusBadRequest},
		"no GUID":                   {set("X-GitHub-Delivery"), http.StatusBadRequest},
		"a GUID with a slash":       {set("X-GitHub-Delivery", "../x"), http.StatusBadRequest},
		"an endless GUID":           {set("X-GitHub-Delivery", strings.Repeat("a", 101)), http.StatusBadRequest},
		"no event":                  {set("X-GitHub-Event"), http.StatusBadRequest},
		"an event that is no name":  {set("X-GitHub-Event", "issues; drop"), http.StatusBadRequest},
		"no type":                   {set("Content-Type"), http.StatusBadRequest},
		"another type":              {set("Content-Type", "text/plain"), http.StatusBadRequest},
		"a type that is none":       {set("Content-Type", "application/json; ="), http.StatusBadRequest},
		"more is announced than is": {func(r *http.Request) { r.ContentLength = 27 << 20 }, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			front, err := handlers.Front(secret, handlers.NewInbox(store, store, nil, zerolog.Nop(), time.Now))
			check(t, err)
			r := request([]byte(`{}`), func(r *http.Request) {
				r.ContentLength = 25_000_000
				c.change(r)
			})
			r.Body = io.NopCloser(unreadable{t})
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("answered %d %s, want %d", w.Code, strings.TrimSpace(w.Body.String()), c.status)
			}
		})
	}
}

func TestFrontWantsASecret(t *testing.T) {
	t.Parallel()
	if _, err := handlers.Front("", nil); err == nil {
		t.Error("an empty secret is taken: anybody could direct the bot")
	}
}

// TestDuplicatesAreOneDelivery: GitHub sends a webhook again when it is unsure, also at once.
func TestDuplicatesAreOneDelivery(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	inbox := handlers.NewInbox(store, store, nil, zerolog.Nop(), time.Now)
	var mu sync.Mutex
	fresh := 0
	inbox.Received = func(_ string, isNew bool) {
		mu.Lock()
		defer mu.Unlock()
		if isNew {
			fresh++
		}
	}
	front, err := handlers.Front(secret, inbox)
	check(t, err)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			w := httptest.NewRecorder()
			front.ServeHTTP(w, request([]byte(`{"action":"opened"}`), nil))
			if w.Code != http.StatusOK {
				t.Errorf("answered %d", w.Code)
			}
		})
	}
	wg.Wait()
	list, err := store.PendingDeliveries(t.Context(), 10)
	check(t, err)
	if len(list) != 1 || fresh != 1 || string(list[0].Payload) != `{"action":"opened"}` {
		t.Errorf("%d rows, %d new: %v", len(list), fresh, list)
	}
}

// applier records events over a real store and fails for some.
type applier struct {
	*state.Store
	mu     sync.Mutex
	events []string
	fail   map[state.EventKind]error
	seen   chan struct{}
}

func (a *applier) Apply(ctx context.Context, e state.Event, ack state.Ack) (state.Applied, error) {
	if err := a.fail[e.Kind]; err != nil {
		return state.Applied{}, err
	}
	applied, err := a.Store.Apply(ctx, e, ack)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, fmt.Sprintf("%s #%d acks %q", e.Kind, e.Task.Issue, ack.Delivery))
	return applied, err
}

func (a *applier) got() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.events, "\n")
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain", what)
		case <-tick.C:
		}
	}
}

// running is an inbox at work until the test ends.
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
		{Key: state.TaskKey{Repo: 70, Issue: 8}, Waiting: &state.Waiting{Kind: state.WaitBlocked}},
		{Key: state.TaskKey{Repo: 71, Issue: 9}, Waiting: &state.Waiting{Kind: state.WaitBlocked}},
	}}
	for n := 1; n <= 60; n++ { // more than one batch, all there before the worker starts
		_, err := a.PutDelivery(t.Context(), state.Delivery{GUID: fmt.Sprintf("g-%03d", n), Event: "issues", Payload: closed(n + 100), Received: time.Unix(int64(n), 0)})
		check(t, err)
	}
	inbox := running(t, a, list)
	until(t, "an empty inbox", a.empty(t))
	check(t, inbox.Insert(t.Context(), "late", "issues", closed(7)))
	until(t, "every event", func() bool { return strings.Count(a.got(), "\n") == 3*61-1 })
	var want []string
	for n := 1; n <= 61; n++ {
		guid, issue := fmt.Sprintf("g-%03d", n), n+100
		if n == 61 {
			guid, issue = "late", 7
		}
		want = append(want, fmt.Sprintf(`issue_closed #%d acks ""`, issue), `poked #8 acks ""`, fmt.Sprintf(`poked #9 acks %q`, guid))
	}
	if got := a.got(); got != strings.Join(want, "\n") {
		t.Errorf("events:\n%s", got)
	}
	for _, guid := range []string{"g-001", "late"} {
		if known, err := a.HasDelivery(t.Context(), guid); !known || err != nil {
			t.Errorf("%s left no tombstone (%v)", guid, err)
		}
	}
}

func TestInboxSetsPoisonAside(t *testing.T) {
	t.Parallel()
	synctest.Test(t, setsPoisonAside) // the tries are seconds apart
}

func setsPoisonAside(t *testing.T) {
	a := &applier{Store: newStore(t), fail: map[state.EventKind]error{state.EventIssueGone: errors.New("boom")}}
	inbox := running(t, a, &tasks{})
	check(t, inbox.Insert(t.Context(), "1-garbage", "issues", []byte("{")))
	check(t, inbox.Insert(t.Context(), "2-failing", "issues", bytes.Replace(closed(3), []byte("closed"), []byte("deleted"), 1)))
	check(t, inbox.Insert(t.Context(), "good", "issues", closed(4)))
	check(t, inbox.Insert(t.Context(), "nothing", "issues", []byte(`{"action":"pinned","issue":{"number":4},"repository":{"id":70}}`)))
	until(t, "an empty inbox", a.empty(t))
	until(t, "the good one's event", func() bool { return a.got() != "" })
	poison, err := a.PoisonDeliveries(t.Context(), 10)
	check(t, err)
	if len(poison) != 2 || poison[0].GUID != "1-garbage" || poison[1].GUID != "2-failing" || poison[0].Failures != state.MaxDeliveryFailures || poison[0].LastError == "" {
		t.Errorf("set aside: %+v", poison)
	}
	if got := a.got(); got != `issue_closed #4 acks "good"` {
		t.Errorf("events:\n%s", got)
	}
}

// TestInboxTakesSpentForDone: an event whose delivery another worker has spent meanwhile is
// no failure.
func TestInboxTakesSpentForDone(t *testing.T) {
	t.Parallel()
	a := &applier{Store: newStore(t), fail: map[state.EventKind]error{state.EventIssueClosed: fmt.Errorf("apply: %w", state.ErrSpent)}}
	inbox := running(t, a, &tasks{})
	check(t, inbox.Insert(t.Context(), "twice", "issues", closed(3)))
	check(t, inbox.Insert(t.Context(), "next", "ping", []byte(`{}`)))
	until(t, "the next delivery", func() bool {
		list, err := a.PendingDeliveries(t.Context(), 10)
		check(t, err)
		return len(list) == 1 && list[0].GUID == "twice"
	})
	list, err := a.PendingDeliveries(t.Context(), 10)
	check(t, err)
	if list[0].Failures != 0 {
		t.Errorf("counted as %d failures", list[0].Failures)
	}
}
