package server

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/bake"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/cloudinit"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state/kv/boltkv"
)

// ErrServing means that a running errand has the store open and manages the VMs.
var ErrServing = errors.New("errand serve is running on this data folder")

// ErrNoImages means that the provider has no images.
var ErrNoImages = errors.New("base images are for `provider: hetzner`")

// Tools is the part of a server that commands use while none is running: its store and its VMs. It neither listens nor
// works on tasks.
type Tools struct{ s *Server }

// OpenTools opens the store and the fleet. The error is ErrServing if a running errand has them open. The caller closes
// the Tools.
func OpenTools(ctx context.Context, cfg config.Config, opts Options) (*Tools, error) {
	s := &Server{cfg: cfg, opts: opts.withDefaults(), metrics: admin.NewMetrics(opts.Version)}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	for _, part := range []func(context.Context) error{s.openStore, s.makeSecrets, s.makeForge, s.makeFleet} {
		if err := part(ctx); err != nil {
			if errors.Is(err, boltkv.ErrLocked) {
				err = fmt.Errorf("%w: %w", ErrServing, err)
			}
			return nil, errors.Join(err, s.Close())
		}
	}
	return &Tools{s}, nil
}

// Close releases everything that OpenTools opened.
func (t *Tools) Close() error { return t.s.Close() }

// MayChange returns ErrRestored until the operator resumes an errand that was restored from a backup.
func (t *Tools) MayChange(ctx context.Context) error { return t.s.mayChange(ctx) }

// Fleet returns the VMs.
func (t *Tools) Fleet() *fleet.Fleet { return t.s.fleet }

// Bake creates the base image of a group.
func (t *Tools) Bake(ctx context.Context, group string) (fleet.Image, error) {
	b, err := t.s.baker()
	if err != nil {
		return fleet.Image{}, err
	}
	return b.Bake(ctx, group)
}

// AskedDir returns the folder for requests to a running errand to bake an image.
func AskedDir(cfg config.Config) string { return filepath.Join(cfg.Data, "bake") }

// baker returns the creator of base images, or ErrNoImages.
func (s *Server) baker() (*bake.Baker, error) {
	images, ok := s.provider.(fleet.Imager)
	if !ok {
		return nil, ErrNoImages
	}
	signer, err := keyfile.SSH(s.clientKeyFile())
	if err != nil {
		return nil, err
	}
	dir := AskedDir(s.cfg)
	return bake.New(bake.Config{
		Groups: s.cfg.Bake,
		VMs:    bake.OnFleet(s.fleet, remote.Config{Signer: signer, Dial: s.opts.DialVM}, images.SetupUser()),
		Images: images,
		Begin:  s.beginBake,
		Asked:  dir,
		Source: bake.Git{Dir: filepath.Join(dir, "copies"), Remote: s.gitRemote},
		Runner: s.bakedRunner,
		Clean:  cloudinit.CleanCommand,
		Now:    s.opts.Now,
		Log:    s.opts.Log,
	}), nil
}

// bake keeps base images up to date until ctx ends.
func (s *Server) bake(ctx context.Context) error {
	if len(s.cfg.Bake) == 0 {
		return nil
	}
	b, err := s.baker()
	if errors.Is(err, ErrNoImages) {
		s.opts.Log.Warn().Err(err).Msg("no base image is baked")
		return nil
	}
	if err != nil {
		return err
	}
	if err := b.Run(ctx); ctx.Err() == nil {
		return err
	}
	return nil // ctx has ended
}

// gitRemote returns the URL of one of the App's repositories and the credential to read it.
func (s *Server) gitRemote(ctx context.Context, repo string) (url, authorization string, err error) {
	to, _, err := s.repositoryNamed(ctx, repo)
	if err != nil {
		return "", "", err
	}
	token, _, err := s.forge.GitToken(ctx, to)
	if err != nil {
		return "", "", err
	}
	return s.forge.GitURL(to), "Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+token)), nil
}

// bakedRunner reads the runner for an architecture and returns it with its file name on VMs.
func (s *Server) bakedRunner(arch string) (data []byte, name string, err error) {
	if data, err = os.ReadFile(filepath.Join(s.opts.BinDir, "errand-runner-linux-"+arch)); err != nil {
		return nil, "", fmt.Errorf("find the runner for %s in the folder of the errand program (`make build` puts it there): %w", arch, err)
	}
	sum := sha256.Sum256(data)
	return data, "errand-runner-" + hex.EncodeToString(sum[:6]), nil
}

// alarms returns the problems at the VM provider that a person has to resolve.
func (s *Server) alarms() []admin.Alarm {
	var list []admin.Alarm
	for _, a := range s.fleet.Alarms() {
		list = append(list, admin.Alarm{Kind: a.Kind, ID: a.ID, Name: a.Name, Reason: a.Explanation, Since: a.Since})
	}
	return list
}
