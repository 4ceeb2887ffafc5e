package leak_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

const deployment = "leak"

var errKilled = errors.New("errand was killed")

// chances are probabilities of failures, per thousand calls.
type chances struct {
	kill   int // before or after a request or a commit
	lost   int // an answer, after the effect
	failed int // a request, before any effect
	late   int // an order is executed up to 40 minutes later and answered with an error
	lie    int // a false answer about servers or images
	twin   int // an order is executed twice
	deaf   int // a VM ignores a shutdown
}

// world is a deployment with a simulated cloud and a random number generator.
type world struct {
	t     *testing.T
	sim   *simhetzner.Sim
	clock *simhetzner.Clock
	store *taskStore
	fleet *fleet.Fleet
	blind bool // look-ups by name find nothing
	reuse bool // VMs of ended tasks are kept as standby VMs
	lacks []fleet.Safeguard

	unreachable bool // no VM can be logged into for a sync

	mu      sync.Mutex
	dice    *rand.Rand
	odds    chances
	dead    bool
	counts  map[string]int
	until   time.Time // the end of the current run
	process context.Context
	kill    context.CancelFunc
	greet   func(remote.Endpoint) // called before a first contact, if set

	worked  map[string]time.Time // time of the last start of a run, by VM
	letting map[string]bool      // VMs and images that tasks have released
	ran     map[string]string    // the server of a VM's runs
	rumors  map[string]rumors    // false answers, by servers/ID or images/ID
	wrongs  []string             // errand's wrong actions
}

func newWorld(t *testing.T, seed uint64, odds chances) *world {
	t.Helper()
	w := &world{
		t: t, clock: simhetzner.NewClock(time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)), odds: odds, reuse: true,
		dice: rand.New(rand.NewPCG(seed, 1)), counts: map[string]int{},
		worked: map[string]time.Time{}, letting: map[string]bool{}, ran: map[string]string{}, rumors: map[string]rumors{},
	}
	w.sim = simhetzner.New(simhetzner.Config{Now: w.clock.Now, RateLimit: -1})
	t.Cleanup(w.sim.Close)
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	real, err := store.Open(context.Background(), db, store.Options{Now: w.clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.store = &taskStore{Store: real, tasks: map[state.TaskKey]*state.Task{}}
	return w
}

// start starts the process, for the first time or after a kill.
func (w *world) start() {
	w.t.Helper()
	w.mu.Lock()
	w.dead = false
	w.process, w.kill = context.WithCancel(context.Background())
	w.mu.Unlock()
	settings := hetzner.DefaultSettings()
	settings.Endpoint = "http://hetzner.test/v1"
	if w.reuse { // VMs whose network was closed are not reused without a base image
		settings.Egress = hetzner.EgressOpen
	}
	key, err := ssh.NewPublicKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)).Public())
	if err != nil {
		w.t.Fatal(err)
	}
	provider, err := hetzner.New(hetzner.Config{
		Settings: settings, Token: "x", Deployment: deployment, ClientKey: key, Now: w.clock.Now, HTTP: &http.Client{Transport: w}, Sleep: w.sleep,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.fleet != nil {
		w.fleet.Close()
	}
	w.fleet = fleet.New(provider, fleet.Config{
		Deployment: deployment, Rows: &rows{w.store.VMs, w}, Store: w.store, Caps: vm.Caps{VMs: 4, PerHour: 200}, Contact: contact{w}, Now: w.clock.Now, Sleep: w.sleep,
		Candidates: []fleet.Candidate{{Type: "cx43", Location: "fsn1"}, {Type: "cx43", Location: "nbg1"}, {Type: "cpx42"}},
		UserData:   func(row vm.Row) ([]byte, error) { return []byte("#cloud-config\n# " + row.Name + "\n"), nil },
		Pool:       fleet.Pool{Reuse: w.reuse}, DisabledSafeguards: w.lacks, Tick: 20 * time.Second,
	})
}

// sleep advances the clock without waiting.
func (w *world) sleep(ctx context.Context, d time.Duration) error {
	w.clock.Advance(max(d, time.Second))
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return errKilled
	}
	if !w.until.IsZero() && !w.clock.Now().Before(w.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// contextFor returns a context that ends after a duration by the virtual clock.
func (w *world) contextFor(d time.Duration) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.until = w.clock.Now().Add(d)
	return w.process
}

// chance returns true with a probability in thousandths.
func (w *world) chance(perMille int, what string) bool {
	if w.dice.IntN(1000) >= perMille {
		return false
	}
	w.counts[what]++
	return true
}

// maybeKill kills the process at random. A dead process has no effects.
func (w *world) maybeKill(where string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dead && w.chance(w.odds.kill, "killed "+where) {
		w.dead = true
		w.kill()
	}
	if w.dead {
		return errKilled
	}
	return nil
}

// RoundTrip sends a request to the simulated cloud.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := w.maybeKill("before a request"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	failed, lost := w.chance(w.odds.failed, "request failed"), w.chance(w.odds.lost, "answer lost")
	order := r.Method == http.MethodPost && r.URL.Path == "/v1/servers"
	late := time.Duration(0)
	if order && w.chance(w.odds.late, "order late") {
		late = time.Minute + time.Duration(w.dice.Int64N(int64(40*time.Minute)))
	}
	lie, lies := w.drawFalseAnswer(r)
	twin := order && late == 0 && w.chance(w.odds.twin, "twin made")
	w.mu.Unlock()
	w.judgeRequest(r)
	switch {
	case failed:
		return nil, io.ErrUnexpectedEOF
	case late > 0:
		if err := w.sim.Fault(simhetzner.Fault{Method: http.MethodPost, Path: "^/servers$", Count: 1, Late: late, Code: "server_error"}); err != nil {
			return nil, err
		}
	case lies:
		if err := w.sim.Fault(lie); err != nil {
			return nil, err
		}
	}
	r = w.hideServer(r)
	if r.Body == nil { // as a server receives it
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	var before simhetzner.Object
	var there bool
	if one := oneOfThem.FindStringSubmatch(r.URL.Path); one != nil {
		before, there = w.object(strings.TrimSuffix(one[1], "s"), one[2])
	}
	rec := httptest.NewRecorder()
	w.sim.ServeHTTP(rec, r)
	if late > 0 || lies {
		w.sim.ClearFaults()
	}
	if servers := w.sim.Objects("server"); twin && rec.Code == http.StatusCreated {
		w.sim.Twin(servers[len(servers)-1].ID)
	}
	if err := w.maybeKill("after a request"); err != nil {
		return nil, err
	}
	if lost {
		return nil, io.ErrUnexpectedEOF
	}
	w.heard(r, rec.Code, rec.Body.Bytes(), before, there)
	return rec.Result(), nil
}

// contact replaces the first login, because the simulated VMs have no SSH.
type contact struct{ w *world }

func (contact) HostKey(row vm.Row) (string, error) { return "ssh-ed25519 first-" + row.Name, nil }

func (c contact) Greet(ctx context.Context, row vm.Row, e remote.Endpoint, pin func(context.Context, []string) error) ([]string, error) {
	runs := slices.ContainsFunc(c.w.sim.Objects("server"), func(o simhetzner.Object) bool { return e.Address == o.IP+":22" && o.Status == "running" })
	if !runs {
		return nil, remote.ErrUnreachable
	}
	c.w.judgeGreeting(row, e)
	key := "ssh-ed25519 second-" + row.Name
	if c.w.greet != nil {
		c.w.greet(e)
	}
	if err := pin(ctx, []string{"ssh-ed25519 first-" + row.Name, key}); err != nil {
		return nil, err
	}
	return []string{key}, c.w.maybeKill("after a first contact")
}

// Sync marks the disk of the server with an address as written.
func (c contact) Sync(_ context.Context, ep remote.Endpoint) error {
	if err := c.w.maybeKill("before a sync"); err != nil {
		return err
	}
	c.w.mu.Lock()
	deaf := c.w.unreachable
	c.w.mu.Unlock()
	if deaf {
		return remote.ErrUnreachable
	}
	for _, o := range c.w.sim.Objects("server") {
		if o.IP+":22" == ep.Address && c.w.sim.Synced(o.ID) {
			return c.w.maybeKill("after a sync")
		}
	}
	return fmt.Errorf("%w: no server has the address %s", remote.ErrUnreachable, ep.Address)
}

// taskStore is the real store, with tasks that the test keeps.
type taskStore struct {
	*store.Store
	tasks map[state.TaskKey]*state.Task
}

// rows are the real rows, with a possible kill around each commit.
type rows struct {
	*vm.Rows
	w *world
}

func (s *rows) Intend(ctx context.Context, in vm.Intent, caps vm.Caps) (vm.Row, error) {
	if err := s.w.maybeKill("before an intent"); err != nil {
		return vm.Row{}, err
	}
	row, err := s.Rows.Intend(ctx, in, caps)
	return row, errors.Join(err, s.w.maybeKill("after an intent"))
}

func (s *rows) Apply(ctx context.Context, name string, e vm.Event) (vm.Row, bool, error) {
	if err := s.w.maybeKill("before an event"); err != nil {
		return vm.Row{}, false, err
	}
	ctx = context.WithoutCancel(ctx)
	before, _ := s.Get(ctx, name)
	row, changed, err := s.Rows.Apply(ctx, name, e)
	if changed {
		s.w.judgeEvent(before, row, e)
	}
	return row, changed, errors.Join(err, s.w.maybeKill("after an event"))
}

func (s *taskStore) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	return s.tasks[key], nil
}

// leakedResources lists unexpected and missing objects in the cloud.
func (w *world) leakedResources() (problems []string) {
	servers, images := map[string]bool{}, map[string]bool{}
	for key, task := range w.store.tasks {
		if task.VM != nil {
			servers[task.VM.Name] = true
		}
		if a := task.Suspended; a != nil {
			images[a.Ref] = true
		}
		if want := task.Phase == state.PhaseImplementing; want && task.VM == nil && task.Suspended == nil {
			problems = append(problems, fmt.Sprintf("task %s did not get a VM", key))
		}
	}
	for _, o := range w.sim.Objects("") {
		switch o.Kind {
		case "server":
			if !servers[o.Name] {
				problems = append(problems, fmt.Sprintf("server %d %s (%s) belongs to no task", o.ID, o.Name, o.Status))
			}
			delete(servers, o.Name)
		case "image":
			if o.Inconsistent {
				problems = append(problems, fmt.Sprintf("image %d %s may be unreadable", o.ID, o.Name))
			}
			if !images[fmt.Sprint(o.ID)] {
				problems = append(problems, fmt.Sprintf("image %d %s belongs to no task", o.ID, o.Name))
			}
			delete(images, fmt.Sprint(o.ID))
		case "primary_ip":
			if o.Server == 0 {
				problems = append(problems, fmt.Sprintf("address %d belongs to no server", o.ID))
			}
		case "ssh_key", "firewall":
		default:
			problems = append(problems, fmt.Sprintf("%s %d", o.Kind, o.ID))
		}
	}
	for name := range servers {
		problems = append(problems, "server "+name+" is missing")
	}
	for id := range images {
		problems = append(problems, "image "+id+" is missing")
	}
	for kind, most := range map[string]int{"ssh_key": 1, "firewall": 2} {
		if n := len(w.sim.Objects(kind)); n > most {
			problems = append(problems, fmt.Sprintf("%d of kind %s", n, kind))
		}
	}
	return problems
}

// storeProblems lists errors in the store, and rows that contradict the tasks.
func (w *world) storeProblems() []string {
	ctx := context.Background()
	problems, err := w.store.Check(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	rows, err := w.store.VMs.List(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for _, row := range rows {
		task := w.store.tasks[row.Task]
		switch {
		case row.Phase == vm.Gone:
		case task != nil && task.VM != nil && task.VM.Name == row.Name:
		case row.Phase == vm.Asleep && task != nil && task.Suspended != nil && task.Suspended.Ref == row.Snapshot:
		default:
			problems = append(problems, fmt.Sprintf("row %s is %s (%s), but belongs to no task", row.Name, row.Phase, strings.TrimSpace(string(row.EndReason)+" "+row.Detail)))
		}
	}
	return problems
}
