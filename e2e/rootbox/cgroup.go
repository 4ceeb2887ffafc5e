//go:build linux

package rootbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const cgroupRoot = "/sys/fs/cgroup"

// controllers are the hierarchies of version 1 that a box has a group in. The first is systemd's own, without limits.
func controllers() []string { return []string{"systemd", "memory", "pids", "freezer"} }

// unified is the hierarchy of version 2, beside the others. A systemd mounts it for itself, and what it sees as its root is
// the group that it is in: boxes without one of their own would make and remove each other's groups in it, of the same
// names, and now and then a unit would end as it begins (exit 219, CGROUP).
const unified = "unified"

// hierarchies are those of version 1 and, where the host has it mounted, that of version 2.
func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroupRoot, unified, "cgroup.procs")); err != nil {
		return controllers()
	}
	return append([]string{unified}, controllers()...) // ended last: what is frozen by version 1 cannot die
}

// groupDir is a box's group, or with an empty box its lab's.
func groupDir(controller string, slot int, box string) string {
	return filepath.Join(cgroupRoot, controller, "errand-rootbox-"+strconv.Itoa(slot), box)
}

// join makes the groups of a box and puts its first process into them.
func join(slot int, box string, pid int) error {
	for _, c := range hierarchies() {
		dir := groupDir(c, slot, box)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// limit sets one value of a box's group.
func limit(controller string, slot int, box, file, value string) error {
	if err := os.WriteFile(filepath.Join(groupDir(controller, slot, box), file), []byte(value), 0o644); err != nil {
		return fmt.Errorf("limit box %s: %w", box, err)
	}
	return nil
}

// groups lists all groups under a folder, the innermost first.
func groups(dir string) (all []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	slices.Reverse(all)
	return all, err
}

// endGroups kills whatever runs in a lab's groups and removes them.
func endGroups(ctx context.Context, slot int) error {
	var errs []error
	for _, c := range slices.Backward(hierarchies()) {
		errs = append(errs, endGroup(ctx, groupDir(c, slot, "")))
	}
	return errors.Join(errs...)
}

// endGroup kills what runs in a group and those beneath it, thawed so that it can die, and removes them.
func endGroup(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		all, err := groups(dir)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, g := range all {
			killGroup(g)
			err = errors.Join(err, removeGroup(g))
		}
		if err == nil {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("end cgroup %s: %w", dir, err)
		}
	}
}

// killGroup is best effort: whoever is left is met again by the caller.
func killGroup(dir string) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, field := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = os.WriteFile(filepath.Join(dir, "freezer.state"), []byte("THAWED"), 0o644)
}

func removeGroup(dir string) error {
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove cgroup %s: %w", dir, err)
	}
	return nil
}
