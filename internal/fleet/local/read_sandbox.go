package local

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local/box"
	"github.com/errand-bot/errand/internal/remote"
)

const (
	boxesDir = "boxes"
	// touchTimeout limits the signal to a supervisor that errand is alive.
	touchTimeout = time.Second
)

func (p *Provider) boxDir(name string) string { return filepath.Join(p.cfg.Dir, boxesDir, name) }

// readSandbox reads a sandbox's directory and its lock. It returns ErrNotFound if there is no sandbox.
func (p *Provider) readSandbox(ctx context.Context, dir string) (fleet.VM, error) {
	rec, err := box.ReadRecord(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fleet.VM{}, fleet.ErrNotFound
	}
	if err != nil {
		return fleet.VM{}, err
	}
	// The order matters: the reason of an end is written before the lock is released.
	alive, err := hasSupervisor(dir)
	if err != nil {
		return fleet.VM{}, err
	}
	vm := toVM(rec, dir)
	if alive {
		ctx, cancel := context.WithTimeout(ctx, touchTimeout)
		defer cancel()
		_, _ = box.Ask(ctx, rec) // best effort: the lock has shown that it is alive
		vm.State = fleet.StateRunning
		return vm, nil
	}
	return describeEnded(vm, dir)
}

// describeEnded completes the VM of a sandbox whose lock is free.
func describeEnded(vm fleet.VM, dir string) (fleet.VM, error) {
	end, written, err := box.ReadEnd(dir)
	switch {
	case err != nil:
		return vm, err
	case written:
		vm.State, vm.Ended, vm.Detail = fleet.StateEnded, fleet.Reason(end.Reason), end.Detail
	case box.Started(dir):
		vm.State, vm.Ended = fleet.StateEnded, fleet.ReasonVanished
		vm.Detail = "its supervisor was killed, or the host restarted"
	default:
		vm.State = fleet.StateCreating
	}
	return vm, nil
}

// hasSupervisor reports whether a supervisor holds the sandbox.
func hasSupervisor(dir string) (bool, error) {
	lock := flock.New(box.LockPath(dir))
	free, err := lock.TryRLock()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, fleet.ErrNotFound
		}
		return false, err
	}
	return !free, lock.Close()
}

func toVM(rec box.Record, dir string) fleet.VM {
	return fleet.VM{
		Name:   rec.Name,
		Labels: maps.Clone(rec.Labels),
		Endpoint: remote.Endpoint{
			Network: "unix", Address: rec.SSHSocket, User: box.User, HostKeys: []string{rec.HostKey},
		},
		Kind:       rec.Kind,
		Isolation:  isolationOf(rec.Kind),
		TetherPort: rec.TetherPort,
		CreatedAt:  rec.CreatedAt,
		Facts: map[string]string{
			fleet.FactRunner: rec.RunnerInside(), fleet.FactHome: rec.HomeInside(dir), fleet.FactLog: box.LogPath(dir),
		},
	}
}

func isolationOf(kind string) fleet.Isolation {
	switch kind {
	case box.KindBwrap, box.KindUserns:
		return fleet.IsolationFull
	default:
		return fleet.IsolationNone
	}
}
