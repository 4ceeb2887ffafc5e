package bench

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/palantir/go-githubapp/githubapp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

const (
	hookSecret  = "bench-secret"
	connections = 32
	payloadSize = 12 << 10
)

// BenchmarkWebhook sends webhooks over 32 connections, first to a dispatcher that throws them away, then to
// the one that answers when they are durable. What both have in common is HTTP, the signature and this client.
func BenchmarkWebhook(b *testing.B) {
	var noop rate
	b.Run("thrown-away", func(b *testing.B) {
		front := githubapp.NewEventDispatcher([]githubapp.EventHandler{ignore{}}, hookSecret)
		noop = hammer(b, front)
	})
	for _, spent := range []int{0, 50_000} {
		b.Run(fmt.Sprintf("durable/%d-known", spent), func(b *testing.B) {
			store := openStore(b)
			tombstones(b, store, spent)
			front, err := handlers.Front(hookSecret, handlers.NewInbox(store, store, nil, zerolog.Nop(), time.Now))
			check(b, err)
			r := hammer(b, front)
			b.ReportMetric(r.perSecond/noop.perSecond, "of-thrown-away")
			figure(b, "webhook to durable answer, 12 kB, 32 connections, %d deliveries known: %.0f/s = %.2f × the dispatcher without a store (at least 0.3 ×); p50 %s, p99 %s (at most 50 ms)",
				spent, r.perSecond, r.perSecond/noop.perSecond, r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond))
		})
	}
}

// figure prints a figure with what it is compared to.
func figure(b *testing.B, format string, args ...any) {
	b.Helper()
	b.Logf("figure: "+format, args...)
}

// ignore is a handler that does nothing.
type ignore struct{}

// Handles lists what is sent.
func (ignore) Handles() []string { return []string{"issue_comment"} }

// Handle does nothing.
func (ignore) Handle(context.Context, string, string, []byte) error { return nil }

// rate is what came of sending.
type rate struct {
	perSecond float64
	p50, p99  time.Duration
}

// hammer sends b.N webhooks at once over 32 connections.
func hammer(b *testing.B, front http.Handler) rate {
	b.Helper()
	srv := httptest.NewServer(front)
	defer srv.Close()
	body := payload()
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	transport := &http.Transport{MaxIdleConnsPerHost: connections, MaxConnsPerHost: connections}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	took := make([]time.Duration, b.N)
	var next atomic.Int64
	var group sync.WaitGroup
	b.ResetTimer()
	began := time.Now()
	for range connections {
		group.Go(func() {
			for n := next.Add(1) - 1; n < int64(b.N); n = next.Add(1) - 1 {
				start := time.Now()
				if err := send(b.Context(), client, srv.URL, body, signature); err != nil {
					b.Error(err)
					return
				}
				took[n] = time.Since(start)
			}
		})
	}
	group.Wait()
	all := time.Since(began)
	b.StopTimer()
	slices.Sort(took)
	r := rate{perSecond: float64(b.N) / all.Seconds(), p50: took[b.N/2], p99: took[min(b.N-1, b.N*99/100)]}
	b.ReportMetric(r.perSecond, "webhooks/s")
	b.ReportMetric(float64(r.p99.Microseconds())/1000, "ms-p99")
	return r
}

func send(ctx context.Context, client *http.Client, url string, body []byte, signature string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", "issue_comment")
	req.Header.Set("X-GitHub-Delivery", uuid.NewString())
	req.Header.Set("X-Hub-Signature-256", signature)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// payload is a webhook of the usual size, with as many addresses in it as GitHub's have.
func payload() []byte {
	repo := map[string]any{"id": 1001, "name": "slug", "full_name": "acme/slug", "default_branch": "main"}
	for _, name := range []string{"forks", "keys", "collaborators", "teams", "hooks", "issue_events", "events", "assignees", "branches", "tags", "blobs",
		"git_tags", "git_refs", "trees", "statuses", "languages", "stargazers", "contributors", "subscribers", "subscription", "commits", "git_commits",
		"comments", "issue_comment", "contents", "compare", "merges", "archive", "downloads", "issues", "pulls", "milestones", "notifications", "labels", "releases", "deployments"} {
		repo[name+"_url"] = "https://api.github.com/repos/acme/slug/" + name + "{/number}"
	}
	words := bytes.Buffer{}
	for n := 0; words.Len() < payloadSize*2/5; n++ {
		fmt.Fprintf(&words, "Line %d: the slug of %x ends in %d hyphens.\n", n, n*2654435761, n%7)
	}
	data, err := json.Marshal(map[string]any{
		"action": "created", "repository": repo, "organization": repo, "sender": map[string]any{"login": "ada", "id": 7, "type": "User"},
		"installation": map[string]any{"id": 12}, "issue": map[string]any{"number": 1, "title": "A bug", "body": words.String()},
		"comment": map[string]any{"id": 5, "body": "Please.", "user": map[string]any{"login": "ada", "id": 7}},
	})
	if err != nil {
		panic(err) // plain values
	}
	return data
}

// openStore opens a store in a folder of its own.
func openStore(tb testing.TB) *state.Store {
	tb.Helper()
	db, err := boltkv.Open(filepath.Join(tb.TempDir(), "errand.db"), boltkv.Options{})
	check(tb, err)
	tb.Cleanup(func() { check(tb, db.Close()) })
	s, err := state.Open(tb.Context(), db, state.Options{})
	check(tb, err)
	return s
}

// tombstones makes deliveries that came and were spent.
func tombstones(tb testing.TB, s *state.Store, n int) {
	tb.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for next.Add(1) <= int64(n) {
				guid := uuid.NewString()
				if _, err := s.PutDelivery(tb.Context(), state.Delivery{GUID: guid, Event: "push", Payload: []byte("{}")}); err != nil {
					tb.Error(err)
					return
				}
				if err := s.SpendDelivery(tb.Context(), guid); err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}
