package hetzner_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/settings"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// account is a whole fleet with production's check interval on the simulator, with the latency of the real API. It has
// to be created inside a synctest bubble, whose clock all parts share.
type account struct {
	t       *testing.T
	sim     *simhetzner.Sim
	fleet   *fleet.Fleet
	store   *tasks
	took    simhetzner.Took
	noLogin bool // no VM can be logged into

	mu       sync.Mutex
	contacts map[string]time.Duration // from the intent to the first contact with each VM
	waited   time.Duration            // how long the last VM was usable before
}

// tasks is a store in which every task still has its last VM.
type tasks struct {
	*store.Store
	mu  sync.Mutex
	has map[state.TaskKey]*state.Task
}

// Task implements fleet.Facts.
func (s *tasks) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has[key], nil
}

func (s *tasks) set(key state.TaskKey, server *state.VM, asleep *state.SuspendedWork) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has[key] = &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskVMs: state.TaskVMs{VM: server, Suspended: asleep}}
}

// sshAfter is the time from a server's start until its SSH is usable: the boot of the system.
const sshAfter = 12 * time.Second

func (a *account) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	a.sim.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// Sync implements fleet.Contact.
func (*account) Sync(context.Context, remote.Endpoint) error { return nil }

// HostKey implements fleet.Contact.
func (a *account) HostKey(row vm.Row) (string, error) { return "ssh-ed25519 " + row.Name, nil }

// Greet implements fleet.Contact: the VM can be used as soon as its system is up.
func (a *account) Greet(ctx context.Context, row vm.Row, _ remote.Endpoint, pin func(context.Context, []string) error) ([]string, error) {
	create := a.took.Create
	if row.FromImage {
		create = a.took.FromDisk
	}
	late := time.Since(row.CreatedAt) - create - a.took.Start - sshAfter
	runs := slices.ContainsFunc(a.sim.Objects("server"), func(o simhetzner.Object) bool { return o.Name == row.Name && o.Status == "running" })
	if late < 0 || !runs || a.noLogin {
		return nil, remote.ErrUnreachable
	}
	keys := []string{"ssh-ed25519 new-" + row.Name}
	if err := pin(ctx, keys); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.contacts[row.Name], a.waited = time.Since(row.Intended), a.waited+late
	return keys, nil
}

func newAccount(t *testing.T, took simhetzner.Took, keepAddresses bool, egress string) *account {
	t.Helper()
	a := &account{t: t, took: took, contacts: map[string]time.Duration{}}
	a.sim = simhetzner.New(simhetzner.Config{Took: took, Token: token, KeepAddresses: keepAddresses})
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	noErr(t, "open the database", err)
	st, err := store.Open(t.Context(), db, store.Options{})
	noErr(t, "open the store", err)
	a.store = &tasks{Store: st, has: map[state.TaskKey]*state.Task{}}
	settings := hetzner.DefaultSettings()
	settings.Endpoint, settings.Egress = "http://hetzner.test/v1", egress
	provider, err := hetzner.New(hetzner.Config{
		Settings: settings, Token: token, Deployment: "calls", ClientKey: publicKey(t, 1), HTTP: &http.Client{Transport: a},
	})
	noErr(t, "make the provider", err)
	a.fleet = fleet.New(provider, fleet.Config{
		Deployment: "calls", Rows: a.store.VMs, Store: a.store, Caps: vm.Caps{VMs: 20, PerHour: 100}, Contact: a,
		Candidates: []fleet.Candidate{{Type: "cx43", Location: "fsn1"}, {Type: "cx43", Location: "nbg1"}},
		UserData:   func(vm.Row) ([]byte, error) { return []byte("#cloud-config\n{}\n"), nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- a.fleet.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		a.fleet.Close()
		a.sim.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// calls returns the calls made since an earlier count, by endpoint, without the reapers' lists.
func (a *account) calls(before map[string]int) (byRoute map[string]int, all int) {
	byRoute, _ = a.sim.Counts()
	for route := range byRoute {
		byRoute[route] -= before[route]
		all += byRoute[route]
	}
	passes := byRoute["GET /volumes"] // which only the reapers list
	for _, route := range reaperLists() {
		byRoute[route] -= passes
		all -= passes
	}
	maps.DeleteFunc(byRoute, func(_ string, n int) bool { return n == 0 })
	return byRoute, all
}

func (a *account) apply(server string, kind vm.EventKind) {
	a.t.Helper()
	if _, _, err := a.store.VMs.Apply(a.t.Context(), server, vm.Event{Kind: kind}); err != nil {
		a.t.Error(err)
	}
}

func (a *account) retry(what string, do func() error) {
	a.t.Helper()
	var err error
	for range 10 {
		if err = do(); err == nil {
			return
		}
		time.Sleep(10 * time.Second) // like a job's retry
	}
	a.t.Errorf("%s: %v", what, err)
}

// run simulates a run of the agent, during which errand reads the VM's facts now and then.
func (a *account) run(spec fleet.AcquireSpec, takes time.Duration) fleet.VM {
	a.t.Helper()
	var server fleet.VM
	a.retry("acquire a VM", func() (err error) { server, err = a.fleet.Acquire(a.t.Context(), spec); return err })
	a.store.set(spec.Task, &state.VM{Name: server.Name}, nil)
	a.apply(server.Name, vm.Work)
	for end := time.Now().Add(takes); ; time.Sleep(min(time.Minute, time.Until(end))) {
		if _, err := a.fleet.Get(a.t.Context(), server.Name); err != nil {
			a.t.Error(err)
		}
		if !time.Now().Before(end) {
			break
		}
	}
	a.apply(server.Name, vm.Rest)
	return server
}

// runLife plays the whole life of a task's VM: order, boot, two runs with a rest between them, parking until the end of
// the hour, suspension, and later the restoration to another VM, a last run and the end.
func (a *account) runLife(task state.TaskKey, snapshot bool) {
	a.t.Helper()
	ctx := a.t.Context()
	spec := fleet.AcquireSpec{Task: task, Gen: 1}
	a.run(spec, 10*time.Minute)
	time.Sleep(7 * time.Minute)
	server := a.run(spec, 5*time.Minute)
	row, err := a.store.VMs.Get(ctx, server.Name)
	if err != nil {
		a.t.Error(err)
		return
	}
	time.Sleep(time.Until(fleet.SleepAt(row, time.Now(), fleet.Margin(row.Paid, 5*time.Second, 0))))
	next := fleet.AcquireSpec{Task: task, Gen: 2, FromSleep: server.Name}
	if snapshot {
		a.retry("make a snapshot", func() error {
			img, err := a.fleet.Snapshot(ctx, server.Name)
			next.Image = img.ID
			return err
		})
		next.FromImage = true
		a.store.set(task, nil, &state.SuspendedWork{VM: server.Name, Mode: settings.SleepSnapshot, Ref: next.Image})
	} else {
		a.store.set(task, nil, &state.SuspendedWork{VM: server.Name, Mode: settings.SleepArchive})
	}
	a.retry("release", func() error { return a.fleet.Release(ctx, server.Name, fleet.ReasonAsleep) })
	time.Sleep(2 * time.Hour)
	server = a.run(next, 5*time.Minute)
	if snapshot {
		a.retry("forget the image", func() error { return a.fleet.ForgetImage(ctx, next.Image) })
	}
	time.Sleep(3 * time.Minute)
	a.retry("release", func() error { return a.fleet.Release(ctx, server.Name, fleet.ReasonDone) })
}

// TestRequestsPerVMLifecycle limits the API calls for the whole life of a task at production's check interval: two VMs,
// of which the first is suspended and restored to the second. The reapers' lists, read every five minutes with or
// without VMs, are counted apart. In the first life nothing has been measured yet, and the key, the firewall and the
// prices are read.
//
// The limit is 25 calls. The second life of a snapshot has 16: two orders; two deletions, each with a check by ID that
// the server is gone; a check whether a parked VM still exists; a check whether the VM runs, the shutdown request and
// two checks that it is off, since an image of a running server may be unreadable; the order of the image, a check
// whether it is ready, another one before the restoration, and its deletion; the prices, once an hour.
func TestRequestsPerVMLifecycle(t *testing.T) {
	t.Parallel()
	quick := simhetzner.Took{Create: 9 * time.Second, FromDisk: 41 * time.Second, Start: 5 * time.Second, Image: time.Minute, Shutdown: 5 * time.Second}
	usual := simhetzner.Took{Create: 21 * time.Second, FromDisk: 72 * time.Second, Start: 8 * time.Second, Image: 2 * time.Minute, Delete: 3 * time.Second, Shutdown: 10 * time.Second}
	slow := simhetzner.Took{Create: 41 * time.Second, FromDisk: 153 * time.Second, Start: 16 * time.Second, Image: 200 * time.Second, Delete: 8 * time.Second, Shutdown: 30 * time.Second}
	busy := []simhetzner.Fault{
		{Method: http.MethodDelete, Path: "^/servers/", Code: "locked", Count: 1},
		{Method: http.MethodPost, Path: "/create_image$", Code: "conflict", Count: 1},
		{Method: http.MethodPost, Path: "^/servers$", Code: "conflict", Count: 1},
		{Method: http.MethodGet, Path: "^/images$", Code: "unavailable", Count: 1},
		{Method: http.MethodGet, Path: "^/servers$", Query: "name=", Code: "bad_gateway", Count: 1},
	}
	tests := map[string]struct {
		took     simhetzner.Took
		snapshot bool
		vms      int // at once
		faults   []simhetzner.Fault
		keep     bool   // addresses are not deleted with servers
		egress   string // open unless it is set
		first    int    // maximum calls of the first life
		then     int    // maximum calls of the second
	}{
		"archive, quick":          {took: quick, vms: 1, first: 15, then: 9},
		"archive":                 {took: usual, vms: 1, first: 15, then: 9},
		"archive, slow":           {took: slow, vms: 1, first: 15, then: 10},
		"archive, addresses stay": {took: usual, vms: 1, keep: true, first: 21, then: 15}, // 2 calls to label each, and 1 to read their owner
		"archive, busy server":    {took: usual, vms: 1, faults: busy, first: 21, then: 15},
		"archive, five tasks":     {took: usual, vms: 5, first: 10, then: 9},
		// Two changes of firewalls for a VM without a base image, between two reads of the server, and one more firewall.
		"archive, network closed":  {took: usual, vms: 1, egress: hetzner.EgressTether, first: 25, then: 17},
		"snapshot, network closed": {took: usual, snapshot: true, vms: 1, egress: hetzner.EgressTether, first: 29, then: 21},
		"snapshot, quick":          {took: quick, snapshot: true, vms: 1, first: 23, then: 17},
		"snapshot":                 {took: usual, snapshot: true, vms: 1, first: 23, then: 17},
		"snapshot, slow":           {took: slow, snapshot: true, vms: 1, first: 25, then: 19},
		"snapshot, addresses stay": {took: usual, snapshot: true, vms: 1, keep: true, first: 29, then: 23},
		// Five of the calls are refused. The refused order is first looked up by name, since its answer may have been
		// lost; so is the server to delete.
		"snapshot, busy server": {took: usual, snapshot: true, vms: 1, faults: busy, first: 30, then: 24},
		"snapshot, five tasks":  {took: usual, snapshot: true, vms: 5, first: 18, then: 17},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, test.took, test.keep, cmp.Or(test.egress, hetzner.EgressOpen))
				for round, most := range []int{test.first, test.then} {
					calls := a.runRound(round, test.vms, test.snapshot, test.faults)
					if calls > most {
						t.Errorf("life %d takes %d calls, want %d at most", round+1, calls, most)
					}
				}
				late := a.waited / time.Duration(len(a.contacts))
				took := slices.Sorted(maps.Values(a.contacts))
				t.Logf("first contact after %s to %s, on average %s after it was possible", took[0].Round(time.Second), took[len(took)-1].Round(time.Second), late.Round(100*time.Millisecond))
				if late > 6*time.Second {
					t.Errorf("got delays %s between usable VMs and their use", late)
				}
			})
		})
	}
}

// runRound plays the lives of some tasks that begin at about the same time, and returns the calls per task.
func (a *account) runRound(n, tasks int, snapshot bool, faults []simhetzner.Fault) int {
	a.t.Helper()
	time.Sleep(1700 * time.Millisecond) // so that faults hit the task's calls, not the reapers'
	synctest.Wait()
	for _, f := range faults {
		noErr(a.t, "set a fault", a.sim.Fault(f))
	}
	before, _ := a.sim.Counts()
	var wait sync.WaitGroup
	for i := range tasks {
		wait.Go(func() {
			time.Sleep(time.Duration(i) * 4 * time.Second)
			a.runLife(state.TaskKey{Repo: 7, Issue: 10*n + i + 1}, snapshot)
		})
	}
	wait.Wait()
	synctest.Wait() // an unfinished pass of the reapers would be counted in part
	byRoute, all := a.calls(before)
	calls := (all + tasks - 1) / tasks
	a.t.Logf("life %d: %d calls for two VMs (of %d at once: %s)", n+1, calls, tasks, perRoute(byRoute))
	return calls
}

// reaperLists returns the lists that one pass of the reapers reads.
func reaperLists() []string {
	return []string{
		"GET /servers", "GET /servers", "GET /images", "GET /images", "GET /primary_ips", "GET /volumes", "GET /ssh_keys", "GET /firewalls",
	}
}

func perRoute(calls map[string]int) string {
	var parts []string
	for _, route := range slices.Sorted(maps.Keys(calls)) {
		if calls[route] != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", route, calls[route]))
		}
	}
	return strings.Join(parts, ", ")
}
