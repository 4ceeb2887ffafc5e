package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

const (
	// ProviderHetzner is the value of Config.Provider for VMs of the Hetzner simulator.
	ProviderHetzner = "hetzner"
	// CloudToken is the simulator's API token.
	CloudToken = "sim-hcloud-3f9b2c"
	// PaidSpan is the demo's billing period.
	PaidSpan = 8 * time.Second
	// cloudHaste is the factor by which the simulator is faster than the real cloud.
	cloudHaste = 60
)

// binDir returns the folder in which errand finds its runner. errand needs a runner for the servers' machine type,
// whatever type this host has, so binDir links it in the world's own folder.
func (w *World) binDir() (string, error) {
	if w.cfg.Provider != ProviderHetzner || w.cfg.Machines != nil {
		return w.cfg.BinDir, nil
	}
	runner, err := filepath.Abs(filepath.Join(w.cfg.BinDir, "errand-runner"))
	if err != nil {
		return "", fmt.Errorf("find errand-runner: %w", err)
	}
	dir := filepath.Join(w.cfg.Dir, "bin")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create a folder for errand-runner: %w", err)
	}
	for _, name := range []string{"errand-runner", "errand-runner-linux-amd64", "errand-runner-linux-arm64"} {
		if err := os.Symlink(runner, filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("create a folder for errand-runner: %w", err)
		}
	}
	return dir, nil
}

// startCloud starts the Hetzner simulator with sandboxes of this host as its servers.
func (w *World) startCloud(ctx context.Context) error {
	if w.cfg.Provider != ProviderHetzner {
		return nil
	}
	t, err := w.tools()
	if err != nil {
		return err
	}
	cfg := local.Config{
		Dir:    filepath.Join(w.cfg.Dir, "cloud"),
		Kind:   w.kind(),
		Runner: filepath.Join(w.cfg.BinDir, "errand-runner"),
		Path:   t.path,
		Now:    w.cfg.Now,
	}
	for _, b := range t.binds {
		cfg.Binds = append(cfg.Binds, local.Bind{Path: b.Path, Writable: b.Writable})
	}
	machines := w.cfg.Machines
	if machines == nil {
		boxes, err := NewMachines(ctx, cfg)
		if err != nil {
			return fmt.Errorf("create the servers of the Hetzner simulator: %w", err)
		}
		machines, w.dial = boxes, boxes.Dial
	}
	took := simhetzner.Scaled(cloudHaste)
	if !w.cfg.Fast {
		took = simhetzner.Took{}
	}
	if w.cfg.Took != nil {
		took = *w.cfg.Took
	}
	account := simhetzner.Config{Token: CloudToken, Period: PaidSpan, Took: took, Machines: machines, Now: w.cfg.Now}
	if w.cfg.Account != nil {
		w.cfg.Account(&account)
	}
	w.paid, w.Cloud = account.Period, simhetzner.New(account)
	if w.cloud, err = w.Cloud.Start("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start the Hetzner simulator: %w", err)
	}
	return nil
}

func (w *World) kind() string {
	if w.cfg.Kind == "" {
		return local.KindAuto
	}
	return w.cfg.Kind
}

// seeAsleep waits until the VM has been suspended just before its paid hour ends, so that the review finds the task
// without a VM.
func (p *Play) seeAsleep(ctx context.Context) error {
	if p.World.Cloud == nil {
		return nil
	}
	var a state.SuspendedWork
	err := p.until(ctx, "the VM to be suspended", func(t *state.Task) (bool, error) {
		if t.Suspended == nil || t.VM != nil {
			return false, nil
		}
		a = *t.Suspended
		p.session = sessionOf(t)
		return len(p.World.Cloud.Objects("server")) == 0, nil
	})
	if err == nil {
		p.Say("the VM is idle and its paid hour ends: errand saved its work (%s, %d kB) and deletes the VM", a.Mode, a.Bytes>>10)
	}
	return err
}

// sessionOf returns the agent's session in the newest run that had one.
func sessionOf(t *state.Task) string {
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if t.Runs[i].Session != "" {
			return t.Runs[i].Session
		}
	}
	return ""
}

// seeSession checks that the agent continued its session after its VM was suspended.
func (p *Play) seeSession(ctx context.Context) error {
	if p.World.Cloud == nil {
		return nil
	}
	t, err := p.task(ctx)
	if err != nil {
		return err
	}
	if now := sessionOf(t); now != p.session || now == "" {
		return fmt.Errorf("after the restore the agent's session is %q, before it was %q", now, p.session)
	}
	p.Say("the agent continued its session from before the suspension (%.8s…) on VM number %d", p.session, len(t.VMs)+1)
	return nil
}

// seeNothingLeft checks that nothing that costs money is left.
func (p *Play) seeNothingLeft(ctx context.Context) error {
	if p.World.Cloud == nil {
		return nil
	}
	err := p.until(ctx, "the deletion of everything that costs money", func(*state.Task) (bool, error) {
		return len(p.World.Cloud.Objects("server"))+len(p.World.Cloud.Objects("primary_ip"))+len(p.World.Cloud.Objects("volume")) == 0, nil
	})
	if err != nil {
		return err
	}
	bill, spans, servers := p.World.Cloud.Bill(), int64(0), 0
	for _, l := range bill.Lines {
		if l.Kind == "server" {
			servers, spans = servers+1, spans+l.Periods
		}
	}
	p.Say("the cloud's bill: %d VMs, %d started hours (of %s here), %.4f %s", servers, spans, p.World.paid, float64(bill.Micro)/1e6, bill.Currency)
	return nil
}
