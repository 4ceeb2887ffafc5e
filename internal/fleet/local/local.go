// Package local provides VMs on this host, for the demo, the tests and users without a cloud account. A VM is a
// sandbox: bubblewrap if it works, otherwise user namespaces (both with separate files, processes and network),
// otherwise a plain directory without isolation. None of them needs root.
//
// The provider tests which kind works by starting one. Each sandbox is kept by a detached supervisor and therefore
// outlives this process; a new Provider on the same directory finds it again by the supervisor's lock and socket, never
// by a process ID. All data about a sandbox is in its directory.
//
// Start here: [Provider.Create]. Package box runs on the other side.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
)

// Kinds for Config.Kind.
const (
	KindAuto   = "auto"
	KindBwrap  = box.KindBwrap
	KindUserns = box.KindUserns
	KindPlain  = box.KindPlain
)

// tetherPort is the port of the tether's VM side in a sandbox with a separate network.
const tetherPort = 9413

// Bind is a host path that every sandbox may use at the same path.
type Bind = box.Bind

// Bounds limit the host resources that the processes of one sandbox use together.
type Bounds = box.Bounds

// Config is `local:` of the configuration with the deployment's data.
type Config struct {
	// Dir contains the sandboxes (`local.dir`). Other users must not have access to it.
	Dir string
	// Kind is auto or one of the kinds (`local.kind`). Auto selects the best one that works.
	Kind string
	// Runner is the errand-runner binary for this host.
	Runner string
	// ClientKey is the deployment's SSH key, the only one that sandboxes accept.
	ClientKey ssh.PublicKey
	// Deployment is the value of fleet.LabelDeployment.
	Deployment string
	// Binds are host paths visible in isolated sandboxes (`local.binds`), such as a toolchain outside /usr, or a
	// writable shared cache.
	Binds []Bind
	// Path is prepended to the system's directories in a sandbox's PATH.
	Path []string
	// Bounds limit a sandbox's use of this host; zero values are defaults that depend on the host.
	Bounds Bounds
	// IdleExit ends a sandbox after this time without contact (`idle_exit`). Default 15 min.
	IdleExit time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Provider creates sandboxes. It implements [fleet.Provider].
type Provider struct {
	cfg Config

	probing sync.Mutex
	found   *probed // nil until the first probe
}

var _ fleet.Provider = (*Provider)(nil)

// New checks the configuration and prepares the directory. It starts nothing.
func New(cfg Config) (*Provider, error) {
	switch cfg.Kind {
	case "":
		cfg.Kind = KindAuto
	case KindAuto, KindBwrap, KindUserns, KindPlain:
	default:
		return nil, fmt.Errorf("local.kind %q: has to be auto, bwrap, userns or plain", cfg.Kind)
	}
	if cfg.Runner == "" || cfg.ClientKey == nil || cfg.Deployment == "" || cfg.Dir == "" {
		return nil, errors.New("local provider: dir, runner, client key and deployment are needed")
	}
	if cfg.IdleExit <= 0 {
		cfg.IdleExit = 15 * time.Minute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	for _, path := range []*string{&cfg.Dir, &cfg.Runner} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return nil, fmt.Errorf("local provider: %w", err)
		}
		*path = abs
	}
	if err := os.MkdirAll(filepath.Join(cfg.Dir, boxesDir), 0o700); err != nil {
		return nil, fmt.Errorf("local.dir: %w", err)
	}
	return &Provider{cfg: cfg}, nil
}

// Name is "local".
func (p *Provider) Name() string { return "local" }

// Get returns one sandbox and signals its supervisor that errand is alive.
func (p *Provider) Get(ctx context.Context, name string) (fleet.VM, error) {
	if err := fleet.ValidName(name); err != nil {
		return fleet.VM{}, err
	}
	vm, err := p.readSandbox(ctx, p.boxDir(name))
	if err != nil {
		return fleet.VM{}, fmt.Errorf("get VM %s: %w", name, err)
	}
	if vm.Labels[fleet.LabelDeployment] != p.cfg.Deployment {
		return fleet.VM{}, fmt.Errorf("get VM %s: %w", name, fleet.ErrNotFound)
	}
	return vm, nil
}

// List returns all sandboxes of this deployment.
func (p *Provider) List(ctx context.Context) ([]fleet.VM, error) {
	entries, err := os.ReadDir(filepath.Join(p.cfg.Dir, boxesDir))
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	var vms []fleet.VM
	for _, e := range entries {
		if fleet.ValidName(e.Name()) != nil {
			continue // a sandbox in creation or deletion
		}
		vm, err := p.readSandbox(ctx, p.boxDir(e.Name()))
		switch {
		case errors.Is(err, fleet.ErrNotFound):
			continue // deleted meanwhile
		case err != nil:
			return nil, fmt.Errorf("list VMs: %s: %w", e.Name(), err)
		case vm.Labels[fleet.LabelDeployment] == p.cfg.Deployment:
			vms = append(vms, vm)
		}
	}
	return vms, nil
}
