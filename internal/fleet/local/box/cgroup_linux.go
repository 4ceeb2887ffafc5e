package box

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	cgroupPrefix = "errand-box-"
	// cgroupYoung is well above the time between creating a group and its first process.
	cgroupYoung = time.Minute
	// cgroupPatience is how long the kernel may take to release a group whose processes are dead.
	cgroupPatience = time.Second
)

// cgroup is a sandbox's control group: one directory, or with version 1 one for each controller. It may lack
// controllers; their limits must be enforced in other ways. The zero value limits nothing.
type cgroup struct {
	dirs  map[string]string // by controller
	named []string          // distinct directories
}

func (g *cgroup) hasController(controller string) bool { return g.dirs[controller] != "" }

// cgroupName is the same for each start of a sandbox and unique on this host.
func cgroupName(rec Record, dir string) string {
	return fmt.Sprintf("%s%s-%x", cgroupPrefix, rec.Name, sha256.Sum256([]byte(dir)))[:len(cgroupPrefix)+len(rec.Name)+9]
}

// newCgroup creates a control group below errand's own or, if version 2 does not allow processes beside groups, next to
// it. That requires root or a delegated part of the tree.
func newCgroup(name string, b Bounds) *cgroup {
	g := &cgroup{dirs: map[string]string{}}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return g
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return g
	}
	memory := strconv.FormatInt(b.Memory, 10)
	for _, limit := range []struct {
		controller      string
		files, optional []string
		value           string
	}{
		{"memory", []string{"memory.max", "memory.limit_in_bytes"}, []string{"memory.swap.max=0", "memory.memsw.limit_in_bytes=" + memory}, memory},
		{"pids", []string{"pids.max"}, nil, strconv.Itoa(b.Processes + spareProcesses)},
	} {
		for _, parent := range cgroupParents(limit.controller, string(text), string(mounts)) {
			sweepCgroups(parent)
			dir := filepath.Join(parent, name)
			if !g.add(dir) {
				continue
			}
			limited := func(file string) bool { return writeExisting(filepath.Join(dir, file), limit.value) == nil }
			if slices.ContainsFunc(limit.files, limited) {
				g.dirs[limit.controller] = dir
				for _, setting := range limit.optional { // no swap, or a kernel that does not account it
					file, value, _ := strings.Cut(setting, "=")
					_ = writeExisting(filepath.Join(dir, file), value)
				}
				break
			}
		}
	}
	return g
}

// add creates a directory unless this group has it.
func (g *cgroup) add(dir string) bool {
	if slices.Contains(g.named, dir) {
		return true
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return false
	}
	g.named = append(g.named, dir)
	return true
}

// moveProcess moves a process and its descendants into the group. Processes that they start meanwhile follow, because a
// process is moved before its children are listed.
func (g *cgroup) moveProcess(pid int) error {
	for _, dir := range g.named {
		done := map[int]bool{}
		for {
			var next []int
			for _, p := range append([]int{pid}, descendants(pid)...) {
				if !done[p] {
					next = append(next, p)
				}
			}
			if len(next) == 0 {
				break
			}
			for _, p := range next {
				done[p] = true
				if err := writeExisting(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(p)); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("move process %d into %s: %w", p, dir, err)
				}
			}
		}
	}
	return nil
}

// remove removes the group, whose processes must be dead. Later sandboxes sweep groups that could not be removed.
func (g *cgroup) remove() {
	deadline := time.Now().Add(cgroupPatience)
	for _, dir := range g.named {
		for os.Remove(dir) != nil && exists(dir) && time.Now().Before(deadline) {
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 5e6}, nil)
		}
	}
	g.dirs, g.named = nil, nil
}

// sweepCgroups removes the groups of sandboxes whose supervisor was killed. The kernel keeps those with processes.
func sweepCgroups(parent string) {
	dirs, err := filepath.Glob(filepath.Join(parent, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > cgroupYoung {
			_ = os.Remove(dir)
		}
	}
}

// enableController reports whether groups below a version 2 directory have a controller, and enables it there if
// possible. systemd leaves that to the owner of a delegated tree.
func enableController(dir, controller string) bool {
	control := filepath.Join(dir, "cgroup.subtree_control")
	lists := func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && slices.Contains(strings.Fields(string(text)), controller)
	}
	return lists(control) || lists(filepath.Join(dir, "cgroup.controllers")) && writeExisting(control, "+"+controller) == nil
}

// cgroupParents returns directories in which a group with a controller may be created, best first, from the contents of
// /proc/self/cgroup and /proc/self/mountinfo.
func cgroupParents(controller, groups, mounts string) []string {
	for line := range strings.Lines(groups) { // "4:memory:/path", and "0::/path" for version 2
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), controller) {
			if _, own := cgroupDir(mounts, "cgroup", controller, fields[2]); own != "" {
				return []string{own}
			}
		}
	}
	for line := range strings.Lines(groups) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		mount, own := cgroupDir(mounts, "cgroup2", "", path)
		var parents []string
		for _, dir := range []string{own, filepath.Dir(own)} {
			if own == "" || dir != mount && !strings.HasPrefix(dir, mount+"/") {
				continue
			}
			if enableController(dir, controller) {
				parents = append(parents, dir)
			}
		}
		return parents
	}
	return nil
}

// cgroupDir returns the directory of a group's path and the mount point of its file system.
func cgroupDir(mounts, kind, option, path string) (mount, dir string) {
	for line := range strings.Lines(mounts) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(rest) < 3 || rest[0] != kind ||
			option != "" && !slices.Contains(strings.Split(rest[2], ","), option) {
			continue
		}
		root := strings.TrimSuffix(fields[3], "/")
		if below, ok := strings.CutPrefix(path, root); ok && (below == "" || below[0] == '/') {
			return fields[4], filepath.Join(fields[4], below)
		}
	}
	return "", ""
}

// writeExisting writes to a file created by the kernel.
func writeExisting(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
