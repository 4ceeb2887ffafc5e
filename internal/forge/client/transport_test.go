package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
)

func TestRateLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	reset := strconv.FormatInt(now.Add(20*time.Minute).Unix(), 10)
	tests := map[string]struct {
		status  int
		header  map[string]string
		body    any
		graphql bool
		kind    forge.LimitKind
		wait    time.Duration
	}{
		"primary 403":           {403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, m{"message": "API rate limit exceeded"}, false, forge.LimitPrimary, 20*time.Minute + time.Second},
		"primary 429":           {429, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, m{"message": "API rate limit exceeded"}, false, forge.LimitPrimary, 20*time.Minute + time.Second},
		"secondary with time":   {403, map[string]string{"Retry-After": "90"}, m{"message": "You have exceeded a secondary rate limit."}, false, forge.LimitSecondary, 90 * time.Second},
		"secondary 429":         {429, nil, m{"message": "Slow down"}, false, forge.LimitSecondary, time.Minute},
		"secondary no time":     {403, nil, m{"message": "x", "documentation_url": "https://docs.github.com/rest/overview#secondary-rate-limits"}, false, forge.LimitSecondary, time.Minute},
		"retry-after wins":      {403, map[string]string{"Retry-After": "5", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, m{}, false, forge.LimitPrimary, 5 * time.Second},
		"GraphQL primary 200":   {200, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset}, m{"errors": []m{{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}}}, true, forge.LimitPrimary, 20*time.Minute + time.Second},
		"GraphQL secondary":     {200, map[string]string{"Retry-After": "7"}, m{"errors": []m{{"message": "You have exceeded a secondary rate limit"}}}, true, forge.LimitSecondary, 7 * time.Second},
		"GraphQL secondary 403": {403, nil, m{"message": "You have exceeded a secondary rate limit"}, true, forge.LimitSecondary, time.Minute},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				forgetest.Answer(w, tt.status, tt.body)
			})
			f := forgetest.New(t, gh.URL, func(c *forge.Config) { c.Now = func() time.Time { return now } })
			call := func() error {
				if tt.graphql {
					return f.Minimize(t.Context(), 7, "IC_1")
				}
				_, err := f.CreateComment(t.Context(), forgetest.Repo(), 3, "hello")
				return err
			}
			for range 2 { // the second request is not sent
				err := call()
				var limit *forge.LimitError
				if !errors.As(err, &limit) {
					t.Fatalf("got %v, want a LimitError", err)
				}
				if limit.Kind != tt.kind || limit.Until.Sub(now) != tt.wait || limit.Installation != 7 {
					t.Errorf("got %s of %d for %s, want %s for %s", limit.Kind, limit.Installation, limit.Until.Sub(now), tt.kind, tt.wait)
				}
				if class, until := forge.Classify(err); class != forge.ClassTemporary || !until.Equal(limit.Until) {
					t.Errorf("got class %s until %s", class, until)
				}
			}
			if n := len(gh.Requests()); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

func TestRateLimitsArePerInstallationAndExpire(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	limited := true
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
		if limited {
			limited = false
			w.Header().Set("Retry-After", "60")
			forgetest.Answer(w, 429, m{})
			return
		}
		forgetest.Answer(w, 201, m{"id": 5})
	})
	f := forgetest.New(t, gh.URL, func(c *forge.Config) { c.Now = func() time.Time { return now } })
	comment := func(installation int64) error {
		r := forgetest.Repo()
		r.Installation = installation
		_, err := f.CreateComment(t.Context(), r, 3, "hello")
		return err
	}
	if err := comment(7); err == nil {
		t.Fatal("no rate limit error")
	}
	if err := comment(8); err != nil {
		t.Errorf("another installation: %v", err)
	}
	now = now.Add(time.Minute)
	if err := comment(7); err != nil {
		t.Errorf("after the limit's end: %v", err)
	}
}

func TestSecondaryLimitsWithoutTimeDouble(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) { forgetest.Answer(w, 429, m{}) })
	f := forgetest.New(t, gh.URL, func(c *forge.Config) { c.Now = func() time.Time { return now } })
	var waits []time.Duration
	for range 6 {
		_, err := f.CreateComment(t.Context(), forgetest.Repo(), 3, "hello")
		_, until := forge.Classify(err)
		waits = append(waits, until.Sub(now))
		now = until
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Error(diff)
	}
}

// failure is a kind of failure: the behavior of GitHub, the call, and the expected result.
type failure struct {
	handle http.HandlerFunc
	call   func(context.Context, *forge.Forge) error
	class  forge.Class
	is     error
	calls  int
}

func failures() map[string]failure {
	drop := func(w http.ResponseWriter, _ *http.Request) { // the response is lost
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			conn.Close()
		}
	}
	say := func(status int, body any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { forgetest.Answer(w, status, body) }
	}
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client has closed the connection
		<-r.Context().Done()
	}
	read := func(ctx context.Context, f *forge.Forge) error {
		_, err := f.Issue(ctx, forgetest.Repo(), 3)
		return err
	}
	write := func(ctx context.Context, f *forge.Forge) error {
		_, err := f.CreateComment(ctx, forgetest.Repo(), 3, "hello")
		return err
	}
	mutate := func(ctx context.Context, f *forge.Forge) error { return f.Minimize(ctx, 7, "IC_1") }
	query := func(ctx context.Context, f *forge.Forge) error {
		return errOf(f.IssueText(ctx, forgetest.Repo(), "I_1"))
	}
	return map[string]failure{
		"read 502":           {say(502, m{}), read, forge.ClassTemporary, nil, 3},
		"read 500":           {say(500, m{}), read, forge.ClassTemporary, nil, 1},
		"read lost":          {drop, read, forge.ClassTemporary, nil, 3},
		"read timed out":     {hang, read, forge.ClassTemporary, nil, 3},
		"read 404":           {say(404, m{"message": "Not Found"}), read, forge.ClassPermanent, forge.ErrNotFound, 1},
		"read 410":           {say(410, m{"message": "This issue was deleted"}), read, forge.ClassPermanent, forge.ErrNotFound, 1},
		"read invalid JSON":  {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, read, forge.ClassTemporary, nil, 1},
		"write 502":          {say(502, m{}), write, forge.ClassUnknown, nil, 1},
		"write 500":          {say(500, m{}), write, forge.ClassUnknown, nil, 1},
		"write lost":         {drop, write, forge.ClassUnknown, nil, 1},
		"write timed out":    {hang, write, forge.ClassUnknown, nil, 1},
		"write invalid JSON": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }, write, forge.ClassUnknown, nil, 1},
		"write 401":          {say(401, m{"message": "Bad credentials"}), write, forge.ClassTemporary, nil, 1},                        // with a new token
		"write 403":          {say(403, m{"message": "Resource not accessible by integration"}), write, forge.ClassTemporary, nil, 1}, // with a new token
		"write forbidden":    {say(403, m{"message": "Must have admin rights"}), write, forge.ClassPermanent, nil, 1},
		"write locked":       {say(403, m{"message": "Unable to create comment because issue is locked."}), write, forge.ClassTemporary, forge.ErrLocked, 1},
		"write 422":          {say(422, m{"message": "Validation Failed"}), write, forge.ClassPermanent, nil, 1},
		"write moved": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(301)
		}, write, forge.ClassTemporary, forge.ErrRenamed, 1},
		"mutation refused": {say(200, m{"data": nil, "errors": []m{{"type": "FORBIDDEN", "message": "no"}}}), mutate, forge.ClassPermanent, nil, 1},
		"mutation gone":    {say(200, m{"errors": []m{{"type": "NOT_FOUND", "message": "no"}}}), mutate, forge.ClassPermanent, forge.ErrNotFound, 1},
		"mutation failed":  {say(200, m{"errors": []m{{"message": "Something went wrong"}}}), mutate, forge.ClassUnknown, nil, 1},
		"query failed":     {say(200, m{"errors": []m{{"message": "Something went wrong"}}}), query, forge.ClassTemporary, nil, 1},
		"mutation lost":    {drop, mutate, forge.ClassUnknown, nil, 1},
	}
}

// TestFailures checks the class of each failure, and the number of requests.
func TestFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range failures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gh := forgetest.NewFake(t, tt.handle)
			f := forgetest.New(t, gh.URL, func(c *forge.Config) {
				if strings.HasSuffix(name, "timed out") { // a slow machine needs more for the other requests
					c.Timeout = time.Second
				}
			})
			err := tt.call(t.Context(), f)
			if err == nil {
				t.Fatal("got no error, want one")
			}
			if class, _ := forge.Classify(err); class != tt.class {
				t.Errorf("class %s, want %s: %v", class, tt.class, err)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got error %v, want %v", err, tt.is)
			}
			if reason, _ := forge.Explain(err); !strings.HasSuffix(reason, ".") {
				t.Errorf("got reason %q is not a sentence", reason)
			}
			if n := len(gh.Requests()); n != tt.calls {
				t.Errorf("%d requests, want %d", n, tt.calls)
			}
		})
	}
}

func TestUnsentWriteIsTemporaryError(t *testing.T) {
	t.Parallel()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) { forgetest.Answer(w, 201, m{"id": 1}) })
	var down atomic.Bool // a closed listener may still accept a connection for a moment and reset it
	f := forgetest.New(t, gh.URL, func(c *forge.Config) {
		c.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}}
	})
	if _, err := f.CreateComment(t.Context(), forgetest.Repo(), 3, "a"); err != nil { // gets a token
		t.Fatal(err)
	}
	down.Store(true)
	_, err := f.CreateComment(t.Context(), forgetest.Repo(), 3, "b")
	if class, _ := forge.Classify(err); class != forge.ClassTemporary {
		t.Errorf("got class %s: %v", class, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.CreateComment(ctx, forgetest.Repo(), 3, "c")
	if class, _ := forge.Classify(err); class != forge.ClassTemporary || !errors.Is(err, context.Canceled) {
		t.Errorf("got class %s: %v", class, err)
	}
}

func TestReadsAreRetried(t *testing.T) {
	t.Parallel()
	n := 0
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
		if n++; n < 3 {
			forgetest.Answer(w, 503, m{})
			return
		}
		w.Header().Set("X-RateLimit-Remaining", "4711")
		forgetest.Answer(w, 200, m{"number": 3, "title": "A bug", "state": "open", "type": m{"name": "Bug"}})
	})
	var seen, left []int
	f := forgetest.New(t, gh.URL, func(c *forge.Config) {
		c.Metrics = func(call forge.Request) { seen, left = append(seen, call.Status), append(left, call.Remaining) }
	})
	i, err := f.Issue(t.Context(), forgetest.Repo(), 3)
	if err != nil || i.Title != "A bug" || i.Type != "Bug" || i.Closed {
		t.Errorf("got %+v, %v", i, err)
	}
	if diff := cmp.Diff([]int{201, 503, 503, 200}, seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{-1, -1, -1, 4711}, left); diff != "" {
		t.Errorf("remaining requests (-want +got):\n%s", diff)
	}
	if f.Calls(forge.ForTask) != 4 {
		t.Errorf("%d calls, want 4", f.Calls(forge.ForTask))
	}
}

func TestNotInstalled(t *testing.T) {
	t.Parallel()
	for _, status := range []int{403, 404} {
		gh := forgetest.NewFake(t, nil)
		gh.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { forgetest.Answer(w, status, m{"message": "no"}) })
		f := forgetest.New(t, gh.URL)
		_, err := f.CreateComment(t.Context(), forgetest.Repo(), 3, "hello")
		if class, _ := forge.Classify(err); class != forge.ClassPermanent || !errors.Is(err, forge.ErrNotInstalled) {
			t.Errorf("%d: class %s: %v", status, class, err)
		}
		if _, _, err = f.GitToken(t.Context(), forgetest.Repo()); !errors.Is(err, forge.ErrNotInstalled) {
			t.Errorf("%d: git token: %v", status, err)
		}
	}
}

func TestBadCredentialsArePermanent(t *testing.T) {
	t.Parallel()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
		forgetest.Answer(w, 401, m{"message": "Bad credentials"})
	})
	now := time.Now()
	f := forgetest.New(t, gh.URL, func(c *forge.Config) { c.Now = func() time.Time { return now } })
	var classes []forge.Class
	for range 7 { // new tokens are created a few times, some seconds apart
		class, _ := forge.Classify(errOf(f.CreateComment(t.Context(), forgetest.Repo(), 3, "hello")))
		classes = append(classes, class)
		now = now.Add(3 * time.Second)
	}
	want := slices.Concat(slices.Repeat([]forge.Class{forge.ClassTemporary}, 5), slices.Repeat([]forge.Class{forge.ClassPermanent}, 2))
	if diff := cmp.Diff(want, classes); diff != "" {
		t.Error(diff)
	}
}

// errOf returns the error of a call.
func errOf[T any](_ T, err error) error { return err }

func TestSunsetIsLoggedOnce(t *testing.T) {
	t.Parallel()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Sunset", "Fri, 10 Mar 2028 00:00:00 GMT")
		forgetest.Answer(w, 201, m{"id": 1})
	})
	var log bytes.Buffer
	f := forgetest.New(t, gh.URL, func(c *forge.Config) { c.Log = zerolog.New(&log) })
	for range 3 {
		if _, err := f.CreateComment(t.Context(), forgetest.Repo(), 3, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "10 Mar 2028"); n != 1 {
		t.Errorf("logged %d times, want once: %s", n, log.String())
	}
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	if _, err := forge.New(forge.Config{PrivateKey: forgetest.Key()}); err == nil {
		t.Error("a missing App ID is no error")
	}
	if _, err := forge.New(forge.Config{AppID: 1, PrivateKey: []byte("nonsense")}); err == nil {
		t.Error("a missing key is no error")
	}
}

func TestCredentialsStayWithGitHub(t *testing.T) {
	t.Parallel()
	var leaked string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked = r.Header.Get("Authorization")
		forgetest.Answer(w, 200, m{"number": 3})
	}))
	defer other.Close()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	})
	if i := forgetest.Must(forgetest.New(t, gh.URL).Issue(t.Context(), forgetest.Repo(), 3))(t); i.Number != 3 || leaked != "" {
		t.Errorf("got issue %d, credentials %q", i.Number, leaked)
	}
}

func TestStatelessTokensAreRequested(t *testing.T) {
	t.Parallel()
	var header string
	gh := forgetest.NewFake(t, nil)
	gh.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header == "" {
			header = r.Header.Get("X-GitHub-Stateless-S2S-Token")
		}
		forgetest.Answer(w, 201, m{"token": "ghs_x", "expires_at": time.Now().Add(time.Hour)})
	})
	f := forgetest.New(t, gh.URL, func(c *forge.Config) { c.StatelessTokens = "disabled" })
	if _, _, err := f.GitToken(t.Context(), forgetest.Repo()); err != nil || header != "disabled" {
		t.Errorf("got header %q: %v", header, err)
	}
}
