package simhetzner_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hetznercloud/hcloud-go/v2/hcloud"
	"github.com/hetznercloud/hcloud-go/v2/hcloud/exp/actionutil"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// shelf is a Machines implementation that only records its calls.
type shelf struct {
	broken bool // every boot fails

	mu    sync.Mutex
	did   []string
	specs map[string]simhetzner.MachineSpec
	alive map[string]bool
	disks map[string]bool
}

func newShelf() *shelf {
	return &shelf{specs: map[string]simhetzner.MachineSpec{}, alive: map[string]bool{}, disks: map[string]bool{}}
}

func (s *shelf) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, what)
}

func (s *shelf) Boot(_ context.Context, spec simhetzner.MachineSpec) (simhetzner.Machine, error) {
	s.note("boot " + spec.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.specs[spec.Name], s.alive[spec.Name] = spec, true
	if s.broken {
		return &computer{s, spec.Name}, errors.New("no power")
	}
	return &computer{s, spec.Name}, nil
}

func (s *shelf) DeleteDisk(_ context.Context, handle string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.disks, handle)
	return nil
}

type computer struct {
	shelf *shelf
	name  string
}

func (c *computer) Power(_ context.Context, op simhetzner.PowerOp) error {
	c.shelf.note(string(op) + " " + c.name)
	return nil
}

func (c *computer) Snapshot(context.Context) (simhetzner.Disk, error) {
	c.shelf.note("snapshot " + c.name)
	c.shelf.mu.Lock()
	defer c.shelf.mu.Unlock()
	c.shelf.disks["disk of "+c.name] = true
	return simhetzner.Disk{Handle: "disk of " + c.name, SizeGB: 1.5}, nil
}

func (c *computer) Rebuild(_ context.Context, spec simhetzner.MachineSpec) error {
	c.shelf.note("rebuild " + c.name + " with " + spec.Image)
	return nil
}

func (c *computer) Delete(context.Context) error {
	c.shelf.mu.Lock()
	defer c.shelf.mu.Unlock()
	delete(c.shelf.alive, c.name)
	return nil
}

// withShelf returns a world in real time whose actions are nearly instantaneous.
func withShelf(t *testing.T, s *shelf) *world {
	t.Helper()
	return newWorld(t, func(c *simhetzner.Config) {
		c.Machines, c.Took, c.Now, c.RateLimit = s, simhetzner.Scaled(10_000), time.Now, -1
	})
}

// TestMachinesFollow: actions on servers are also performed on their machines.
func TestMachinesFollow(t *testing.T) {
	t.Parallel()
	s := newShelf()
	w := withShelf(t, s)
	ctx := t.Context()
	sv := w.create(t, "vm-1", func(o *hcloud.ServerCreateOpts) { o.UserData = "#cloud-config\nx: 1\n" })
	spec := s.specs["vm-1"]
	if string(spec.UserData) != "#cloud-config\nx: 1\n" || spec.Image != "ubuntu-24.04" || spec.IPv4.String() != "198.18.0.2" || !spec.Start || spec.Cores != 8 || spec.MemoryMB != 16384 {
		t.Errorf("got boot with %+v", spec)
	}
	for _, do := range []func() (*hcloud.Action, *hcloud.Response, error){
		func() (*hcloud.Action, *hcloud.Response, error) { return w.client.Server.Poweroff(ctx, sv) },
		func() (*hcloud.Action, *hcloud.Response, error) { return w.client.Server.Poweron(ctx, sv) },
	} {
		a, _, err := do()
		if err != nil {
			t.Fatal(err)
		}
		w.wait(t, a)
	}
	made, _, err := w.client.Server.CreateImage(ctx, sv, &hcloud.ServerCreateImageOpts{Type: hcloud.ImageTypeSnapshot})
	if err != nil {
		t.Fatal(err)
	}
	w.wait(t, made.Action)
	image, _, err := w.client.Image.GetByID(ctx, made.Image.ID)
	if err != nil || image.ImageSize != 1.5 {
		t.Errorf("got %+v, %v", image, err)
	}
	w.create(t, "vm-2", func(o *hcloud.ServerCreateOpts) { o.Image = image })
	if spec := s.specs["vm-2"]; spec.Disk != "disk of vm-1" || spec.Image != "" {
		t.Errorf("got restore with %+v", spec)
	}
	w.delete(t, sv)
	if diff := cmp.Diff([]string{"vm-2"}, slices.Sorted(maps.Keys(s.alive))); diff != "" {
		t.Error(diff)
	}
	if _, err := w.client.Image.Delete(ctx, image); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if len(s.alive) != 0 || len(s.disks) != 0 {
		t.Errorf("got remaining machines %v, disks %v", s.alive, s.disks)
	}
	if diff := cmp.Diff([]string{"boot vm-1", "off vm-1", "on vm-1", "snapshot vm-1", "boot vm-2"}, s.did); diff != "" {
		t.Error(diff)
	}
}

// TestBootFails: the action fails, and the server remains, powered off, and can be deleted.
func TestBootFails(t *testing.T) {
	t.Parallel()
	s := newShelf()
	s.broken = true
	w := withShelf(t, s)
	res, _, err := w.client.Server.Create(t.Context(), w.opts("vm-1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.client.Action.WaitFor(t.Context(), actionutil.AppendNext(res.Action, res.NextActions)...); !failedWith(err, "action_failed") {
		t.Errorf("got %v", err)
	}
	if got := w.get(t, res.Server.ID).Status; got != hcloud.ServerStatusOff {
		t.Errorf("got status %s", got)
	}
	w.delete(t, res.Server)
	if len(s.alive) != 0 {
		t.Errorf("got remaining machines: %v", s.alive)
	}
}

// TestServersEndWithoutTheAPI: a server is deleted without the API, and another one shuts down without a request.
func TestServersEndWithoutTheAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sv := w.create(t, "vm-1")
	if !w.WentOff(sv.ID) || w.get(t, sv.ID).Status != hcloud.ServerStatusOff {
		t.Error("the server did not power off")
	}
	if !w.Vanish(sv.ID) || w.get(t, sv.ID) != nil || w.Vanish(sv.ID) || w.WentOff(sv.ID) {
		t.Error("the server still exists")
	}
	if left := w.Objects(""); len(left) != 0 {
		t.Errorf("got remaining objects: %+v", left)
	}
}

// TestManyAtOnce: many concurrent clients, each with a server's life.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simhetzner.Config) {
		c.Took, c.RateLimit = simhetzner.Took{Create: -1, Start: -1, Delete: -1}, -1
	})
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		wg.Go(func() {
			for range 5 {
				res, _, err := w.client.Server.Create(t.Context(), w.opts(name))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := w.client.Server.All(t.Context()); err != nil {
					t.Error(err)
				}
				if _, _, err := w.client.Server.DeleteWithResult(t.Context(), res.Server); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left := w.Objects(""); len(left) != 0 {
		t.Errorf("got remaining objects: %+v", left)
	}
	if got := len(w.Bill().Lines); got != 6*5*3 {
		t.Errorf("got %d lines on the bill", got)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	c := simhetzner.NewClock(start)
	c.Advance(-time.Hour)
	c.Set(start.Add(-time.Hour))
	if got := c.Now(); !got.Equal(start) {
		t.Errorf("got an earlier time %v", got)
	}
	c.Set(start.Add(time.Hour))
	if got := c.Advance(time.Minute); !got.Equal(start.Add(61 * time.Minute)) {
		t.Errorf("got time %v", got)
	}
}

// TestNextEvent: NextEvent returns the time to which a virtual clock can jump.
func TestNextEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, ok := w.NextEvent(); ok {
		t.Error("got an event although nothing was ordered")
	}
	if _, _, err := w.client.Server.Create(t.Context(), w.opts("vm-1")); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		next, ok := w.NextEvent()
		if !ok {
			break
		}
		w.clock.Set(next)
		w.Settle()
	}
	if got := w.Objects("server")[0]; got.Status != "running" || w.clock.Now().Sub(start) != 20*time.Second {
		t.Errorf("got %+v at %v", got, w.clock.Now())
	}
}
