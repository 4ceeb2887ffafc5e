//go:build linux

package rootbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Spec configures a box. Zero values have defaults.
type Spec struct {
	// Name is its host name; default the address's last number.
	Name string
	// Addr is its address, of Lab.Prefix; default a free one.
	Addr netip.Addr
	// Instance is the id by which cloud-init knows whether this is a first boot; default Name.
	Instance string
	// UserData is given to cloud-init, and served to the box as its metadata.
	UserData []byte
	// Image is the result of Box.Snapshot; default an empty disk over the rootfs.
	Image string
	// MemoryMB is its memory limit, DiskMB the size of its disk. Default 1024 and 2048.
	MemoryMB, DiskMB int
	// Keys are root's keys, which the cloud provides, in the format of authorized_keys.
	Keys []string
	// Binds are paths of this host that are mounted read-only at the same place in the box.
	Binds []string
	// Off leaves it powered off at first.
	Off bool
}

// Box is a simulated machine. Its methods are safe for concurrent use; those that change its power state wait for each
// other.
type Box struct {
	Name string // of the first Spec, if it was rebuilt
	Addr netip.Addr

	lab   *Lab
	id    string
	dir   string
	binds []string

	switching sync.Mutex // held while starting, stopping or changing it

	mu       sync.Mutex
	life     *life  // nil if it was never on; kept after its end
	host     string // its name inside
	userData []byte
	keys     []string
	instance string
	memoryMB int
	diskMB   int
	deleted  bool
}

// Boot creates a box. Unless spec.Off is set, it is running when Boot returns; its SSH server answers some seconds
// later, see AwaitSSH.
func (l *Lab) Boot(ctx context.Context, spec Spec) (*Box, error) {
	b := &Box{lab: l, binds: spec.Binds}
	addr, err := l.address(ctx, spec.Addr, b)
	if err != nil {
		return nil, err
	}
	b.Addr, b.id = addr, strconv.Itoa(int(addr.As4()[3]))
	b.Name = cmp.Or(spec.Name, "box-"+b.id)
	b.dir = filepath.Join(l.dir, b.id)
	b.describe(spec)
	err = errors.Join(
		os.MkdirAll(filepath.Join(b.dir, "disk"), 0o700),
		os.MkdirAll(filepath.Join(b.dir, "root"), 0o755),
		os.MkdirAll(filepath.Join(b.dir, "seed"), 0o700))
	if err == nil {
		err = b.newDisk(ctx, spec.Image)
	}
	if err == nil && !spec.Off {
		err = b.PowerOn(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("boot box %s: %w", b.Name, err), b.Delete(ctx))
	}
	return b, nil
}

// describe applies a spec, at the first boot and at a rebuild.
func (b *Box) describe(spec Spec) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.userData, b.keys = spec.UserData, spec.Keys
	b.host = cmp.Or(spec.Name, b.host, b.Name)
	b.instance = cmp.Or(spec.Instance, b.instance, b.Name)
	b.memoryMB, b.diskMB = cmp.Or(spec.MemoryMB, 1024), cmp.Or(spec.DiskMB, 2048)
}

// Running reports whether it is powered on.
func (b *Box) Running() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.life.running()
}

// current returns its current life, or nil if it is off.
func (b *Box) current() *life {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.life.running() {
		return nil
	}
	return b.life
}

// PowerOn powers it on; it does nothing if the box is on.
func (b *Box) PowerOn(ctx context.Context) error {
	b.switching.Lock()
	defer b.switching.Unlock()
	return b.start(ctx)
}

// start is PowerOn for callers that hold switching.
func (b *Box) start(ctx context.Context) error {
	b.mu.Lock()
	deleted, on := b.deleted, b.life.running()
	b.mu.Unlock()
	switch {
	case deleted:
		return fmt.Errorf("power on box %s: it is deleted", b.Name)
	case on:
		return nil
	}
	if err := b.clear(ctx); err != nil {
		return fmt.Errorf("power on box %s: %w", b.Name, err)
	}
	if err := b.writeSeed(); err != nil {
		return fmt.Errorf("power on box %s: %w", b.Name, err)
	}
	next, err := b.begin(ctx)
	if err != nil {
		return fmt.Errorf("power on box %s: %w", b.Name, err)
	}
	b.mu.Lock()
	b.life = next
	b.mu.Unlock()
	go b.restartOnReboot(next)
	return nil
}

// restartOnReboot waits for the end of a life and begins the next one if the box requested a reboot.
func (b *Box) restartOnReboot(l *life) {
	<-l.done
	if !l.wantsReboot() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b.switching.Lock()
	defer b.switching.Unlock()
	b.mu.Lock()
	mine := b.life == l && !b.deleted
	b.mu.Unlock()
	if mine {
		if err := b.start(ctx); err != nil {
			l.note("reboot: " + err.Error())
		}
	}
}

// PowerOff cuts its power: unwritten data is lost, written data stays.
func (b *Box) PowerOff(ctx context.Context) error {
	b.switching.Lock()
	defer b.switching.Unlock()
	return b.stop(ctx)
}

// stop is PowerOff for callers that hold switching.
func (b *Box) stop(ctx context.Context) error {
	l := b.current()
	if l == nil {
		return nil
	}
	_, _ = run(ctx, "ip", "link", "set", b.link(), "down") // without power it cannot close connections
	_ = b.thaw()                                           // a frozen process cannot die
	if err := l.kill(ctx); err != nil {
		return fmt.Errorf("power off box %s: %w", b.Name, err)
	}
	return nil
}

// Shutdown presses the power button and waits until the box has shut down.
func (b *Box) Shutdown(ctx context.Context) error {
	b.switching.Lock()
	defer b.switching.Unlock()
	l := b.current()
	if l == nil {
		return nil
	}
	if err := l.powerButton(); err != nil {
		return fmt.Errorf("shut down box %s: %w", b.Name, err)
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shut down box %s: no reaction: %w", b.Name, context.Cause(ctx))
	}
}

// Delete deletes it with its disk. It may be called twice.
func (b *Box) Delete(ctx context.Context) error {
	b.switching.Lock()
	defer b.switching.Unlock()
	b.mu.Lock()
	b.deleted = true
	b.mu.Unlock()
	err := b.stop(ctx)
	if err == nil {
		err = errors.Join(b.clear(ctx), os.RemoveAll(b.dir))
	}
	if err != nil {
		return fmt.Errorf("delete box %s: %w", b.Name, err)
	}
	b.lab.mu.Lock()
	defer b.lab.mu.Unlock()
	if b.lab.boxes[b.Addr] == b {
		delete(b.lab.boxes, b.Addr)
	}
	return nil
}

// clear removes remains of an earlier life outside its namespaces.
func (b *Box) clear(ctx context.Context) error {
	var errs []error
	for _, c := range hierarchies() {
		errs = append(errs, endGroup(ctx, groupDir(c, b.lab.slot, b.id)))
	}
	errs = append(errs, unlink(ctx, b.link()), b.awaitDiskFree(ctx))
	return errors.Join(errs...)
}

// link is the lab's end of the box's network link.
func (b *Box) link() string { return bridgeName(b.lab.slot) + "v" + b.id }

// writeSeed writes the data for the box's cloud-init.
func (b *Box) writeSeed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	meta := fmt.Sprintf("instance-id: %q\nlocal-hostname: %q\n", b.instance, b.host)
	for i, key := range b.keys {
		if i == 0 {
			meta += "public-keys:\n"
		}
		meta += fmt.Sprintf("  - %q\n", key)
	}
	data := b.userData
	if len(data) == 0 {
		data = []byte("#cloud-config\n{}\n")
	}
	seed := filepath.Join(b.dir, "seed")
	return errors.Join(os.WriteFile(filepath.Join(seed, "meta-data"), []byte(meta), 0o600), os.WriteFile(filepath.Join(seed, "user-data"), data, 0o600))
}

// Console returns the box's console output since its creation.
func (b *Box) Console() string {
	data, err := os.ReadFile(filepath.Join(b.dir, "console"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}
