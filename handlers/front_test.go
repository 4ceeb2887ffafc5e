package handlers_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

func newStore(t *testing.T) *store.Store {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	st, err := store.Open(t.Context(), db, store.Options{})
	check(t, err)
	return st
}

// refusing is a store whose writes fail.
type refusing struct{ *store.Store }

func (refusing) PutDelivery(context.Context, store.Delivery) (bool, error) {
	return false, errors.New("disk full")
}

const secret = "s3cret"

// request returns a webhook request as GitHub sends it, modified by change.
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
		want   []byte // the stored payload, if it differs from the body
	}{
		"good":     {body: body, status: http.StatusOK, stored: 1},
		"ping":     {body: body, change: func(r *http.Request) { r.Header.Set("X-GitHub-Event", "ping") }, status: http.StatusOK, stored: 1},
		"charset":  {body: body, change: func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, status: http.StatusOK, stored: 1},
		"nothing":  {body: []byte{}, status: http.StatusOK, stored: 1},
		"GET":      {body: body, change: func(r *http.Request) { r.Method = http.MethodGet }, status: http.StatusMethodNotAllowed},
		"unsigned": {body: body, change: func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, status: http.StatusBadRequest},
		"SHA-1 only": {body: body, change: func(r *http.Request) {
			mac := hmac.New(sha1.New, []byte(secret))
			mac.Write(body)
			r.Header.Del("X-Hub-Signature-256")
			r.Header.Set("X-Hub-Signature", "sha1="+hex.EncodeToString(mac.Sum(nil)))
		}, status: http.StatusBadRequest},
		"SHA-1 instead of SHA-256": {body: body, change: func(r *http.Request) {
			mac := hmac.New(sha1.New, []byte(secret))
			mac.Write(body)
			r.Header.Set("X-Hub-Signature-256", "sha1="+hex.EncodeToString(mac.Sum(nil)))
		}, status: http.StatusBadRequest},
		"another secret": {body: body, change: func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+sign(body, "other")) }, status: http.StatusBadRequest},
		"another body":   {body: []byte(`{"action":"closed"}`), change: func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+sign(body, secret)) }, status: http.StatusBadRequest},
		"no GUID":        {body: body, change: func(r *http.Request) { r.Header.Del("X-GitHub-Delivery") }, status: http.StatusBadRequest},
		"no event":       {body: body, change: func(r *http.Request) { r.Header.Del("X-GitHub-Event") }, status: http.StatusBadRequest},
		"unknown event":  {body: body, change: func(r *http.Request) { r.Header.Set("X-GitHub-Event", "star") }, status: http.StatusAccepted},
		"unknown event, another secret": {body: body, change: func(r *http.Request) {
			r.Header.Set("X-GitHub-Event", "star")
			r.Header.Set("X-Hub-Signature-256", "sha256="+sign(body, "other"))
		}, status: http.StatusBadRequest},
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
		}, status: http.StatusOK, stored: 1, want: body},
		"as a large form": {body: []byte("x=1&payload=" + url.QueryEscape(string(large))), change: func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")
		}, status: http.StatusOK, stored: 1, want: large},
		"a form without a payload": {body: []byte("x=1"), change: func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, status: http.StatusOK, stored: 1, want: []byte{}},
		"an ill-formed form": {body: []byte("payload=%zz"), change: func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, status: http.StatusBadRequest},
		"a form of an unknown event": {body: []byte("payload=%zz"), change: func(r *http.Request) {
			r.Header.Set("X-GitHub-Event", "star")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}, status: http.StatusAccepted},
		"store error": {body: body, broken: true, status: http.StatusInternalServerError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStore(t)
			var deliveries handlers.Deliveries = st
			if c.broken {
				deliveries = refusing{st}
			}
			front, err := handlers.Front([]string{secret}, handlers.NewInbox(deliveries, st, nil, zerolog.Nop(), time.Now))
			check(t, err)
			w := httptest.NewRecorder()
			front.ServeHTTP(w, request(c.body, c.change))
			list, err := st.PendingDeliveries(t.Context(), 10)
			check(t, err)
			if w.Code != c.status || len(list) != c.stored {
				t.Errorf("got status %d (%s) and %d stored deliveries, want %d and %d", w.Code, strings.TrimSpace(w.Body.String()), len(list), c.status, c.stored)
			}
			if c.want == nil {
				c.want = c.body
			}
			if len(list) == 1 && !bytes.Equal(list[0].Payload, c.want) {
				t.Errorf("got stored payload %.100q, want %.100q", list[0].Payload, c.want)
			}
			if strings.Contains(w.Body.String(), "disk full") {
				t.Error("got an answer with details about the disk, want none")
			}
		})
	}
}

// nested is a store in which another webhook arrives before the first one is stored.
type nested struct {
	*store.Store
	meanwhile func()
}

func (n *nested) PutDelivery(ctx context.Context, d store.Delivery) (bool, error) {
	if meanwhile := n.meanwhile; meanwhile != nil {
		n.meanwhile = nil
		meanwhile()
	}
	return n.Store.PutDelivery(ctx, d)
}

// The memory of a body is not reused before the body is stored.
func TestConcurrentWebhooksKeepTheirPayloads(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 10, "one chunk": 32 << 10, "large": 100 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := &nested{Store: newStore(t)}
			front, err := handlers.Front([]string{secret}, handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now))
			check(t, err)
			send := func(guid string) {
				w := httptest.NewRecorder()
				front.ServeHTTP(w, request(bytes.Repeat([]byte(guid), size), func(r *http.Request) { r.Header.Set("X-GitHub-Delivery", guid) }))
				if w.Code != http.StatusOK {
					t.Errorf("got status %d, want 200", w.Code)
				}
			}
			st.meanwhile = func() { send("b") }
			send("a")
			list, err := st.PendingDeliveries(t.Context(), 10)
			check(t, err)
			if len(list) != 2 {
				t.Fatalf("got %d stored deliveries, want 2", len(list))
			}
			for _, d := range list {
				if string(d.Payload) != strings.Repeat(d.GUID, size) {
					t.Errorf("%s: got a stored payload of %d bytes, %.10q", d.GUID, len(d.Payload), d.Payload)
				}
			}
		})
	}
}

// unreadable is a body that fails the test when it is read.
type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("got a read of the body, want none")
	return 0, io.EOF
}

// A request without the headers of a webhook must not use memory, even if its Content-Length is large.
func TestFrontReadsNoBodyWithoutWebhookHeaders(t *testing.T) {
	t.Parallel()
	set := func(name string, values ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header[http.CanonicalHeaderKey(name)] = values }
	}
	zeros := strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"GET":                                {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"PUT":                                {func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
		"no signature":                       {set("X-Hub-Signature-256"), http.StatusBadRequest},
		"an empty signature":                 {set("X-Hub-Signature-256", "sha256="), http.StatusBadRequest},
		"a short signature":                  {set("X-Hub-Signature-256", "sha256="+zeros[1:]), http.StatusBadRequest},
		"a long signature":                   {set("X-Hub-Signature-256", "sha256="+zeros+"0"), http.StatusBadRequest},
		"a signature of SHA-1":               {set("X-Hub-Signature-256", "sha1="+zeros[:40]), http.StatusBadRequest},
		"a signature without digits":         {set("X-Hub-Signature-256", "sha256="+strings.Repeat("z", 64)), http.StatusBadRequest},
		"a signature with a line":            {set("X-Hub-Signature-256", "sha256="+zeros+"\n"), http.StatusBadRequest},
		"two signatures":                     {set("X-Hub-Signature-256", "sha256="+zeros, "sha256="+zeros), http.StatusBadRequest},
		"no GUID":                            {set("X-GitHub-Delivery"), http.StatusBadRequest},
		"a GUID with a slash":                {set("X-GitHub-Delivery", "../x"), http.StatusBadRequest},
		"an overlong GUID":                   {set("X-GitHub-Delivery", strings.Repeat("a", 101)), http.StatusBadRequest},
		"no event":                           {set("X-GitHub-Event"), http.StatusBadRequest},
		"an invalid event name":              {set("X-GitHub-Event", "issues; drop"), http.StatusBadRequest},
		"no type":                            {set("Content-Type"), http.StatusBadRequest},
		"another type":                       {set("Content-Type", "text/plain"), http.StatusBadRequest},
		"an invalid type":                    {set("Content-Type", "application/json; ="), http.StatusBadRequest},
		"an announced length over the limit": {func(r *http.Request) { r.ContentLength = 27 << 20 }, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStore(t)
			front, err := handlers.Front([]string{secret}, handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now))
			check(t, err)
			r := request([]byte(`{}`), func(r *http.Request) {
				r.ContentLength = 25_000_000
				c.change(r)
			})
			r.Body = io.NopCloser(unreadable{t})
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			if w.Code != c.status {
				t.Errorf("got status %d (%s), want %d", w.Code, strings.TrimSpace(w.Body.String()), c.status)
			}
		})
	}
}

func TestFrontRequiresASecret(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {""}, {secret, ""}} {
		if _, err := handlers.Front(secrets, nil); err == nil {
			t.Errorf("got no error for the secrets %q, want one", secrets)
		}
	}
}

// TestFrontAcceptsTwoSecrets: while a secret is replaced, both are accepted, and no third.
func TestFrontAcceptsTwoSecrets(t *testing.T) {
	t.Parallel()
	body := []byte(`{"action":"opened"}`)
	for name, c := range map[string]struct {
		signature string
		status    int
		number    string
	}{
		"the new one":               {sign(body, "new"+secret), http.StatusOK, "1"},
		"the previous one":          {sign(body, secret), http.StatusOK, "2"},
		"another":                   {sign(body, "other"), http.StatusBadRequest, ""},
		"both as one":               {sign(body, "new"+secret+"\n"+secret), http.StatusBadRequest, ""},
		"none":                      {"", http.StatusBadRequest, ""},
		"an empty one":              {sign(body, ""), http.StatusBadRequest, ""},
		"the beginning of a hash":   {sign(body, secret)[:32], http.StatusBadRequest, ""},
		"two hashes in one":         {sign(body, "new"+secret) + sign(body, secret), http.StatusBadRequest, ""},
		"the new one, another body": {sign([]byte(`{}`), "new"+secret), http.StatusBadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStore(t)
			front, err := handlers.Front([]string{"new" + secret, secret}, handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now))
			check(t, err)
			w := httptest.NewRecorder()
			front.ServeHTTP(w, request(body, func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256="+c.signature) }))
			if number := w.Header().Get(handlers.SecretHeader); w.Code != c.status || number != c.number {
				t.Errorf("got status %d (%s) and secret %q, want %d and %q", w.Code, strings.TrimSpace(w.Body.String()), number, c.status, c.number)
			}
		})
	}
}

// GitHub may send a webhook again, even concurrently.
func TestDuplicateWebhooksAreOneDelivery(t *testing.T) {
	t.Parallel()
	st := newStore(t)
	inbox := handlers.NewInbox(st, st, nil, zerolog.Nop(), time.Now)
	var mu sync.Mutex
	fresh := 0
	inbox.Received = func(_ string, isNew bool) {
		mu.Lock()
		defer mu.Unlock()
		if isNew {
			fresh++
		}
	}
	front, err := handlers.Front([]string{secret}, inbox)
	check(t, err)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			w := httptest.NewRecorder()
			front.ServeHTTP(w, request([]byte(`{"action":"opened"}`), nil))
			if w.Code != http.StatusOK {
				t.Errorf("got status %d, want 200", w.Code)
			}
		})
	}
	wg.Wait()
	list, err := st.PendingDeliveries(t.Context(), 10)
	check(t, err)
	if len(list) != 1 || fresh != 1 || string(list[0].Payload) != `{"action":"opened"}` {
		t.Errorf("got %d rows and %d new deliveries, want one of each: %v", len(list), fresh, list)
	}
}
