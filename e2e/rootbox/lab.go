//go:build linux

package rootbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

const (
	// home holds the files of all labs. It is fixed, so that the next test finds the remains of a crashed one.
	home = "/var/tmp/errand-rootbox"
	// slots is the maximum number of concurrent labs on a host.
	slots = 100
	// commandTimeout is the timeout of each helper program.
	commandTimeout = 30 * time.Second
	// firstOrdered is the last number of the first address that is only assigned on request.
	firstOrdered = 128
)

// Lab is a network with boxes on it. It is safe for concurrent use.
type Lab struct {
	slot   int
	dir    string
	rootfs string
	lock   *flock.Flock
	meta   *http.Server

	mu    sync.Mutex
	boxes map[netip.Addr]*Box
}

// Open creates a lab, after removing the remains of labs whose processes have ended. Close deletes it.
func Open(ctx context.Context) (*Lab, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	rootfs, err := Rootfs(ctx, cache)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of labs: %w", err)
	}
	if err := Sweep(ctx); err != nil {
		return nil, err
	}
	for slot := 1; slot <= slots; slot++ {
		lock, mine, err := hold(slot)
		if err != nil {
			return nil, err
		}
		if !mine {
			continue
		}
		l := &Lab{slot: slot, rootfs: rootfs, lock: lock, dir: labDir(slot), boxes: map[netip.Addr]*Box{}}
		if err := l.build(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("make lab %d: %w", slot, err), l.Close())
		}
		return l, nil
	}
	return nil, fmt.Errorf("all %d labs of this host are in use", slots)
}

func labDir(slot int) string { return filepath.Join(home, strconv.Itoa(slot)) }

// hold locks a slot for the lifetime of this process.
func hold(slot int) (lock *flock.Flock, mine bool, err error) {
	lock = flock.New(filepath.Join(home, fmt.Sprintf("%d.lock", slot)))
	mine, err = lock.TryLock()
	if err != nil {
		return nil, false, fmt.Errorf("lock lab %d: %w", slot, err)
	}
	if !mine {
		_ = lock.Close()
	}
	return lock, mine, nil
}

// Sweep removes the remains of labs whose process has ended, and leaves other labs alone.
func Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list labs: %w", err)
	}
	for _, e := range entries {
		slot, err := strconv.Atoi(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		lock, mine, err := hold(slot)
		if err != nil {
			return err
		}
		if mine {
			err = errors.Join(remains(ctx, slot), lock.Close())
		}
		if err != nil {
			return fmt.Errorf("remove remains of lab %d: %w", slot, err)
		}
	}
	return nil
}

// remains removes the possible remains of a lab, whose lock the caller holds: processes and their cgroups, links,
// files. Namespaces, mounts and loop devices end with the processes.
func remains(ctx context.Context, slot int) error {
	err := endGroups(ctx, slot)
	links, listed := run(ctx, "ip", "-o", "link", "show")
	err = errors.Join(err, listed)
	for line := range strings.Lines(links) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), ": ")
		name, _, _ = strings.Cut(name, ":")
		name, _, _ = strings.Cut(name, "@")
		if name == bridgeName(slot) || strings.HasPrefix(name, bridgeName(slot)+"v") {
			err = errors.Join(err, unlink(ctx, name))
		}
	}
	return errors.Join(err, os.RemoveAll(labDir(slot)))
}

// unlink removes a link, which the kernel may be removing at the same time.
func unlink(ctx context.Context, name string) error {
	_, err := run(ctx, "ip", "link", "del", name)
	if _, gone := net.InterfaceByName(name); gone != nil {
		return nil
	}
	return err
}

func bridgeName(slot int) string { return fmt.Sprintf("erb%d", slot) }

// Prefix is the network of the lab's boxes.
func (l *Lab) Prefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(l.slot), 0}), 24)
}

// Ordered is the part of Prefix whose addresses are only assigned on request.
func (l *Lab) Ordered() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(l.slot), firstOrdered}), 25)
}

// Gateway is this host's address on that network.
func (l *Lab) Gateway() netip.Addr { return l.Prefix().Addr().Next() }

// build creates the lab's bridge and serves the metadata on it.
func (l *Lab) build(ctx context.Context) error {
	if err := remains(ctx, l.slot); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(l.dir, "images"), 0o700); err != nil {
		return err
	}
	bridge := bridgeName(l.slot)
	for _, args := range [][]string{
		{"ip", "link", "add", bridge, "type", "bridge"},
		{"ip", "addr", "add", netip.PrefixFrom(l.Gateway(), 24).String(), "dev", bridge},
		{"ip", "addr", "add", metadataAddr + "/32", "dev", bridge},
		{"ip", "link", "set", bridge, "up"},
	} {
		if _, err := run(ctx, args...); err != nil {
			return err
		}
	}
	return l.serveMetadata(ctx, bridge)
}

// Close deletes all boxes and everything else of the lab, including images. It may be called twice.
func (l *Lab) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l.mu.Lock()
	boxes := make([]*Box, 0, len(l.boxes))
	for _, b := range l.boxes {
		boxes = append(boxes, b)
	}
	l.mu.Unlock()
	var errs []error
	for _, b := range boxes {
		errs = append(errs, b.Delete(ctx))
	}
	if l.meta != nil {
		errs = append(errs, l.meta.Close())
	}
	if l.lock.Locked() {
		errs = append(errs, remains(ctx, l.slot), l.lock.Close())
	}
	return errors.Join(errs...)
}

// address reserves a free address, or the requested one, waiting while a deleted box still has it.
func (l *Lab) address(ctx context.Context, want netip.Addr, b *Box) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	if want.IsValid() && (!l.Prefix().Contains(want) || want == l.Gateway()) {
		return want, fmt.Errorf("address %s is not available to boxes of %s", want, l.Prefix())
	}
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for {
		if at, ok := l.take(want, b); ok {
			return at, nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return want, fmt.Errorf("wait for address %s of %s: %w", want, l.Prefix(), context.Cause(ctx))
		}
	}
}

// take is one attempt of address.
func (l *Lab) take(want netip.Addr, b *Box) (at netip.Addr, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at = want
	for n := byte(2); !want.IsValid() && n < firstOrdered; n++ {
		at = netip.AddrFrom4([4]byte{10, 77, byte(l.slot), n})
		if l.boxes[at] == nil {
			break
		}
	}
	if l.boxes[at] != nil {
		return at, false
	}
	l.boxes[at] = b
	return at, true
}

// run runs a helper program and returns its output.
func run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, tail(out, 500))
	}
	return string(out), nil
}
