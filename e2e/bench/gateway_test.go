package bench

import (
	"bufio"
	"context"
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

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/gitproxy"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/runner/tetherd"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// wire is the way from the ports of VMs to a model's API: the runner's daemon, the multiplexed connection, the gateway,
// and the store in which it reads and writes. It has no SSH.
type wire struct {
	client  *http.Client
	direct  string // the API's address
	vms     []port
	store   *store.Store
	heard   chan struct{} // receives a value when the first event of an answer has arrived
	release chan struct{} // closed to end hanging streams
}

// port is the address of a model's API on a VM, and the token of its run.
type port struct{ through, token string }

// onVMs is the number of VMs on which agents work.
const onVMs = 10

// newWire makes a wire. git is the address from which VMs read their repositories; it may be empty.
func newWire(b *testing.B, git string) *wire {
	b.Helper()
	var tasks []*state.Task
	for n := range onVMs {
		tasks = append(tasks, workingTask(n))
	}
	w := &wire{heard: make(chan struct{}, 1), release: make(chan struct{}), store: storeOf(b, tasks)}
	api := httptest.NewServer(http.HandlerFunc(w.answer))
	b.Cleanup(api.Close)
	transport := forward.NewTransport(0)
	h := tether.New(tether.Config{
		Tasks: w.store, Key: []byte("0123456789abcdef0123456789abcdef"), Log: zerolog.Nop(),
		Gateway: gateway.New(gateway.Config{
			Tasks: w.store, Ledger: booked{w.store}, Journal: w.store.Reservations, ProviderStates: w.store.ProviderStates, Prices: modelapi.DefaultPrices(),
			Providers: map[string]gateway.Provider{"anthropic": {BaseURL: api.URL, Key: "key", Header: "X-Api-Key", API: modelapi.Anthropic}},
			Transport: transport, Log: zerolog.Nop(),
		}),
		Git: gitproxy.New(gitproxy.Config{
			Repository: func(context.Context, *state.Task) (string, string, error) { return git, "token", nil },
			Transport:  transport, Log: zerolog.Nop(),
		}),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	b.Cleanup(func() { cancel(); group.Wait() })
	dirs := attacher{}
	for _, t := range tasks {
		dir, ready := filepath.Join(b.TempDir(), "t"), make(chan tetherd.Status, 1)
		group.Go(func() {
			if err := tetherd.Serve(ctx, tetherd.Config{Dir: dir, Listen: "127.0.0.1:0", Ready: func(s tetherd.Status) { ready <- s }}); err != nil {
				b.Error(err)
			}
		})
		dirs[t.Run.VM] = dir
		w.vms = append(w.vms, port{"http://" + (<-ready).Listen + "/llm/anthropic", h.RunToken(t.Run.ID)})
	}
	keeper := tether.NewKeeper(dirs, h, zerolog.Nop())
	group.Go(func() { _ = keeper.Run(ctx) })
	for _, t := range tasks {
		until(b, "the tether", func() bool {
			return keeper.Ensure(ctx, tether.Peer{VM: t.Run.VM, Task: t.Key}) == nil
		})
	}
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 200}}
	b.Cleanup(w.client.CloseIdleConnections)
	w.direct = api.URL
	return w
}

// attacher attaches to the daemons on this host, by their VMs' names.
type attacher map[string]string

// Attach returns the daemon of a VM.
func (a attacher) Attach(ctx context.Context, vm string) (io.ReadWriteCloser, error) {
	ours, theirs := net.Pipe()
	go func() {
		_ = tetherd.Attach(ctx, a[vm], theirs, theirs)
		_ = theirs.Close()
	}()
	return ours, nil
}

// call asks the API and returns after the first event.
func (w *wire) call(b *testing.B, at port, what string) io.ReadCloser {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, at.through+"/v1/messages", strings.NewReader(conversation(what)))
	check(b, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", at.token)
	res, err := w.client.Do(req)
	check(b, err)
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(res.Body)
		b.Fatalf("status %d: %s", res.StatusCode, said)
	}
	in := bufio.NewReader(res.Body)
	_, err = in.ReadString('\n')
	check(b, err)
	return struct {
		io.Reader
		io.Closer
	}{in, res.Body}
}

// BenchmarkGateway compares calls of a model through tether and gateway with the same ones made directly. In the end it
// checks the booked usage, because figures of a gateway that does not count would be worthless.
func BenchmarkGateway(b *testing.B) {
	for b.Loop() {
		w := newWire(b, "")
		direct := port{through: w.direct}
		d, t := w.firstBytes(b, direct, w.vms[0])
		figure(b, "first byte of an answer to 100 kB, the best of %d rounds of %d calls: direct p50 %s, p99 %s; through tether, gateway and store p50 %s, p99 %s: p99 is %s more (at most 5 ms)", rounds, inRound, d.p50, d.p99, t.p50, t.p99, t.p99-d.p99)
		figure(b, "the complete answer, which ends when its cost is on disk: direct p50 %s, p99 %s; through p50 %s, p99 %s", d.whole50, d.whole99, t.whole50, t.whole99)
		fast, through := w.speed(b, direct), w.speed(b, w.vms[0])
		figure(b, "one stream: direct %.0f MB/s, through %.0f MB/s = %.2f ×; a model gives some kB/s", fast, through, through/fast)
		w.crowd(b)
		for n := range onVMs {
			task, err := w.store.Task(b.Context(), workingTask(n).Key)
			check(b, err)
			if task.Run.Money.InputTokens < 10 || n == 0 && task.Run.Money.InputTokens < rounds*inRound*10 {
				b.Errorf("booked for task %d: %+v", n, task.Run.Money)
			}
		}
	}
}

// crowd measures the memory of a hundred open streams on ten VMs.
func (w *wire) crowd(b *testing.B) {
	b.Helper()
	before := resident(b)
	var open []io.ReadCloser
	for n := range 100 {
		open = append(open, w.call(b, w.vms[n%onVMs], hang))
	}
	figure(b, "100 streams open at once, from %d VMs: %d kB each, including both of their ends and the simulated API", onVMs, (resident(b)-before)/100>>10)
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

// latency holds durations of calls until their first event and until their end.
type latency struct{ p50, p99, whole50, whole99 time.Duration }

// The number of rounds, and of calls in each.
const rounds, inRound = 5, 200

// firstBytes measures two routes in turns and returns the best round of each, because the machine may be busy.
func (w *wire) firstBytes(b *testing.B, one, other port) (best, bestOther latency) {
	b.Helper()
	for n := range rounds {
		l, o := w.firstByte(b, one), w.firstByte(b, other)
		if n == 0 || l.p99 < best.p99 {
			best = l
		}
		if n == 0 || o.p99 < bestOther.p99 {
			bestOther = o
		}
	}
	return best, bestOther
}

// firstByte measures a round.
func (w *wire) firstByte(b *testing.B, at port) latency {
	b.Helper()
	const open = 20 // opens the connections
	var took, whole []time.Duration
	for range open + inRound {
		begun := time.Now()
		in := w.call(b, at, once)
		took = append(took, time.Since(begun))
		w.heard <- struct{}{}
		_, err := io.Copy(io.Discard, in)
		check(b, err)
		check(b, in.Close())
		whole = append(whole, time.Since(begun))
	}
	took, whole = took[open:], whole[open:]
	slices.Sort(took)
	slices.Sort(whole)
	part := func(l []time.Duration, hundredths int) time.Duration {
		return l[len(l)*hundredths/100].Round(10 * time.Microsecond)
	}
	return latency{part(took, 50), part(took, 99), part(whole, 50), part(whole, 99)}
}

// speed measures one long stream, in MB/s.
func (w *wire) speed(b *testing.B, at port) float64 {
	b.Helper()
	begun := time.Now()
	in := w.call(b, at, endless)
	n, err := io.Copy(io.Discard, in)
	check(b, err)
	check(b, in.Close())
	return float64(n) / 1e6 / time.Since(begun).Seconds()
}
