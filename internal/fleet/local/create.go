package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

const (
	// upTimeout limits the start of a sandbox.
	upTimeout = 20 * time.Second
	upPoll    = 5 * time.Millisecond
)

// Create creates a sandbox and returns when its SSH server serves, or adopts the existing one of that name. It ignores
// Spec.Image, because sandboxes use the host's programs, and does not enforce Spec.Needs.
func (p *Provider) Create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	return p.CreateOn(ctx, spec, Disk{})
}

// Disk is the initial disk of a sandbox that simulates a cloud VM.
type Disk struct {
	// Dir contains its home and host key and outlives the sandbox; see box.NewDisk. Only one sandbox may use it at a
	// time.
	Dir string
	// ClientKey is accepted instead of the deployment's.
	ClientKey ssh.PublicKey
}

// CreateOn is Create for a sandbox on a separate disk. The zero Disk means none. An existing sandbox is adopted
// whatever its disk.
func (p *Provider) CreateOn(ctx context.Context, spec fleet.Spec, disk Disk) (fleet.VM, error) {
	vm, err := p.create(ctx, spec, disk)
	if err != nil {
		return fleet.VM{}, fmt.Errorf("create VM %s: %w", spec.Name, err)
	}
	return vm, nil
}

func (p *Provider) create(ctx context.Context, spec fleet.Spec, disk Disk) (fleet.VM, error) {
	if err := fleet.ValidName(spec.Name); err != nil {
		return fleet.VM{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	unlock, err := p.lockName(ctx, spec.Name)
	if err != nil {
		return fleet.VM{}, err
	}
	defer unlock()
	dir := p.boxDir(spec.Name)
	vm, err := p.readSandbox(ctx, dir)
	if errors.Is(err, fleet.ErrNotFound) {
		if err = p.writeBox(ctx, spec, disk, dir); err == nil {
			vm, err = p.readSandbox(ctx, dir)
		}
	}
	if err != nil {
		return fleet.VM{}, err
	}
	if err := p.checkMatchesSpec(vm, spec); err != nil {
		return fleet.VM{}, err
	}
	switch vm.State {
	case fleet.StateEnded:
		return fleet.VM{}, fmt.Errorf("%w: %s: %s", fleet.ErrEnded, vm.Ended, vm.Detail)
	case fleet.StateCreating:
		err = p.launch(ctx, dir)
	default:
		err = p.awaitReady(ctx, dir, nil)
	}
	if err != nil {
		return fleet.VM{}, err
	}
	return p.readSandbox(ctx, dir)
}

// lockName locks a name for creation and deletion, across processes.
func (p *Provider) lockName(ctx context.Context, name string) (unlock func(), err error) {
	dir := filepath.Join(p.cfg.Dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(dir, name))
	if _, err := lock.TryLockContext(ctx, upPoll); err != nil {
		return nil, fmt.Errorf("wait for another operation on the same sandbox: %w", err)
	}
	return func() { _ = lock.Close() }, nil
}

// checkMatchesSpec returns an error if an existing sandbox does not match the spec.
func (p *Provider) checkMatchesSpec(vm fleet.VM, spec fleet.Spec) error {
	want := p.labels(spec)
	for key, value := range want {
		if vm.Labels[key] != value {
			return fmt.Errorf("%w: label %s is %q, not %q", fleet.ErrNameTaken, key, vm.Labels[key], value)
		}
	}
	return nil
}

func (p *Provider) labels(spec fleet.Spec) map[string]string {
	labels := map[string]string{}
	for key, value := range spec.Labels {
		labels[key] = value
	}
	labels[fleet.LabelDeployment] = p.cfg.Deployment
	return labels
}

// writeBox atomically creates a sandbox's directory.
func (p *Provider) writeBox(ctx context.Context, spec fleet.Spec, disk Disk, dir string) error {
	kind, err := p.probeKind(ctx)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), newPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	rec := p.newRecord(kind.kind)
	rec.Name, rec.Labels = spec.Name, p.labels(spec)
	if rec.Disk = disk.Dir; disk.Dir == "" {
		rec.HostKey, err = newHostKey(box.HostKeyPath(tmp))
	} else {
		rec.ClientKey = authorizedKey(disk.ClientKey)
		rec.HostKey, err = box.DiskHostKey(disk.Dir)
	}
	if err != nil {
		return err
	}
	rec.CreatedAt = p.cfg.Now().UTC()
	if rec.SSHSocket, rec.ControlSocket, err = socketPaths(dir); err != nil {
		return err
	}
	if kind.kind == KindPlain {
		if rec.TetherPort, err = p.freePort(); err != nil {
			return err
		}
	}
	for _, d := range []string{box.HomePath(tmp), box.TmpPath(tmp)} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := os.WriteFile(box.LockPath(tmp), nil, 0o600); err != nil {
		return err
	}
	if err := box.WriteRecord(tmp, rec); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}

// newRecord returns the common fields of all sandboxes of this provider.
func (p *Provider) newRecord(kind string) box.Record {
	return box.Record{
		Kind: kind, ClientKey: authorizedKey(p.cfg.ClientKey), TetherPort: tetherPort,
		Runner: p.cfg.Runner, Path: p.cfg.Path, Binds: p.cfg.Binds, Bounds: p.cfg.Bounds, IdleExit: p.cfg.IdleExit,
	}
}

// Ports below those that the kernel gives to programs that ask for any (from 32768 on Linux) and to outgoing connections. The sandbox opens
// its port later, and would often find one of those in use.
const firstPort, lastPort = 10_000, 32_767

// freePort chooses a loopback port that is unused and assigned to no sandbox.
func (p *Provider) freePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("choose a port for the tether: %w", err)
		}
		_ = ln.Close()
		taken, err := p.portTaken(port)
		if err != nil || !taken {
			return port, err
		}
	}
	return 0, errors.New("choose a port for the tether: every one tried is in use")
}

func (p *Provider) portTaken(port int) (bool, error) {
	entries, err := os.ReadDir(filepath.Join(p.cfg.Dir, boxesDir))
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		if rec, err := box.ReadRecord(p.boxDir(e.Name())); err == nil && rec.TetherPort == port {
			return true, nil
		}
	}
	return false, nil
}
