// Package local provides VMs on this host, for the demo, the tests and people
// without a cloud account. A VM is a box: bubblewrap where it works (own files,
// processes and network), else user namespaces (own processes and network), else
// a plain directory (no isolation at all). None of them needs root.
//
// Which kind works is found by starting one, not by looking for files. A box is
// kept by a detached supervisor of its own and therefore outlives this process; a
// new Provider on the same directory finds it again by the lock that the
// supervisor holds and the socket on which it answers, never by a process id.
// Everything that is known about a box is in its directory.
//
// Start reading at Provider.Create; package box is what runs on the other side.
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

// tetherPort is where the tether's end listens in a box with a network of its own.
const tetherPort = 9413

// Bind is a host path that every box may use at the same path.
type Bind = box.Bind

// Bounds are what the processes of one box may use of the host together.
type Bounds = box.Bounds

// Config is `local:` of the configuration, with what the deployment adds.
type Config struct {
	// Dir holds the boxes (`local.dir`). It has to be ours alone.
	Dir string
	// Kind is auto or one of the kinds (`local.kind`). Auto takes the best that works.
	Kind string
	// Runner is the errand-runner binary for this host.
	Runner string
	// ClientKey is the deployment's SSH key, the only one that boxes accept.
	ClientKey ssh.PublicKey
	// Deployment is the value of fleet.LabelDeployment.
	Deployment string
	// Binds are host paths to show in a bwrap box (`local.binds`), such as a
	// toolchain outside /usr, or a cache to share for writing.
	Binds []Bind
	// Path is put before the system's directories in a box's PATH.
	Path []string
	// Bounds are what a box may use of this host; zero values are defaults that suit the host.
	Bounds Bounds
	// IdleExit ends a box after this time without contact (`idle_exit`). Default 15 min.
	IdleExit time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Provider makes boxes. It implements fleet.Provider.
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

// Get returns one box, and tells it that somebody looks.
func (p *Provider) Get(ctx context.Context, name string) (fleet.VM, error) {
	if err := fleet.ValidName(name); err != nil {
		return fleet.VM{}, err
	}
	vm, err := p.look(ctx, p.boxDir(name))
	if err != nil {
		return fleet.VM{}, fmt.Errorf("get VM %s: %w", name, err)
	}
	if vm.Labels[fleet.LabelDeployment] != p.cfg.Deployment {
		return fleet.VM{}, fmt.Errorf("get VM %s: %w", name, fleet.ErrNotFound)
	}
	return vm, nil
}

// List returns all boxes of this deployment.
func (p *Provider) List(ctx context.Context) ([]fleet.VM, error) {
	entries, err := os.ReadDir(filepath.Join(p.cfg.Dir, boxesDir))
	if err != nil {
		return nil, fmt.Errorf("list VMs: %w", err)
	}
	var vms []fleet.VM
	for _, e := range entries {
		if fleet.ValidName(e.Name()) != nil {
			continue // a box in the making or on its way out
		}
		vm, err := p.look(ctx, p.boxDir(e.Name()))
		switch {
		case errors.Is(err, fleet.ErrNotFound):
			continue // deleted while we looked
		case err != nil:
			return nil, fmt.Errorf("list VMs: %s: %w", e.Name(), err)
		case vm.Labels[fleet.LabelDeployment] == p.cfg.Deployment:
			vms = append(vms, vm)
		}
	}
	return vms, nil
}
