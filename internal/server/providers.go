package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/state/vm"
)

// providers creates the provider of each name in the configuration, and completes the fleet's configuration for it.
// The facts about each are in package config.
var providers = map[string]func(*Server, ssh.Signer, *fleet.Config) (fleet.Provider, error){
	config.ProviderLocal:   (*Server).localProvider,
	config.ProviderHetzner: (*Server).hetznerProvider,
}

// ErrNoRunner means that a program errand-runner is missing.
var ErrNoRunner = errors.New("find errand-runner in the folder of the errand program (`make build` puts it there)")

// localProvider creates the provider of sandboxes on this host.
func (s *Server) localProvider(signer ssh.Signer, _ *fleet.Config) (fleet.Provider, error) {
	runner := filepath.Join(s.opts.BinDir, "errand-runner")
	if _, err := os.Stat(runner); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRunner, err)
	}
	l := s.cfg.Local
	cfg := local.Config{
		Dir:        s.localDir(),
		Kind:       l.Kind,
		Runner:     runner,
		ClientKey:  signer.PublicKey(),
		Deployment: s.cfg.Deployment,
		Path:       l.Path,
		IdleExit:   l.IdleExit,
		Now:        s.opts.Now,
	}
	for _, b := range l.Binds {
		cfg.Binds = append(cfg.Binds, local.Bind{Path: b.Path, Writable: b.Writable})
	}
	return local.New(cfg)
}

// localDir returns the folder of sandboxes.
func (s *Server) localDir() string { return filepath.Join(s.cfg.Data, "local") }

// contactTimeout is how long a VM in the cloud stays up without a connection to errand, so that no agent continues if
// errand is gone for good.
const contactTimeout = 2 * time.Hour

// hetznerProvider creates the provider of VMs in Hetzner Cloud.
func (s *Server) hetznerProvider(signer ssh.Signer, cfg *fleet.Config) (fleet.Provider, error) {
	h := s.cfg.Hetzner
	secret, err := keyfile.Secret(filepath.Join(s.cfg.Data, "host_keys_secret"))
	if err != nil {
		return nil, err
	}
	var wanted []fleet.Offer
	for _, c := range h.Candidates {
		kind, place, _ := strings.Cut(c, "/")
		wanted = append(wanted, fleet.Offer{Type: kind, Location: place})
		if err := s.checkRunner(kind); err != nil {
			return nil, err
		}
		cfg.Candidates = append(cfg.Candidates, fleet.Candidate{Type: kind, Location: place})
	}
	cfg.Paid, cfg.Pool = h.BillingPeriod, fleet.Pool{Insurance: h.Insurance, Reuse: h.Reuse}
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
			Name:          row.Name,
			HostKey:       private,
			ClientKey:     signer.PublicKey(),
			ContactWithin: contactTimeout,
			HardAfter:     8 * 24 * time.Hour,
			Setup:         h.Setup,
		})
	}
	settings := hetzner.Settings{
		Endpoint: h.Endpoint,
		Image:    h.Image,
		SSHFrom:  h.SSHFrom,
		Egress:   hetzner.EgressOpen,
		Network:  h.Network,
		Private:  !h.IPv4,
		IPv4:     h.IPv4,
		IPv6:     h.IPv4,
	}
	if h.Egress == "tether" {
		settings.Egress = hetzner.EgressTether
	}
	if len(settings.SSHFrom) == 0 {
		settings.SSHFrom = hetzner.DefaultSettings().SSHFrom
	}
	return hetzner.New(hetzner.Config{
		Settings:   settings,
		Token:      h.Token.Reveal(),
		Deployment: s.cfg.Deployment,
		ClientKey:  signer.PublicKey(),
		Candidates: wanted,
		Version:    s.opts.Version,
		Tick:       s.opts.Timing.VMTick,
		Now:        s.opts.Now,
		Log:        s.opts.Log,
		OneUser:    s.opts.DialVM != nil, // sandboxes, which have one login each
	})
}

// checkRunner checks that there is a runner for the processors of a server type: those named cax have Arm.
func (s *Server) checkRunner(kind string) error {
	arch := "amd64"
	if strings.HasPrefix(kind, "cax") {
		arch = "arm64"
	}
	runner := filepath.Join(s.opts.BinDir, "errand-runner-linux-"+arch)
	if _, err := os.Stat(runner); err != nil {
		return fmt.Errorf("%w, for VMs of type %s: %w", ErrNoRunner, kind, err)
	}
	return nil
}
