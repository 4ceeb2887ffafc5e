package realcli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/errand-bot/errand/state"
)

// cutFor is the duration of a cut: longer than Claude Code's own retries, about 35 s. The variable ERRAND_TEST_CUT can
// set another duration, such as 5m.
const cutFor = 40 * time.Second

// road is the connection from errand to its VMs, which can be cut.
type road struct {
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func (r *road) dial(ctx context.Context, network, address string) (net.Conn, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, address)
	if err == nil {
		r.conns = append(r.conns, conn)
	}
	return conn, err
}

// cut closes every connection and refuses new ones until heal.
func (r *road) cut() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	for _, c := range r.conns {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
	}
	r.conns = nil
	return nil
}

func (r *road) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
}

// TestHeavyCut separates errand from a real program that waits for the model, for longer than the program itself would
// retry: errand stops and restarts, or the connection is cut. The runner holds the program's requests meanwhile, and
// the same run continues.
func TestHeavyCut(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	type cut struct {
		away func(*life, *road) error
		back func(*life, *road) error
	}
	cuts := map[string]cut{
		"errand restarts": {
			away: func(l *life, _ *road) error { return l.Stop() },
			back: func(l *life, _ *road) error { return l.Start(l.t.Context()) },
		},
		"the connection is cut": {
			away: func(_ *life, r *road) error { return r.cut() },
			back: func(_ *life, r *road) error { r.heal(); return nil },
		},
	}
	var played atomic.Int64
	t.Cleanup(func() {
		if n := played.Load(); n > 0 {
			t.Logf("PROOF: real programs: %d cuts during a call", n)
		}
	})
	for name, p := range programs() {
		for what, c := range cuts {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				r := &road{}
				l := startLife(t, program(t, name), "cut.yaml", func(cfg *demo.Config) {
					cfg.Adapter, cfg.Model = p.adapter, p.model
					cfg.Options = func(o *server.Options) { o.DialVM = r.dial }
				})
				issue := l.assign("Go on", "Whatever happens.")
				check(t, l.Model.Waiting(t.Context(), "gate"))
				before := l.until(issue, "the run", func(t *state.Task) bool { return t.Run != nil && t.VM != nil })
				check(t, c.away(l, r))
				wait(t, cutTime(t))
				check(t, c.back(l, r))
				l.Model.Release("gate")
				after := l.until(issue, "the plan", func(t *state.Task) bool {
					return t.Phase == state.PhaseAwaitingPreliminaryApproval && t.Plans[0].Posted()
				})
				l.wantSameRun(before, after)
				l.wantSameSession(after)
				played.Add(1)
			})
		}
	}
}

// cutTime returns the duration of the cut.
func cutTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("ERRAND_TEST_CUT")
	if text == "" {
		return cutFor
	}
	d, err := time.ParseDuration(text)
	check(t, err)
	return d
}

// wait lets real time pass, because the program in another process uses real time.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// assign opens an issue and assigns it to errand.
func (l *life) assign(title, body string) (number int) {
	l.t.Helper()
	ada := l.GitHub.As(demo.Maintainer)
	i, err := ada.OpenIssue(demo.Full, simgithub.NewIssue{Title: title, Body: body})
	check(l.t, err)
	check(l.t, ada.Assign(demo.Full, i.Number, demo.Machine))
	return i.Number
}

// wantSameRun checks that the earlier run is still the only one, and that its request was held instead of failing.
func (l *life) wantSameRun(before, after *state.Task) {
	l.t.Helper()
	run := after.Runs[0]
	if len(after.Runs) != 1 || run.ID != before.Run.ID || run.Status != "ok" || run.VM != before.VM.Name || after.VM == nil || after.VM.Name != run.VM {
		l.t.Errorf("before: run %s on %s; after: %d runs, the first is %s on %s (%s), VM %+v", before.Run.ID, before.VM.Name, len(after.Runs), run.ID, run.VM, run.Status, after.VM)
	}
	if said := l.botComments(after.Key.Issue); !strings.Contains(said, "It went on where it had stopped.") {
		l.t.Errorf("got comments:\n%s", said)
	}
	var asked []simmodel.Record
	for _, r := range l.Model.Requests() {
		if r.Rule == "plan" && r.Turn == 1 {
			asked = append(asked, r)
		}
	}
	if n := len(asked); n != 2 || asked[0].Status == 200 || asked[1].Status != 200 {
		l.t.Errorf("the interrupted request reached the model %d times, want 1: %+v", n, statuses(asked))
	}
	log, err := os.ReadFile(filepath.Join(l.dir, "data", "transcripts", run.ID+".jsonl"))
	check(l.t, err)
	retries := strings.Count(string(log), `"kind":"retry"`)
	l.t.Logf("%d attempts by the program itself", retries)
	if retries > 3 {
		l.t.Errorf("the program tried %d times: its requests were not held", retries)
	}
}

// wantSameSession approves the plan and checks that the next step continues the interrupted session.
func (l *life) wantSameSession(planned *state.Task) {
	l.t.Helper()
	_, err := l.GitHub.As(demo.Maintainer).Comment(demo.Full, planned.Key.Issue, "@errand approve")
	check(l.t, err)
	after := l.until(planned.Key.Issue, "the next plan", func(t *state.Task) bool { return t.Phase == state.PhaseAwaitingPlanApproval })
	first, last := after.Runs[0], after.Runs[len(after.Runs)-1]
	if len(after.Runs) != 2 || first.Session == "" || last.Session != first.Session || last.Repeat != "" || last.Status != "ok" {
		l.t.Errorf("got %d runs; session %q after %q, %s, repeated because of %q", len(after.Runs), last.Session, first.Session, last.Status, last.Repeat)
	}
	for _, r := range l.Model.Requests() {
		if r.Rule == "next plan" && !bytes.Contains(r.Body, []byte("It went on where it had stopped.")) {
			l.t.Errorf("the program's request in the next step lacks the conversation of the first: %.2000s", r.Body)
		}
	}
}

func statuses(records []simmodel.Record) (out []int) {
	for _, r := range records {
		out = append(out, r.Status)
	}
	return out
}
