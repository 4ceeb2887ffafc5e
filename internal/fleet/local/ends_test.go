package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/remote"
)

// endsAs waits, without a sign of life to the box, until its lock is free.
func endsAs(t *testing.T, p fleet.Provider, name string, want fleet.Reason) fleet.VM {
	t.Helper()
	var vm fleet.VM
	eventually(t, name+" ends", func() bool {
		var err error
		if vm, err = p.Get(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return vm.State == fleet.StateEnded
	})
	if vm.Ended != want {
		t.Errorf("ended as %q (%s), want %q", vm.Ended, vm.Detail, want)
	}
	_, err := p.Create(t.Context(), fleet.Spec{Name: name, Labels: map[string]string{fleet.LabelOwner: "1-2"}})
	if !errors.Is(err, fleet.ErrEnded) {
		t.Errorf("Create of an ended sandbox: got error %v", err)
	}
	return vm
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: the sandbox did not end in time", what)
		}
	}
}

// supervisor finds a box's supervisor, as only a test on this host can.
func supervisor(t *testing.T, log string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte("box-supervise\x00-dir\x00"+filepath.Dir(log))) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	t.Skip("SKIP: no /proc here")
	return 0
}

// withGrowingIdleTimes tries what rests on contact being noticed in time: where a busy machine lets all processes
// wait for longer than the idle time, that says nothing, and a longer idle time is tried.
func withGrowingIdleTimes(t *testing.T, try func(idle time.Duration) error) {
	t.Helper()
	var err error
	for _, idle := range []time.Duration{400 * time.Millisecond, 2 * time.Second, 10 * time.Second} {
		if err = try(idle); err == nil {
			return
		}
		t.Logf("with an idle time of %s: %v", idle, err)
	}
	t.Error("no idle time was long enough")
}

func TestIdleSandboxEnds(t *testing.T) {
	t.Parallel()
	p, _ := newProvider(t, local.KindPlain, func(c *local.Config) { c.IdleExit = 300 * time.Millisecond })
	vm := create(t, p, "idle")
	eventually(t, "box goes", func() bool { _, err := os.Stat(vm.Endpoint.Address); return err != nil })
	endsAs(t, p, "idle", fleet.ReasonIdle)
}

func TestOpenConnectionKeepsASandboxRunning(t *testing.T) {
	t.Parallel()
	withGrowingIdleTimes(t, func(idle time.Duration) error {
		p, signer := newProvider(t, local.KindPlain, func(c *local.Config) { c.IdleExit = idle })
		vm := create(t, p, "connected")
		c, err := remote.Dial(t.Context(), vm.Endpoint, remote.Config{Signer: signer})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		res, err := c.Run(t.Context(), remote.Cmd{Argv: []string{"sleep", fmt.Sprint(3 * idle.Seconds())}})
		if err == nil {
			err = res.Check("sleep")
		}
		return err
	})
}

func TestGetKeepsASandboxRunning(t *testing.T) {
	t.Parallel()
	withGrowingIdleTimes(t, func(idle time.Duration) error {
		p, _ := newProvider(t, local.KindPlain, func(c *local.Config) { c.IdleExit = idle })
		create(t, p, "watched")
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for until := time.Now().Add(3 * idle); time.Now().Before(until); <-tick.C {
			if vm, err := p.Get(t.Context(), "watched"); err != nil || vm.State != fleet.StateRunning {
				return fmt.Errorf("box is %s (%s), error %v", vm.State, vm.Detail, err)
			}
		}
		return nil
	})
}

func TestSupervisorKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			vm := create(t, p, "orphan")
			c := dial(t, vm, signer)
			mark := "errand-mark-" + t.Name()[strings.LastIndexByte(t.Name(), '/')+1:] + strconv.Itoa(os.Getpid())
			run(t, c, "setsid nohup sh -c 'while :; do sleep 1; done' "+mark+" </dev/null >/dev/null 2>&1 &")
			eventually(t, "process starts", func() bool { return processes(t, mark) > 0 })
			if err := syscall.Kill(supervisor(t, vm.Facts[fleet.FactLog]), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the box's processes end", func() bool { return processes(t, mark) == 0 })
			endsAs(t, p, "orphan", fleet.ReasonVanished)
		})
	}
}

func TestFrozenSupervisorIsDeleted(t *testing.T) {
	t.Parallel()
	p, _ := newProvider(t, local.KindPlain, nil)
	vm := create(t, p, "frozen")
	pid := supervisor(t, vm.Facts[fleet.FactLog])
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.Delete(t.Context(), "frozen", fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(t.Context(), "frozen"); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
}

func TestServerKilledFromInside(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p, signer := newProvider(t, kind, nil)
			c := dial(t, create(t, p, "suicide"), signer)
			_, err := c.Run(t.Context(), remote.Cmd{Argv: []string{"sh", "-c", "kill -KILL $PPID; sleep 60"}})
			if !errors.Is(err, remote.ErrConnectionLost) {
				t.Errorf("got error %v", err)
			}
			endsAs(t, p, "suicide", fleet.ReasonCrashed)
		})
	}
}

func TestReadOnlyDirectoriesAreRemoved(t *testing.T) {
	t.Parallel()
	var dir string
	p, signer := newProvider(t, local.KindPlain, func(c *local.Config) { dir = c.Dir })
	c := dial(t, create(t, p, "stubborn"), signer)
	run(t, c, "mkdir -p a/b && touch a/b/c && chmod 555 a/b && mkdir d && chmod 000 d")
	if err := p.Delete(t.Context(), "stubborn", fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "boxes"))
	if err != nil || len(left) != 0 {
		t.Errorf("got %v, error %v, want no VMs", left, err)
	}
}

// TestIncompleteSandboxIsFinished: the orchestrator died after it had written the box and
// before it started its supervisor.
func TestIncompleteSandboxIsFinished(t *testing.T) {
	t.Parallel()
	p, signer := newProvider(t, local.KindPlain, nil)
	vm := create(t, p, "half")
	dir := filepath.Dir(vm.Facts[fleet.FactLog])
	if err := syscall.Kill(supervisor(t, vm.Facts[fleet.FactLog]), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	endsAs(t, p, "half", fleet.ReasonVanished)
	if err := os.Remove(filepath.Join(dir, "started")); err != nil {
		t.Fatal(err)
	}
	if half, err := p.Get(t.Context(), "half"); err != nil || half.State != fleet.StateCreating {
		t.Errorf("got state %s, error %v", half.State, err)
	}
	whole := create(t, p, "half")
	if whole.State != fleet.StateRunning || whole.CreatedAt != vm.CreatedAt {
		t.Errorf("got state %s, created %s", whole.State, whole.CreatedAt)
	}
	if got := run(t, dial(t, whole, signer), "echo up"); got != "up" {
		t.Errorf("got output %q from the sandbox", got)
	}
}

// TestFailedStartIsReported: its record is good, but the inside does not come up.
func TestFailedStartIsReported(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "tools")
	if err := os.Mkdir(missing, 0o700); err != nil {
		t.Fatal(err)
	}
	p, _ := newProvider(t, local.KindBwrap, func(c *local.Config) { c.Binds = []local.Bind{{Path: missing}} })
	if err := os.Remove(missing); err != nil { // after the probe
		t.Fatal(err)
	}
	for range 2 {
		_, err := p.Create(t.Context(), fleet.Spec{Name: "broken"})
		if !errors.Is(err, fleet.ErrEnded) || !strings.Contains(err.Error(), "first process ended") {
			t.Errorf("got error %v", err)
		}
	}
	vm, err := p.Get(t.Context(), "broken")
	if err != nil || vm.State != fleet.StateEnded || vm.Ended != fleet.ReasonCrashed {
		t.Errorf("got VM %s, %s, error %v", vm.State, vm.Ended, err)
	}
}
