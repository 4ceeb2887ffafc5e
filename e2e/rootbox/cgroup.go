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

// controllers are the hierarchies of version 1 in which a box has a group. The first is systemd's, without limits.
func controllers() []string { return []string{"systemd", "memory", "pids", "freezer"} }

// unified is the additional hierarchy of version 2. Each systemd mounts it with its own group as the root. Without
// separate groups, boxes would create and remove each other's groups of the same names, and occasionally a unit would
// fail at its start (exit 219, CGROUP).
const unified = "unified"

// hierarchies are those of version 1 and, where the host has it mounted, that of version 2.
func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroupRoot, unified, "cgroup.procs")); err != nil {
		return controllers()
	}
	return append([]string{unified}, controllers()...) // last, because processes frozen by version 1 cannot die
}

// groupDir returns the group of a box, or of its lab if box is empty.
func groupDir(controller string, slot int, box string) string {
	return filepath.Join(cgroupRoot, controller, "errand-rootbox-"+strconv.Itoa(slot), box)
}

// join creates the groups of a box and adds its first process to them.
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

// groups lists all groups under a directory, the innermost first.
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

// endGroups kills all processes in a lab's groups and removes the groups.
func endGroups(ctx context.Context, slot int) error {
	var errs []error
	for _, c := range slices.Backward(hierarchies()) {
		errs = append(errs, endGroup(ctx, groupDir(c, slot, "")))
	}
	return errors.Join(errs...)
}

// endGroup thaws and kills all processes in a group and its subgroups, and removes the groups.
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

// killGroup is best effort; the caller repeats it for remaining processes.
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
