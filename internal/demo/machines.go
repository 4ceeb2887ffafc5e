package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// Machines runs sandboxes on this host as the servers of the Hetzner simulator. Each has a separate disk that outlives
// the sandbox: its power can be cut, and a snapshot is a copy of the disk. User data is applied as far as sandboxes
// support it: see applyUserData. Its methods are safe for concurrent use.
type Machines struct {
	provider *local.Provider
	dir      string

	mu sync.Mutex
	at map[netip.Addr]*machine // by public and private address
}

var _ simhetzner.Machines = (*Machines)(nil)

// NewMachines prepares sandboxes of a configuration. Its Dir holds all data; its Deployment and ClientKey are not used.
// Hosts that only have plain sandboxes are refused, because the servers need isolated files.
func NewMachines(ctx context.Context, cfg local.Config) (*Machines, error) {
	m := &Machines{dir: cfg.Dir, at: map[netip.Addr]*machine{}}
	cfg.Dir, cfg.Deployment = filepath.Join(m.dir, "boxes"), "simhetzner"
	if cfg.ClientKey == nil {
		_, public, err := box.NewKey()
		if err != nil {
			return nil, err
		}
		if cfg.ClientKey, err = parseKey(public); err != nil { // not accepted by any sandbox: each has its own key
			return nil, err
		}
	}
	for _, d := range []string{"disks", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(m.dir, d), 0o700); err != nil {
			return nil, fmt.Errorf("create the disks' folder: %w", err)
		}
	}
	var err error
	if m.provider, err = local.New(cfg); err != nil {
		return nil, err
	}
	what, err := m.provider.Describe(ctx)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(box.CommandDir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("this host has no folder %s, which sandboxes that simulate cloud VMs need for a command", box.CommandDir)
	}
	if what.Kind == local.KindPlain {
		return nil, errors.New("this host has no sandboxes with isolated files, which the simulation of cloud VMs needs: install bubblewrap")
	}
	return m, nil
}

// Boot creates a sandbox for a server.
func (m *Machines) Boot(ctx context.Context, spec simhetzner.MachineSpec) (simhetzner.Machine, error) {
	one := &machine{all: m, id: spec.ID, disk: filepath.Join(m.dir, "disks", strconv.FormatInt(spec.ID, 10))}
	if err := one.fill(ctx, spec); err != nil {
		return one, fmt.Errorf("create the disk of server %d: %w", spec.ID, err)
	}
	m.mu.Lock()
	for _, addr := range append([]netip.Addr{spec.IPv4, spec.IPv6}, spec.Private...) {
		if addr.IsValid() {
			m.at[addr] = one
		}
	}
	m.mu.Unlock()
	if !spec.Start {
		return one, nil
	}
	return one, one.Power(ctx, simhetzner.PowerOn)
}

// DeleteDisk deletes a snapshot.
func (m *Machines) DeleteDisk(_ context.Context, handle string) error {
	return os.RemoveAll(m.snapshot(handle))
}

func (m *Machines) snapshot(handle string) string {
	return filepath.Join(m.dir, "snapshots", filepath.Base(handle))
}

// Dial connects to the SSH socket of the server that currently has an address. It implements remote.Config.Dial.
func (m *Machines) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", address, err)
	}
	m.mu.Lock()
	one := m.at[addr.Addr()]
	m.mu.Unlock()
	socket := ""
	if one != nil && addr.Port() == 22 {
		socket = one.listening()
	}
	if socket == "" {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: net.TCPAddrFromAddrPort(addr), Err: syscall.ECONNREFUSED}
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// machine is one server's sandbox and disk.
type machine struct {
	all  *Machines
	id   int64
	disk string

	mu     sync.Mutex
	client ssh.PublicKey // the accepted client key
	socket string        // SSH socket while it runs
	boots  int
	dead   bool // the server has been deleted
}

// name is different for each boot, since a sandbox that has ended cannot be restarted.
func (o *machine) name() string { return fmt.Sprintf("server-%d-%d", o.id, o.boots) }

func (o *machine) listening() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.socket
}

// fill initializes the disk: empty or a copy of a snapshot, with the user data applied.
func (o *machine) fill(ctx context.Context, spec simhetzner.MachineSpec) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := os.RemoveAll(o.disk); err != nil {
		return err
	}
	from := ""
	if spec.Disk != "" {
		from = o.all.snapshot(spec.Disk)
	}
	if err := copyTree(ctx, from, o.disk); err != nil {
		return err
	}
	data, err := parseUserData(spec.UserData, spec.Keys)
	if err != nil {
		return err
	}
	o.client = data.client
	return box.NewDisk(o.disk, data.hostKey)
}

// Power switches the sandbox on or off. A shutdown is as abrupt as a power cut, because processes in a sandbox are not
// notified.
func (o *machine) Power(ctx context.Context, op simhetzner.PowerOp) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if op != simhetzner.PowerOn {
		return o.off(ctx)
	}
	if o.dead {
		return errors.New("the server has been deleted")
	}
	if o.socket != "" {
		return nil
	}
	o.boots++
	vm, err := o.all.provider.CreateOn(ctx, fleet.Spec{Name: o.name()}, local.Disk{Dir: o.disk, ClientKey: o.client})
	if err != nil {
		return err
	}
	o.socket = vm.Endpoint.Address
	return nil
}

// off ends the sandbox and keeps its disk. The caller holds the lock.
func (o *machine) off(ctx context.Context) error {
	if o.boots == 0 {
		return nil
	}
	if err := o.all.provider.Delete(ctx, o.name(), fleet.ReasonOperator); err != nil {
		return err
	}
	o.socket = ""
	return nil
}

// Snapshot copies the disk.
func (o *machine) Snapshot(ctx context.Context) (simhetzner.Disk, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	handle := fmt.Sprintf("%d-%d", o.id, time.Now().UnixNano())
	to := o.all.snapshot(handle)
	if err := copyTree(ctx, o.disk, to); err != nil {
		return simhetzner.Disk{}, errors.Join(err, os.RemoveAll(to))
	}
	size, err := sizeOf(to)
	return simhetzner.Disk{Handle: handle, SizeGB: float32(size) / (1 << 30)}, err
}

// Rebuild replaces the disk and starts the sandbox.
func (o *machine) Rebuild(ctx context.Context, spec simhetzner.MachineSpec) error {
	if err := o.Power(ctx, simhetzner.PowerOff); err != nil {
		return err
	}
	if err := o.fill(ctx, spec); err != nil {
		return fmt.Errorf("create the disk of server %d: %w", o.id, err)
	}
	return o.Power(ctx, simhetzner.PowerOn)
}

// Delete ends the sandbox and releases its address.
func (o *machine) Delete(ctx context.Context) error {
	o.all.mu.Lock()
	for addr, other := range o.all.at {
		if other == o {
			delete(o.all.at, addr)
		}
	}
	o.all.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.off(ctx); err != nil {
		return err
	}
	o.dead = true
	return os.RemoveAll(o.disk)
}

// copyTree copies a directory with its content; without a source it creates an empty one.
func copyTree(ctx context.Context, from, to string) error {
	if from == "" {
		return os.MkdirAll(to, 0o700)
	}
	out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy a disk: %w: %s", err, out)
	}
	return nil
}

// sizeOf returns the total size of a tree's files.
func sizeOf(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
