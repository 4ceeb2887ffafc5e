package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/runner/tetherd"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// What the stand-in for a model's API says: a stream of events, as long as anybody listens or for so many.
const (
	streamHead = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"claude-sonnet-5\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
	streamTail = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":20}}\n\n"
)

// wire is the way from a VM's port to a model's API: the runner's daemon, the multiplexed connection, the
// gateway. The SSH between them is left out.
type wire struct {
	client  *http.Client
	direct  string // the API's address
	through string // the same behind the VM's port
	token   string
	release chan struct{} // closed: streams that hang end
}

// thrifty is a ledger without a disk, so that the gateway alone is measured.
type thrifty struct{}

func (thrifty) Spend(context.Context, state.TaskKey, string, state.Money, *state.Waiting) error {
	return nil
}
func (thrifty) Held(context.Context, state.Money, bool) (*state.Waiting, error) { return nil, nil }

// tasks knows one task.
type tasks struct{ t *state.Task }

func (s tasks) Task(context.Context, state.TaskKey) (*state.Task, error) { return s.t, nil }

func newWire(b *testing.B) *wire {
	b.Helper()
	return newWireTo(b, func(*tether.Config) {})
}

// newWireTo is newWire with a gateway that is configured further.
func newWireTo(b *testing.B, change func(*tether.Config)) *wire {
	b.Helper()
	w := &wire{release: make(chan struct{})}
	api := httptest.NewServer(http.HandlerFunc(w.answer))
	b.Cleanup(api.Close)
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 1}, Repo: state.Repo{Owner: "acme", Name: "big"}, Run: &state.Run{ID: "7-1-1", Kind: state.RunImplement, State: state.RunActive, VM: "vm", Model: "claude-sonnet-5"}}
	cfg := tether.Config{
		Tasks: tasks{task}, Key: []byte("0123456789abcdef0123456789abcdef"), Ledger: thrifty{}, Prices: gateway.DefaultPrices(), Log: zerolog.Nop(),
		Models: map[string]tether.Upstream{"anthropic": {BaseURL: api.URL, Key: "key", Header: "X-Api-Key", API: gateway.Anthropic}},
	}
	change(&cfg)
	h := tether.New(cfg)
	dir, ready := filepath.Join(b.TempDir(), "t"), make(chan tetherd.Status, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	b.Cleanup(func() { cancel(); group.Wait() })
	group.Go(func() {
		if err := tetherd.Serve(ctx, tetherd.Config{Dir: dir, Listen: "127.0.0.1:0", Ready: func(s tetherd.Status) { ready <- s }}); err != nil {
			b.Error(err)
		}
	})
	port := (<-ready).Listen
	keeper := tether.NewKeeper(attacher(dir), h, zerolog.Nop())
	group.Go(func() { _ = keeper.Run(ctx) })
	until(b, "the tether", func() bool {
		return keeper.Ensure(ctx, tether.Peer{VM: "vm", Task: task.Key}) == nil
	})
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	b.Cleanup(w.client.CloseIdleConnections)
	w.direct, w.through, w.token = api.URL, "http://"+port+"/llm/anthropic", h.RunToken("7-1-1")
	return w
}

// attacher attaches to a daemon on this host.
type attacher string

// Attach does.
func (a attacher) Attach(ctx context.Context, _ string) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	go func() {
		_ = tetherd.Attach(ctx, string(a), theirs, theirs)
		_ = theirs.Close()
	}()
	return ours, nil
}

// answer is the API: a query ?mb=N streams so much, ?hang stays open until it is released.
func (w *wire) answer(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(rw, streamHead)
	_ = http.NewResponseController(rw).Flush()
	if mb := 0; r.URL.Query().Has("mb") {
		_, _ = fmt.Sscan(r.URL.Query().Get("mb"), &mb)
		event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"" + strings.Repeat("x", 900) + "\"}}\n\n"
		for n := 0; n < mb<<20; n += len(event) {
			if _, err := io.WriteString(rw, event); err != nil {
				return
			}
		}
	}
	if r.URL.Query().Has("hang") {
		select {
		case <-w.release:
		case <-r.Context().Done():
		}
	}
	_, _ = io.WriteString(rw, streamTail)
}

// conversation is a request as an agent sends it in the midst of its work: with all that was said, 100 kB of it.
// The gateway looks for the model in all of it.
func conversation() string {
	said := strings.Repeat(`{"role":"user","content":"func \"main\" is\n\tat {line: 7}"},`, 100_000/55)
	return `{"messages":[` + strings.TrimSuffix(said, ",") + `],"stream":true,"model":"claude-sonnet-5"}`
}

// call asks the API and returns after the first event.
func (w *wire) call(b *testing.B, base, query string) io.ReadCloser {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, base+"/v1/messages?"+query, strings.NewReader(conversation()))
	check(b, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", w.token)
	res, err := w.client.Do(req)
	check(b, err)
	if res.StatusCode != http.StatusOK {
		b.Fatalf("status %d", res.StatusCode)
	}
	in := bufio.NewReader(res.Body)
	_, err = in.ReadString('\n')
	check(b, err)
	return struct {
		io.Reader
		io.Closer
	}{in, res.Body}
}

// BenchmarkGateway compares calls of a model through tether and gateway with the same ones made directly.
func BenchmarkGateway(b *testing.B) {
	for b.Loop() {
		w := newWire(b)
		p50, p99 := w.firstByte(b, w.direct)
		p50t, p99t := w.firstByte(b, w.through)
		figure(b, "first byte of an answer to 100 kB, 500 calls: direct p50 %s, p99 %s; through tether and gateway p50 %s, p99 %s: p99 is %s more (at most 3 ms)", p50, p99, p50t, p99t, p99t-p99)
		direct, through := w.speed(b, w.direct), w.speed(b, w.through)
		figure(b, "one stream: direct %.0f MB/s, through %.0f MB/s = %.2f ×; a model gives some kB/s", direct, through, through/direct)
		before := resident(b)
		var open []io.ReadCloser
		const streams = 16 // as many as a run may have
		for range streams {
			open = append(open, w.call(b, w.through, "hang"))
		}
		figure(b, "%d streams open at once: %d kB each, both of their ends and the stand-in's included", streams, (resident(b)-before)/streams>>10)
		close(w.release)
		for _, in := range open {
			tail, err := io.ReadAll(in)
			check(b, err)
			if !strings.HasSuffix(string(tail), streamTail) {
				b.Errorf("a stream ended with %q", tail)
			}
			check(b, in.Close())
		}
	}
}

// firstByte measures how long calls take until their first event has come.
func (w *wire) firstByte(b *testing.B, base string) (p50, p99 time.Duration) {
	b.Helper()
	var took []time.Duration
	for range 550 {
		begun := time.Now()
		in := w.call(b, base, "")
		took = append(took, time.Since(begun))
		_, err := io.Copy(io.Discard, in)
		check(b, err)
		check(b, in.Close())
	}
	took = took[50:] // connections are open by then
	slices.Sort(took)
	return took[len(took)/2].Round(10 * time.Microsecond), took[len(took)*99/100].Round(10 * time.Microsecond)
}

// speed measures one long stream, in MB/s.
func (w *wire) speed(b *testing.B, base string) float64 {
	b.Helper()
	begun := time.Now()
	in := w.call(b, base, "mb=64")
	n, err := io.Copy(io.Discard, in)
	check(b, err)
	check(b, in.Close())
	return float64(n) / 1e6 / time.Since(begun).Seconds()
}
