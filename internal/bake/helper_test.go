package bake

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gliderssh "github.com/gliderlabs/ssh"
	"github.com/rs/zerolog"
	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
)

// cloud simulates VMs by an SSH server in this process with one home each, and images by their labels. Like the real
// provider it only images powered-off VMs and makes an image available after a delay.
type cloud struct {
	t      *testing.T
	signer ssh.Signer
	clock  time.Time

	mu       sync.Mutex
	vms      map[string]*box
	images   []fleet.Image
	released map[string]fleet.Reason
	calls    []string
	fail     map[string]error // the next call of that name returns this error
	pending  int              // reads until a new image is available
	spoil    bool             // new images fail
	orders   []Order
}

type box struct {
	home string
	bin  string // folder of commands that shadow others: a sync that records its calls
	ln   net.Listener
	host ssh.Signer
	off  bool
	root bool // whether someone logged in as root
}

var (
	_ VMs    = (*cloud)(nil)
	_ Images = (*cloud)(nil)
)

func newCloud(t *testing.T) *cloud {
	t.Helper()
	return &cloud{
		t: t, signer: newSigner(t), clock: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), vms: map[string]*box{},
		released: map[string]fleet.Reason{}, fail: map[string]error{}, pending: 2,
	}
}

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// called counts a call and returns its planned error. The caller holds the lock.
func (c *cloud) called(what string) error {
	c.calls = append(c.calls, what)
	err := c.fail[what]
	delete(c.fail, what)
	return err
}

func (c *cloud) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clock
}

func (c *cloud) wait(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clock = c.clock.Add(d)
	return ctx.Err()
}

func (c *cloud) Acquire(_ context.Context, o Order) (fleet.VM, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders = append(c.orders, o)
	if err := c.called("acquire"); err != nil {
		return fleet.VM{}, err
	}
	name := fmt.Sprintf("%s-g%d", o.Owner, len(c.orders))
	b := &box{home: c.t.TempDir(), bin: c.t.TempDir(), host: newSigner(c.t)}
	if err := os.WriteFile(filepath.Join(b.bin, "sync"), []byte("#!/bin/sh\nls >\"$0ed\"\n"), 0o700); err != nil {
		return fleet.VM{}, err
	}
	dir, err := os.MkdirTemp("", "bake") // t.TempDir may be too long for a socket path
	if err != nil {
		return fleet.VM{}, err
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if b.ln, err = net.Listen("unix", filepath.Join(dir, "s")); err != nil {
		return fleet.VM{}, err
	}
	srv := &gliderssh.Server{
		HostSigners: []gliderssh.Signer{b.host}, Handler: b.handle,
		PublicKeyHandler: func(_ gliderssh.Context, key gliderssh.PublicKey) bool {
			return gliderssh.KeysEqual(key, c.signer.PublicKey())
		},
	}
	go func() { _ = srv.Serve(b.ln) }() // ends with the listener
	c.t.Cleanup(func() { _ = srv.Close() })
	c.vms[name] = b
	return fleet.VM{Name: name, ID: name, State: fleet.StateRunning, Facts: map[string]string{fleet.FactHome: b.home}}, nil
}

// handle runs a command with a real shell in the VM's home.
func (b *box) handle(s gliderssh.Session) {
	cmd := exec.CommandContext(s.Context(), "sh", "-c", s.RawCommand())
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = b.home, s, s, s.Stderr()
	cmd.Env = append(os.Environ(), "HOME="+b.home, "GIT_CONFIG_NOSYSTEM=1", "PATH="+b.bin+":"+os.Getenv("PATH"))
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		_ = s.Exit(exit.ExitCode())
	case err != nil:
		_ = s.Exit(127)
	default:
		_ = s.Exit(0)
	}
}

func (c *cloud) Connect(ctx context.Context, vm string, root bool) (*remote.Client, error) {
	c.mu.Lock()
	b := c.vms[vm]
	b.root = b.root || root
	c.mu.Unlock()
	cl, err := remote.Dial(ctx, remote.Endpoint{
		Network: "unix", Address: b.ln.Addr().String(), User: "errand", HostKeys: []string{string(ssh.MarshalAuthorizedKey(b.host.PublicKey()))},
	}, remote.Config{Signer: c.signer})
	if err == nil {
		c.t.Cleanup(func() { _ = cl.Close() })
	}
	return cl, err
}

func (c *cloud) Release(ctx context.Context, vm string, why fleet.Reason) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.released[vm] = why
	return c.called("release")
}

func (c *cloud) Sweep(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.called("sweep")
}

func (c *cloud) PowerOff(_ context.Context, vm string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vms[vm].off = true
	return c.called("power off")
}

func (c *cloud) Image(_ context.Context, spec fleet.ImageSpec) (fleet.Image, error) {
	vm, labels := spec.VM, spec.Labels
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.images {
		if maps.Equal(i.Labels, labels) {
			return i, nil
		}
	}
	if !c.vms[vm].off {
		return fleet.Image{}, errors.New("it is on")
	}
	if _, err := os.Stat(filepath.Join(c.vms[vm].bin, "synced")); err != nil {
		return fleet.Image{}, fmt.Errorf("what was written is not on the disk: %w", err)
	}
	img := fleet.Image{ID: fmt.Sprint(len(c.calls) + 100), Labels: labels, StoredMB: 1200, CreatedAt: c.clock}
	c.images = append(c.images, img)
	return img, c.called("image")
}

func (c *cloud) ImageByID(ctx context.Context, id string) (fleet.Image, error) {
	images, err := c.Images(ctx)
	for _, i := range images {
		if i.ID == id {
			return i, err
		}
	}
	return fleet.Image{}, errors.Join(err, fleet.ErrNotFound)
}

func (c *cloud) Images(context.Context) ([]fleet.Image, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("images"); err != nil {
		return nil, err
	}
	if c.pending--; c.pending <= 0 {
		for i := range c.images {
			c.images[i].Ready, c.images[i].Failed = !c.spoil || c.images[i].Ready, c.spoil && !c.images[i].Ready
		}
	}
	return append([]fleet.Image(nil), c.images...), nil
}

func (c *cloud) DeleteImage(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.called("delete image"); err != nil {
		return err
	}
	for i, img := range c.images {
		if img.ID == id {
			c.images = append(c.images[:i], c.images[i+1:]...)
			return nil
		}
	}
	return nil
}

// ids returns the IDs of all images.
func (c *cloud) ids() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.images {
		list = append(list, i.ID)
	}
	return list
}

// baker returns a [Baker] on the cloud and its log.
func (c *cloud) baker(groups Groups, change func(*Config)) (*Baker, *lines) {
	log := &lines{}
	cfg := Config{Groups: groups, VMs: c, Images: c, Now: c.now, Wait: c.wait, Log: zerolog.New(log)}
	if change != nil {
		change(&cfg)
	}
	return New(cfg), log
}

// lines is a log that tests can read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// noSource has no repositories.
type noSource struct{ err error }

func (s noSource) Bundle(context.Context, string) (Bundle, error) { return Bundle{}, s.err }
