package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// TestWebhookBenchmark runs the parts of BenchmarkWebhook for a moment, so that a defect in it is noticed.
func TestWebhookBenchmark(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{thrownAway, durable} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			benchmarkBriefly(t, mode)
		})
	}
	t.Run("wrk", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("wrk"); err != nil {
			t.Skip("skipped: wrk is not installed")
		}
		dir := t.TempDir()
		s := startServer(t, serverCommand(t, durable, dir))
		res := wrk(t, s.addr, time.Second)
		s.stop(t)
		wantStored(t, dir, max(res.Answered, 1), res.Answered+connections)
	})
}

// TestHeavyWebhookBenchmark is TestWebhookBenchmark with Probot, which `make probot` installs.
func TestHeavyWebhookBenchmark(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	benchmarkBriefly(t, probot)
}

func benchmarkBriefly(t *testing.T, mode string) {
	t.Helper()
	dir := t.TempDir()
	s := startServer(t, serverCommand(t, mode, dir))
	if res := sendSome(t, s.addr, time.Minute, 50); res.Answered != 50 || res.PerSecond <= 0 || res.P50 <= 0 || res.P99 < res.P50 {
		t.Errorf("outcome %+v, want 50 webhooks answered", res)
	}
	s.stop(t)
	if mode == durable {
		wantStored(t, dir, 50, 50)
	}
}

// contender is a server to measure.
type contender struct {
	mode    string
	known   int // deliveries in its store
	results []measured
}

// measured is one round of a contender: its webhooks, and the server's CPU time for each.
type measured struct {
	outcome
	cpu time.Duration
}

// BenchmarkWebhook compares how fast webhooks are stored and answered with go-githubapp's dispatcher, which discards
// them, and with Probot. Servers and clients are separate processes. The servers take turns, so that other programs on
// this machine disturb all of them alike, and each ratio is the median of the rounds.
func BenchmarkWebhook(b *testing.B) {
	clients := map[string]client{"own-client": ownClient, "wrk": wrk}
	for _, place := range []string{"memory", "disk"} {
		for _, name := range []string{"own-client", "wrk"} {
			b.Run(place+"/"+name, func(b *testing.B) {
				if _, err := exec.LookPath("wrk"); name == "wrk" && err != nil {
					b.Skip("skipped: wrk is not installed")
				}
				root := storeFolder(b, place)
				for b.Loop() {
					compareServers(b, clients[name], root, fmt.Sprintf("client: %s; store in %s, where a write with sync takes %s", name, place, syncTime(b, root)))
				}
			})
		}
	}
}

// storeFolder returns a directory for stores that is deleted in the end.
func storeFolder(b *testing.B, place string) string {
	b.Helper()
	if place != "memory" {
		return b.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "errand-bench-")
	if err != nil {
		b.Skipf("skipped: no file system in memory: %v", err)
	}
	b.Cleanup(func() { check(b, os.RemoveAll(dir)) })
	return dir
}

// compareServers measures every server in each round and prints the figures.
func compareServers(b *testing.B, send client, root, how string) {
	b.Helper()
	noop, other := &contender{mode: thrownAway}, &contender{mode: probot}
	list := []*contender{noop, {mode: durable}, {mode: durable, known: 50_000}}
	if reason := noProbot(); reason != "" {
		b.Logf("Probot is not measured: %s", reason)
	} else {
		list = append(list, other)
	}
	const rounds = 3
	for range rounds {
		for _, c := range list {
			c.results = append(c.results, c.measure(b, send, root))
		}
	}
	for _, c := range list {
		line := fmt.Sprintf("webhooks of 12 kB over %d connections, %s, %s: %.0f/s, %s of CPU for each, p50 %s, p99 %s", connections, how, c.mode,
			c.median(func(m measured) float64 { return m.PerSecond }),
			micros(c.median(func(m measured) float64 { return float64(m.cpu) })),
			micros(c.median(func(m measured) float64 { return float64(m.P50) })),
			micros(c.median(func(m measured) float64 { return float64(m.P99) })))
		if c.mode == durable {
			line += fmt.Sprintf(" (at most 50 ms), %d deliveries known; %.2f × discarding them (at least 0.6 ×)", c.known, c.ratio(noop))
			if len(other.results) > 0 {
				line += fmt.Sprintf(", %.2f × Probot (at least 2 ×)", c.ratio(other))
			}
		}
		figure(b, "%s", line)
	}
}

// measure measures one round with a new server and store. In the end the store must have all webhooks that were
// answered.
func (c *contender) measure(b *testing.B, send client, root string) measured {
	b.Helper()
	const warmUp, within = time.Second, 4 * time.Second
	dir, err := os.MkdirTemp(root, "store-")
	check(b, err)
	prepareStore(b, root, dir, c.known)
	s := startServer(b, serverCommand(b, c.mode, dir))
	before := send(b, s.addr, warmUp).Answered
	cpu := s.cpu(b)
	res := send(b, s.addr, within)
	cpu = s.cpu(b) - cpu
	s.stop(b)
	if c.mode == durable {
		wantStored(b, dir, before+res.Answered, before+res.Answered+2*connections)
	}
	check(b, os.RemoveAll(dir))
	return measured{res, cpu / time.Duration(res.Answered)}
}

func micros(ns float64) time.Duration { return time.Duration(ns).Round(time.Microsecond) }

// median returns the median of a value over the rounds.
func (c *contender) median(value func(measured) float64) float64 {
	var list []float64
	for _, m := range c.results {
		list = append(list, value(m))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// ratio returns the median of the rounds' ratios of speed.
func (c *contender) ratio(to *contender) float64 {
	var list []float64
	for i, m := range c.results {
		list = append(list, m.PerSecond/to.results[i].PerSecond)
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// syncTime returns the median time of a write of 4 kB with sync; the disk's share of a commit is about twice that.
func syncTime(b *testing.B, dir string) time.Duration {
	b.Helper()
	file, err := os.Create(filepath.Join(dir, "sync"))
	check(b, err)
	defer file.Close()
	page := make([]byte, 4<<10)
	var took []time.Duration
	for range 200 {
		begun := time.Now()
		_, err := file.WriteAt(page, 0)
		check(b, err)
		check(b, file.Sync())
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2].Round(time.Microsecond)
}

// prepareStore creates a store in dir with the given number of spent deliveries. It is filled once and copied
// afterwards.
func prepareStore(b *testing.B, root, dir string, known int) {
	b.Helper()
	if known == 0 {
		return
	}
	template := filepath.Join(root, "template.db")
	if _, err := os.Stat(template); err != nil {
		db, err := boltkv.Open(template, boltkv.Options{})
		check(b, err)
		s, err := store.Open(b.Context(), db, store.Options{})
		check(b, err)
		tombstones(b, s, known)
		check(b, db.Close())
	}
	data, err := os.ReadFile(template)
	check(b, err)
	check(b, os.WriteFile(filepath.Join(dir, "errand.db"), data, 0o600))
}

// wantStored checks that the store in dir has as many waiting deliveries as were answered. A client that stops early
// may have missed the last answers.
func wantStored(tb testing.TB, dir string, least, most int) {
	tb.Helper()
	db, err := boltkv.Open(filepath.Join(dir, "errand.db"), boltkv.Options{})
	check(tb, err)
	defer func() { check(tb, db.Close()) }()
	n := 0
	check(tb, db.Scan(tb.Context(), "due/inbox/", "", 0, func(kv.Pair) error { n++; return nil }))
	if n < least || n > most {
		tb.Errorf("got %d stored deliveries, want %d to %d", n, least, most)
	}
	s, err := store.Open(tb.Context(), db, store.Options{})
	check(tb, err)
	first, err := s.PendingDeliveries(tb.Context(), 1)
	check(tb, err)
	if len(first) != 1 || !bytes.Equal(first[0].Payload, payload()) {
		tb.Errorf("the first of %d stored deliveries differs from the one sent", n)
	}
}

// figure prints a figure and the one it is compared to.
func figure(b *testing.B, format string, args ...any) {
	b.Helper()
	b.Logf("figure: "+format, args...)
}

// tombstones returns spent deliveries.
func tombstones(tb testing.TB, s *store.Store, n int) {
	tb.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for next.Add(1) <= int64(n) {
				guid := uuid.NewString()
				if _, err := s.PutDelivery(tb.Context(), store.Delivery{GUID: guid, Event: "push", Payload: []byte("{}")}); err != nil {
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
