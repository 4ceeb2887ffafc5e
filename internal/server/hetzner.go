package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// contactWithin is how long a VM in the cloud stays up without anybody in touch: if errand is gone for
// good, no agent goes on.
const contactWithin = 2 * time.Hour

// hetznerProvider orders VMs of Hetzner Cloud, and completes the fleet's policy for them.
func (s *Server) hetznerProvider(signer ssh.Signer, cfg *fleet.Config) (fleet.Provider, error) {
	h := s.cfg.Hetzner
	secret, err := secretFile(filepath.Join(s.cfg.Data, "host_keys_secret"))
	if err != nil {
		return nil, err
	}
	var wanted []fleet.Offer
	for _, c := range h.Candidates {
		kind, place, _ := strings.Cut(c, "/")
		wanted = append(wanted, fleet.Offer{Type: kind, Location: place})
		if err := s.wantRunner(kind); err != nil {
			return nil, err
		}
		cfg.Candidates = append(cfg.Candidates, fleet.Candidate{Type: kind, Location: place})
	}
	cfg.Paid, cfg.Pool = h.BillingPeriod, fleet.Pool{Insurance: h.Insurance, Reuse: h.Reuse}
	cfg.Caps = vm.Caps{
		VMs: s.cfg.Limits.VMs, PerHour: s.cfg.Limits.VMCreates, PerTask: s.cfg.Policy().VMHours,
		MicroDay: config.Micro(s.cfg.Limits.VMCostPerDay), MicroMonth: config.Micro(s.cfg.Limits.VMCostPerMonth),
	}
	cfg.Contact = fleet.SSHContact{SSH: cfg.SSH, Key: func(vm string) (string, error) {
		_, public, err := cloudinit.DeriveHostKey(secret, vm)
		return public, err
	}}
	cfg.UserData = func(row vm.Row) ([]byte, error) {
		private, _, err := cloudinit.DeriveHostKey(secret, row.Name)
		if err != nil {
			return nil, err
		}
		return cloudinit.UserData(cloudinit.Spec{
			Name: row.Name, HostKey: private, ClientKey: signer.PublicKey(), ContactWithin: contactWithin, HardAfter: 8 * 24 * time.Hour,
			Setup: h.Setup,
		})
	}
	settings := hetzner.Settings{
		Endpoint: h.Endpoint, Image: h.Image, SSHFrom: h.SSHFrom, Egress: hetzner.EgressOpen, Network: h.Network, Private: !h.IPv4, IPv4: h.IPv4, IPv6: h.IPv4,
	}
	if h.Egress == "tether" {
		settings.Egress = hetzner.EgressTether
	}
	if len(settings.SSHFrom) == 0 {
		settings.SSHFrom = hetzner.DefaultSettings().SSHFrom
	}
	return hetzner.New(hetzner.Config{
		Settings: settings, Token: h.Token.Reveal(), Deployment: s.cfg.Deployment, ClientKey: signer.PublicKey(), Candidates: wanted,
		Version: s.opts.Version, Tick: s.opts.Timing.VMTick, Now: s.opts.Now, Log: s.opts.Log,
		OneUser: s.opts.DialVM != nil, // boxes, which have one login each
	})
}

// wantRunner checks that there is a runner for the machines of a server type: those named cax have Arm.
func (s *Server) wantRunner(kind string) error {
	arch := "amd64"
	if strings.HasPrefix(kind, "cax") {
		arch = "arm64"
	}
	runner := filepath.Join(s.opts.BinDir, "errand-runner-linux-"+arch)
	if _, err := os.Stat(runner); err != nil {
		return fmt.Errorf("find the runner for VMs of type %s (make build puts it beside the program): %w", kind, err)
	}
	return nil
}

// baseImage is the newest image that was baked for a task's repository, empty if there is none.
func (s *Server) baseImage(ctx context.Context, t *state.Task) (string, error) {
	group, ok := s.cfg.Bake.Of(t.Repo.FullName())
	if _, can := s.provider.(fleet.Imager); !ok || !can {
		return "", nil
	}
	images, err := s.fleet.Images(ctx, time.Minute)
	if err != nil {
		return "", fmt.Errorf("look for the base image of %s: %w", group, err)
	}
	if ready := bake.Of(images, group); len(ready) > 0 { // the newest first
		return ready[0].ID, nil
	}
	return "", nil
}

// disks keeps whole disks of VMs as images.
type disks struct{ s *Server }

// Snapshot makes an image of a VM's disk.
func (d disks) Snapshot(ctx context.Context, vm string) (ref string, bytes int64, err error) {
	img, err := d.s.fleet.Snapshot(ctx, vm)
	if err != nil {
		return "", 0, err
	}
	return img.ID, img.StoredMB << 20, nil
}

// DeleteSnapshot deletes one.
func (d disks) DeleteSnapshot(ctx context.Context, ref string) error {
	return d.s.fleet.ForgetImage(ctx, ref)
}
