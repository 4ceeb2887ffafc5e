//go:build linux

package rootbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill ends the box at once, like a crash of its host. It stays off.
func (b *Box) Kill(ctx context.Context) error { return b.PowerOff(ctx) }

// Cut disconnects its network: packets are lost, without an error on either side. Heal undoes it.
func (b *Box) Cut(ctx context.Context) error {
	_, err := run(ctx, "ip", "link", "set", b.link(), "down")
	return err
}

// Heal undoes Cut.
func (b *Box) Heal(ctx context.Context) error {
	_, err := run(ctx, "ip", "link", "set", b.link(), "up")
	return err
}

// Freeze stops all its processes, like a hanging host. Thaw continues them.
func (b *Box) Freeze(ctx context.Context) error {
	b.switching.Lock()
	defer b.switching.Unlock()
	return b.freeze(ctx)
}

// Thaw undoes Freeze.
func (b *Box) Thaw() error {
	b.switching.Lock()
	defer b.switching.Unlock()
	return b.thaw()
}

func (b *Box) freeze(ctx context.Context) error {
	if err := limit("freezer", b.lab.slot, b.id, "freezer.state", "FROZEN"); err != nil {
		return err
	}
	at := filepath.Join(groupDir("freezer", b.lab.slot, b.id), "freezer.state")
	return b.await(ctx, "all processes are frozen", func(context.Context) error {
		state, err := os.ReadFile(at)
		if err == nil && strings.TrimSpace(string(state)) != "FROZEN" {
			err = fmt.Errorf("it is %s", state)
		}
		return err
	})
}

func (b *Box) thaw() error { return limit("freezer", b.lab.slot, b.id, "freezer.state", "THAWED") }

// fillFile uses all free space on the disk.
const fillFile = "/var/tmp/.filled"

// Fill uses all free space on its disk, to the last block. Empty undoes it.
func (b *Box) Fill() error {
	l := b.current()
	if l == nil {
		return fmt.Errorf("fill the disk of box %s: it is off", b.Name)
	}
	f, err := os.OpenFile(l.path(fillFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk of box %s: %w", b.Name, err)
	}
	size := int64(0)
	for step := int64(1 << 28); step >= 4096; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, step); {
		case err == nil:
			size += step
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		default:
			return errors.Join(fmt.Errorf("fill the disk of box %s: %w", b.Name, err), f.Close())
		}
	}
	return f.Close()
}

// Empty undoes Fill.
func (b *Box) Empty() error {
	l := b.current()
	if l == nil {
		return fmt.Errorf("empty the disk of box %s: it is off", b.Name)
	}
	return os.Remove(l.path(fillFile))
}

// Starve limits the memory of all its processes to a number of MB; the kernel kills processes that exceed it. An idle
// box uses about 30. Feed undoes it.
func (b *Box) Starve(limitMB int) error {
	return limit("memory", b.lab.slot, b.id, "memory.limit_in_bytes", strconv.Itoa(limitMB<<20))
}

// Feed undoes Starve.
func (b *Box) Feed() error {
	b.mu.Lock()
	memory := b.memoryMB
	b.mu.Unlock()
	return limit("memory", b.lab.slot, b.id, "memory.limit_in_bytes", strconv.Itoa(memory<<20))
}

// Killed returns the number of its processes that the kernel has killed for lack of memory since it was powered on.
func (b *Box) Killed() (count int, err error) {
	all, err := groups(groupDir("memory", b.lab.slot, b.id)) // the box's systemd has created subgroups
	for _, g := range all {
		n, countErr := oomKills(filepath.Join(g, "memory.oom_control"))
		count, err = count+n, errors.Join(err, countErr)
	}
	if err != nil {
		return 0, fmt.Errorf("check memory of box %s: %w", b.Name, err)
	}
	return count, nil
}

// oomKills reads the count of one group; it is 0 for a group that was just removed.
func oomKills(file string) (int, error) {
	data, err := os.ReadFile(file)
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			return strconv.Atoi(value)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return 0, nil
	}
	return 0, err
}

// Slow limits its network to a number of kilobits per second, both ways. Fast undoes it.
func (b *Box) Slow(ctx context.Context, kbit int) error {
	shape := []string{"root", "tbf", "rate", strconv.Itoa(kbit) + "kbit", "burst", "4kb", "latency", "2s"}
	return b.shape(ctx, "replace", shape...)
}

// Fast undoes Slow.
func (b *Box) Fast(ctx context.Context) error { return b.shape(ctx, "del", "root") }

// shape sets the queues at both ends of the box's network link.
func (b *Box) shape(ctx context.Context, verb string, args ...string) error {
	l := b.current()
	if l == nil {
		return fmt.Errorf("slow down box %s: it is off", b.Name)
	}
	inside := append([]string{"nsenter", "-t", strconv.Itoa(l.pid), "-n", "tc", "qdisc", verb, "dev", "eth0"}, args...)
	outside := append([]string{"tc", "qdisc", verb, "dev", b.link()}, args...)
	_, err := run(ctx, inside...)
	_, other := run(ctx, outside...)
	return errors.Join(err, other)
}

// Off returns a channel that is closed when the box is off.
func (b *Box) Off() <-chan struct{} {
	if l := b.current(); l != nil {
		return l.done
	}
	done := make(chan struct{})
	close(done)
	return done
}

// AwaitOff waits until it is off.
func (b *Box) AwaitOff(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-b.Off():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("box %s is still on: %w", b.Name, context.Cause(ctx))
	}
}
