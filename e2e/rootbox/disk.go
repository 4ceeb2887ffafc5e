//go:build linux

package rootbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// newDisk gives the box an empty disk, or a copy of an image, of the configured size.
func (b *Box) newDisk(ctx context.Context, image string) error {
	disk := b.disk()
	if err := os.Remove(disk); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b.mu.Lock()
	size := int64(b.diskMB) << 20
	b.mu.Unlock()
	if image != "" {
		return restore(ctx, image, disk, size)
	}
	f, err := os.OpenFile(disk, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	_, err = run(ctx, "mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", disk)
	return err
}

// restore copies an image and enlarges it to the size of the new disk, which may not be smaller.
func restore(ctx context.Context, image, disk string, size int64) error {
	info, err := os.Stat(image)
	if err != nil {
		return fmt.Errorf("find image: %w", err)
	}
	if info.Size() > size {
		return fmt.Errorf("the image has %d MB, the disk only %d", info.Size()>>20, size>>20)
	}
	if err := copySparse(ctx, image, disk); err != nil || info.Size() == size {
		return err
	}
	if err := os.Truncate(disk, size); err != nil {
		return err
	}
	if _, err := run(ctx, "e2fsck", "-fp", disk); err != nil {
		return err
	}
	_, err = run(ctx, "resize2fs", disk)
	return err
}

func copySparse(ctx context.Context, from, to string) error {
	_, err := run(ctx, "cp", "--sparse=always", "--reflink=auto", "--", from, to)
	return err
}

func (b *Box) disk() string { return filepath.Join(b.dir, "disk.img") }

// Snapshot copies the box's disk to an image from which other boxes can be created, and which exists until DeleteImage
// or the end of the lab. The image of a running box has the state after a power cut.
func (b *Box) Snapshot(ctx context.Context) (image string, err error) {
	b.switching.Lock()
	defer b.switching.Unlock()
	f, err := os.CreateTemp(filepath.Join(b.lab.dir, "images"), b.Name+"-*.img")
	if err != nil {
		return "", fmt.Errorf("take a snapshot of box %s: %w", b.Name, err)
	}
	err = f.Close()
	if b.current() != nil {
		err = errors.Join(err, b.freeze(ctx))
		defer func() { err = errors.Join(err, b.thaw()) }()
	}
	if err == nil {
		err = b.awaitWritten(ctx)
	}
	if err == nil {
		err = copySparse(ctx, b.disk(), f.Name())
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("take a snapshot of box %s: %w", b.Name, err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// awaitWritten waits until an ended life has released the disk, with all its writes.
func (b *Box) awaitWritten(ctx context.Context) error {
	if b.current() != nil {
		return nil
	}
	return b.clear(ctx)
}

// DeleteImage removes an image; a missing image is not an error.
func (l *Lab) DeleteImage(image string) error {
	if filepath.Dir(image) != filepath.Join(l.dir, "images") {
		return fmt.Errorf("%s is not an image of this lab", image)
	}
	if err := os.Remove(image); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("delete image: %w", err)
	}
	return nil
}

// ImageBytes returns the disk space that an image uses.
func ImageBytes(image string) (int64, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(image, &st); err != nil {
		return 0, fmt.Errorf("check image: %w", err)
	}
	return st.Blocks * 512, nil
}

// Rebuild gives it a new disk, empty or from an image, and other user data, and starts it. It keeps its address and,
// unless spec has one, its instance ID.
func (b *Box) Rebuild(ctx context.Context, spec Spec) error {
	b.switching.Lock()
	defer b.switching.Unlock()
	err := b.stop(ctx)
	if err == nil {
		err = b.clear(ctx)
	}
	if err == nil {
		b.describe(spec)
		err = b.newDisk(ctx, spec.Image)
	}
	if err == nil {
		err = b.start(ctx)
	}
	if err != nil {
		return fmt.Errorf("rebuild box %s: %w", b.Name, err)
	}
	return nil
}

// awaitDiskFree waits until no loop device uses the disk, so that it is never mounted twice.
func (b *Box) awaitDiskFree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		loops, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
		if err != nil {
			return err
		}
		held := ""
		for _, at := range loops {
			if file, err := os.ReadFile(at); err == nil && strings.TrimSpace(string(file)) == b.disk() {
				held = at
			}
		}
		if held == "" {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("disk of box %s is still used by %s", strconv.Quote(b.Name), held)
		}
	}
}
