// Package buildtest builds errand's programs for tests, once for all test programs of a checkout.
//
// It keeps what it built in .cache/bin of the checkout, where the go command sees that a program is up to date.
// Start reading at Program.
package buildtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// limit bounds waiting for another build and building, on a machine that does much else.
const limit = 5 * time.Minute

// Program puts one of errand's programs, or simagents, into dir, under its own name: static and without symbols, as releases are
// built.
func Program(ctx context.Context, dir, name string, flags ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	path := filepath.Join(dir, name)
	shared, err := sharedPath(name, flags)
	if err != nil {
		return build(ctx, path, name, flags) // no checkout, or one that cannot be written: build for this test program alone
	}
	lock := flock.New(shared + ".lock")
	if ok, err := lock.TryLockContext(ctx, 20*time.Millisecond); !ok || err != nil {
		return build(ctx, path, name, flags)
	}
	err = build(ctx, shared, name, flags)
	if err == nil {
		err = copyProgram(path, shared)
	}
	return errors.Join(err, lock.Unlock())
}

// build builds a program at path; the go command leaves one that is up to date as it is.
func build(ctx context.Context, path, name string, flags []string) error {
	folder := "cmd/"
	if name == "simagents" {
		folder = "internal/sim/"
	}
	args := append([]string{"build", "-ldflags", "-s -w", "-o", path}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "github.com/errand-bot/errand/"+folder+name)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return nil
}

// sharedPath names the file that all test programs of the checkout share, and makes its folder writable or fails.
func sharedPath(name string, flags []string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the checkout: no go.mod above the working folder")
		}
		dir = parent
	}
	dir = filepath.Join(dir, ".cache", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create folder of programs: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return "", fmt.Errorf("write to folder of programs: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return "", fmt.Errorf("write to folder of programs: %w", err)
	}
	return filepath.Join(dir, strings.Join(append([]string{name}, flags...), "_")), nil
}

// copyProgram copies, so that a test program keeps the version that it began with.
func copyProgram(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("open built program: %w", err)
	}
	defer func() { _ = in.Close() }() // it was only read
	// A process that another goroutine starts meanwhile would have the copy open for writing, and so it could not be executed for a moment.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("copy built program: %w", err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy built program: %w", err)
	}
	return nil
}
